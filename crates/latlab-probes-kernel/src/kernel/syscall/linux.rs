//! Linux: syscall(2), and the C library's `clock_gettime`.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::atomic::AtomicU32;

use latlab_harness::{AnySession, Batch, Block, Env, ProbeError, Proof};
use latlab_record::{Check, Point};
use serde_json::json;

use super::{CLOCK, FUTEX, GETPPID, READ, VDSO};

pub(super) const HERE: bool = true;

#[expect(clippy::unnecessary_wraps, reason = "the same signature on every system")]
pub(super) fn open<'env>(_env: &'env Env) -> Result<Box<dyn AnySession + 'env>, ProbeError> {
    Ok(Box::new(Calling::default()))
}

/// What is asked again and again, and what the answer must be.
#[derive(Debug)]
enum Question {
    Parent { id: libc::c_long },
    NoBytes { of: File },
    NobodyAsleep { word: Box<AtomicU32> },
    Time { through_vdso: bool, last: [i64; 2] },
}

impl Question {
    fn named(operation: &str) -> Result<Self, ProbeError> {
        Ok(match operation {
            GETPPID => Self::Parent { id: libc::c_long::from(parent()) },
            READ => Self::NoBytes {
                of: File::open("/dev/null")
                    .map_err(|source| ProbeError::System { what: "opening /dev/null".to_owned(), source })?,
            },
            FUTEX => Self::NobodyAsleep { word: Box::new(AtomicU32::new(0)) },
            VDSO | CLOCK => Self::Time { through_vdso: operation == VDSO, last: [0, 0] },
            other => return Err(ProbeError::Other(format!("there is no call {other}"))),
        })
    }

    /// Asks so many times; how many answers were right.
    fn ask(&mut self, times: u64) -> u64 {
        let mut right = 0;
        match self {
            Self::Parent { id } => {
                for _ in 0..times {
                    // SAFETY: takes nothing and touches no memory.
                    right += u64::from(unsafe { libc::syscall(libc::SYS_getppid) } == *id);
                }
            }
            Self::NoBytes { of } => {
                let mut nothing = [0u8; 1];
                let (file, place) = (of.as_raw_fd(), nothing.as_mut_ptr());
                for _ in 0..times {
                    // SAFETY: no bytes are written to the byte that is there.
                    right += u64::from(unsafe { libc::syscall(libc::SYS_read, file, place, 0usize) } == 0);
                }
            }
            Self::NobodyAsleep { word } => {
                let place = word.as_ptr();
                for _ in 0..times {
                    // SAFETY: the word lives as long as this; the kernel looks at its address only.
                    let woken = unsafe {
                        libc::syscall(libc::SYS_futex, place, libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, 1)
                    };
                    right += u64::from(woken == 0);
                }
            }
            Self::Time { through_vdso, last } => {
                let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
                let place = &raw mut time;
                let clock = libc::CLOCK_MONOTONIC;
                for _ in 0..times {
                    let status = if *through_vdso {
                        // SAFETY: the place is a timespec of ours.
                        i64::from(unsafe { libc::clock_gettime(clock, place) })
                    } else {
                        // SAFETY: as above.
                        unsafe { libc::syscall(libc::SYS_clock_gettime, clock, place) }
                    };
                    // SAFETY: as above; read through the pointer that the calls were given.
                    let now = unsafe { [place.read().tv_sec, place.read().tv_nsec] };
                    right += u64::from(status == 0 && now >= *last && now > [0, 0]);
                    *last = now;
                }
            }
        }
        right
    }
}

fn parent() -> i32 {
    rustix::process::getppid().map_or(0, |id| id.as_raw_nonzero().get())
}

/// A question with its count of answers.
#[derive(Debug)]
struct Asking {
    operation: String,
    question: Question,
    asked: u64,
    right: u64,
}

impl Batch for Asking {
    fn run(&mut self, ops: u64) -> u64 {
        let right = self.question.ask(ops);
        self.asked += ops;
        self.right += right;
        right
    }
}

