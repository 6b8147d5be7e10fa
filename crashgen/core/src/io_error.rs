//! Errors of files in words for users.

use std::io;

/// The error in words. A full disk has the same words as in store/store.py.
pub fn in_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "no space left on the disk; what was there before is unharmed".to_owned()
        }
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_in_words() {
        for code in [28, 122] {
            let message = in_words(&io::Error::from_raw_os_error(code));
            assert!(message.starts_with("no space left on the disk"), "{message}");
        }
        assert_eq!(in_words(&io::Error::from_raw_os_error(2)), "No such file or directory (os error 2)");
    }
}
