//! Finds kernel logs that may lack lines for a reason that lies in the guest and not in the disk.

use serde::Deserialize;
use serde_json::Value;

const LOG: [&str; 2] = ["klog", "klog_whole"];
/// What a helper said that did not mount the disk. It may have numbers that change from one run to the next.
const HELPER: &str = "helper";

/// The part of the agent's report that tells this.
#[derive(Deserialize)]
struct LogCompleteness {
    klog_whole: bool,
}

/// Whether the agent has seen all lines. If the report does not say so, lines may be missing.
pub fn is_whole(report: &[u8]) -> bool {
    serde_json::from_slice::<LogCompleteness>(report).is_ok_and(|log| log.klog_whole)
}

/// Whether two observations of one crash state are the same. Logs are compared only if both are whole, and what a helper
/// said is not.
pub fn agree(first: &Value, second: &Value) -> bool {
    let whole = [first, second].iter().all(|each| each.get("klog_whole") == Some(&Value::Bool(true)));
    first == second || comparable(first, whole) == comparable(second, whole)
}

fn comparable(observation: &Value, with_log: bool) -> Value {
    let mut rest = observation.clone();
    if let Some(fields) = rest.as_object_mut() {
        fields.retain(|name, _| name != HELPER && (with_log || !LOG.contains(&name.as_str())));
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::{agree, is_whole};
    use serde_json::json;

    #[test]
    fn a_log_that_may_lack_lines_is_not_compared() {
        let whole = json!({"tree": [], "klog": ["<4>a"], "klog_whole": true});
        let part = json!({"tree": [], "klog": [], "klog_whole": false});
        assert!(agree(&whole, &part) && agree(&part, &whole));
        assert!(!agree(&whole, &json!({"tree": [], "klog": [], "klog_whole": true})));
        assert!(!agree(&whole, &json!({"tree": null, "klog": [], "klog_whole": false})));
    }

    #[test]
    fn the_words_of_a_helper_are_not_compared() {
        let with = |helper: &str, errno: i32| json!({"mount_errno": errno, "helper": helper, "klog_whole": true});
        assert!(agree(&with("process 7: bad magic", 5), &with("process 8: bad magic", 5)));
        assert!(!agree(&with("bad magic", 5), &with("bad magic", 0)));
    }

    #[test]
    fn a_report_that_does_not_say_is_not_whole() {
        assert!(is_whole(br#"{"klog": [], "klog_whole": true}"#));
        assert!(!is_whole(br#"{"klog": [], "klog_whole": false}"#));
        assert!(!is_whole(br#"{"klog": []}"#));
    }
}