#[derive(Default)]
struct Calling {
    all: Vec<Asking>,
    selected: usize,
}

impl AnySession for Calling {
    fn select(&mut self, point: &Point) -> Result<(), ProbeError> {
        let operation = point.operation.clone().unwrap_or_default();
        if let Some(known) = self.all.iter().position(|asking| asking.operation == operation) {
            self.selected = known;
            return Ok(());
        }
        let mut question = Question::named(&operation)?;
        if question.ask(1) == 0 {
            return Err(ProbeError::last_os_error(format!(
                "{operation}: not the answer that it must have; the last refusal"
            )));
        }
        self.all.push(Asking { operation, question, asked: 0, right: 0 });
        self.selected = self.all.len() - 1;
        Ok(())
    }

    fn block(&mut self, block: &mut Block) -> Result<(), ProbeError> {
        let asking = self
            .all
            .get_mut(self.selected)
            .ok_or_else(|| ProbeError::Other("no call is selected".to_owned()))?;
        block.batches(asking);
        Ok(())
    }

    fn proof(&mut self, point: &Point) -> Proof {
        let named = |asking: &&Asking| Some(asking.operation.as_str()) == point.operation.as_deref();
        let (asked, right) =
            self.all.iter().find(named).map_or((0, 0), |asking| (asking.asked, asking.right));
        // Who serves the clock decides whether it can be read without a call.
        let clock =
            std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
        let of_time = matches!(point.operation.as_deref(), Some(VDSO | CLOCK));
        Proof {
            checks: vec![Check {
                name: "every call had its answer".to_owned(),
                ok: asked > 0 && asked == right,
                detail: format!("{right} of {asked} answers were right"),
            }],
            findings: clock.ok().filter(|_| of_time).map(|name| json!({ "clock_source": name.trim() })),
            ..Proof::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;

    use latlab_harness::AnyProbe;

    use super::*;
    use crate::kernel::syscall::Syscall;
    use latlab_probes_testing as testing;

    fn session(question: Question) -> Calling {
        Calling {
            all: vec![Asking { operation: "planted".to_owned(), question, asked: 0, right: 0 }],
            selected: 0,
        }
    }

    fn proved(session: &mut Calling) -> bool {
        let point = Point { operation: Some("planted".to_owned()), ..Point::default() };
        session.all[0].run(100);
        session.proof(&point).checks.iter().all(|check| check.ok)
    }

    #[test]
    fn every_call_is_made_and_answered_on_one_cpu_with_little_memory() {
        let env = testing::env_of_one_cpu(64 << 20);
        let points = Syscall.points(&env);
        assert_eq!(points.len(), 5);
        testing::assert_proved(&Syscall, &env, &points);
    }

    #[test]
    fn a_call_that_is_refused_fails_the_proof() {
        let nothing: OwnedFd = rustix::fs::open(
            "/dev/null",
            rustix::fs::OFlags::WRONLY | rustix::fs::OFlags::CLOEXEC,
            rustix::fs::Mode::empty(),
        )
        .expect("every system has it");
        // Open for writing: reading is refused.
        assert!(!proved(&mut session(Question::NoBytes { of: nothing.into() })));
    }

    #[test]
    fn a_wrong_answer_fails_the_proof() {
        let wrong = libc::c_long::from(parent()) + 1;
        assert!(!proved(&mut session(Question::Parent { id: wrong })));
        assert!(!proved(&mut session(Question::Time { through_vdso: true, last: [i64::MAX, 0] })));
        assert!(proved(&mut session(Question::Parent { id: wrong - 1 })));
    }

    #[test]
    fn calls_that_were_not_made_prove_nothing() {
        let mut none = session(Question::Parent { id: 0 });
        let point = Point { operation: Some("planted".to_owned()), ..Point::default() };
        assert!(!none.proof(&point).checks[0].ok);
    }
}
