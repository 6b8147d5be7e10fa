//! Rules about system calls as a program for seccomp.
//!
//! Crates for this know neither SECCOMP_RET_USER_NOTIF nor several actions in one program, so the program is written here.

use libc::sock_filter;

const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const JUMP_IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const JUMP_IF_ANY: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
const JUMP_IF_AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
/// Where `struct seccomp_data` has the number of the call, the architecture, and the low half of the first argument.
const NUMBER_AT: u32 = 0;
const ARCHITECTURE_AT: u32 = 4;
const ARGUMENTS_AT: u32 = 16;
const ARGUMENT_BYTES: u32 = 8;
const X86_64: u32 = 0xC000_003E;
/// Numbers from here on are calls of the x32 ABI, which would bypass the rules.
const X32: u32 = 0x4000_0000;

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The kernel carries it out.
    Allow,
    /// It returns this error at once, or success for 0.
    Return(i32),
    /// The supervisor says what becomes of it.
    Ask,
}

/// What an argument must be. Arguments are compared by their low 32 bits, since these are of type int, but for pointers.
#[derive(Clone, Copy, Debug)]
pub enum Test {
    Is(u32),
    IsNot(u32),
    /// It has one of these bits.
    HasAny(u32),
    /// Its high 32 bits are not these.
    HighIsNot(u32),
}

/// A call, by its number, whose arguments pass all tests.
#[derive(Clone, Debug)]
pub struct Rule {
    pub call: i64,
    pub tests: Vec<(u32, Test)>,
    pub action: Action,
}

/// The program that takes the first rule that a call matches. A call that matches none is allowed. Programs for another
/// architecture are killed.
pub fn compile(rules: &[Rule]) -> Vec<sock_filter> {
    let mut program = vec![
        step(LOAD, ARCHITECTURE_AT, 0, 0),
        step(JUMP_IF_EQUAL, X86_64, 1, 0),
        step(RETURN, libc::SECCOMP_RET_KILL_PROCESS, 0, 0),
        step(LOAD, NUMBER_AT, 0, 0),
        step(JUMP_IF_AT_LEAST, X32, 0, 1),
        step(RETURN, verdict(Action::Return(libc::ENOSYS)), 0, 0),
    ];
    for rule in rules {
        program.extend(compile_rule(rule));
    }
    program.push(step(RETURN, verdict(Action::Allow), 0, 0));
    program
}

fn compile_rule(rule: &Rule) -> Vec<sock_filter> {
    let length = 2 + 2 * rule.tests.len() + 1;
    let mut steps = vec![step(LOAD, NUMBER_AT, 0, 0)];
    // A jump over what is left of this rule.
    let over = |steps: &Vec<sock_filter>| (length - steps.len() - 1) as u8;
    steps.push(step(JUMP_IF_EQUAL, rule.call as u32, 0, over(&steps)));
    for &(argument, test) in &rule.tests {
        let half = if matches!(test, Test::HighIsNot(_)) { ARGUMENT_BYTES / 2 } else { 0 };
        steps.push(step(LOAD, ARGUMENTS_AT + ARGUMENT_BYTES * argument + half, 0, 0));
        let over = over(&steps);
        steps.push(match test {
            Test::Is(value) => step(JUMP_IF_EQUAL, value, 0, over),
            Test::IsNot(value) | Test::HighIsNot(value) => step(JUMP_IF_EQUAL, value, over, 0),
            Test::HasAny(bits) => step(JUMP_IF_ANY, bits, 0, over),
        });
    }
    steps.push(step(RETURN, verdict(rule.action), 0, 0));
    steps
}

fn verdict(action: Action) -> u32 {
    match action {
        Action::Allow => libc::SECCOMP_RET_ALLOW,
        Action::Return(error) => libc::SECCOMP_RET_ERRNO | error as u32,
        Action::Ask => libc::SECCOMP_RET_USER_NOTIF,
    }
}

fn step(code: u16, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a program on a call, as the kernel does.
    fn run(program: &[sock_filter], architecture: u32, call: u32, arguments: [u64; 6]) -> u32 {
        let (mut at, mut accumulator) = (0, 0);
        loop {
            let sock_filter { code, jt, jf, k } = program[at];
            let is_true = match code {
                LOAD if k == NUMBER_AT => {
                    accumulator = call;
                    true
                }
                LOAD if k == ARCHITECTURE_AT => {
                    accumulator = architecture;
                    true
                }
                LOAD => {
                    accumulator = arguments[((k - ARGUMENTS_AT) / ARGUMENT_BYTES) as usize] as u32;
                    true
                }
                JUMP_IF_EQUAL => accumulator == k,
                JUMP_IF_ANY => accumulator & k != 0,
                JUMP_IF_AT_LEAST => accumulator >= k,
                RETURN => return k,
                other => panic!("unknown step {other}"),
            };
            at += 1 + usize::from(if is_true { jt } else { jf });
        }
    }

    fn rule(call: i64, tests: &[(u32, Test)], action: Action) -> Rule {
        Rule { call, tests: tests.to_vec(), action }
    }

    #[test]
    fn the_first_rule_that_matches_is_taken() {
        let program = compile(&[
            rule(7, &[(0, Test::Is(1)), (1, Test::HasAny(6))], Action::Return(5)),
            rule(7, &[(0, Test::IsNot(2))], Action::Ask),
            rule(8, &[], Action::Return(0)),
        ]);
        let of = |call, first, second| run(&program, X86_64, call, [first, second, 0, 0, 0, 0]);
        assert_eq!(of(7, 1, 4), verdict(Action::Return(5)));
        assert_eq!(of(7, 1, 8), verdict(Action::Ask));
        assert_eq!(of(7, 2, 4), verdict(Action::Allow));
        assert_eq!(of(7, 3, 4), verdict(Action::Ask));
        assert_eq!(of(8, 0, 0), verdict(Action::Return(0)));
        assert_eq!(of(9, 1, 4), verdict(Action::Allow));
        assert_eq!(of(7, 0xFF_0000_0001, 4), verdict(Action::Return(5)));
    }

    #[test]
    fn other_architectures_and_x32_do_not_get_through() {
        let program = compile(&[]);
        assert_eq!(run(&program, 0x4000_0003, 1, [0; 6]), libc::SECCOMP_RET_KILL_PROCESS);
        assert_eq!(run(&program, X86_64, X32 | 1, [0; 6]), verdict(Action::Return(libc::ENOSYS)));
    }
}
