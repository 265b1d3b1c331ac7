//! Linux: syscall(2), and the C library's `clock_gettime`.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::atomic::AtomicU32;

use super::{Call, Made, ServedBy, Syscall};
use latlab_probes_shared::prelude::*;

pub(super) const HERE: bool = true;

#[expect(clippy::unnecessary_wraps, reason = "the same signature on every system")]
pub(super) fn open(_env: &Env) -> Result<Session<'_>> {
    Ok(Calling(Vec::new()))
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
    fn of(call: Call) -> Result<Self> {
        Ok(match call {
            Call::Getppid => Self::Parent { id: libc::c_long::from(parent()) },
            Call::Read0 => Self::NoBytes {
                of: File::open("/dev/null").map_err(|error| refused("opening /dev/null", error))?,
            },
            Call::FutexWake => Self::NobodyAsleep { word: Box::new(AtomicU32::new(0)) },
            Call::ClockGettimeVdso | Call::ClockGettimeSyscall => {
                Self::Time { through_vdso: call == Call::ClockGettimeVdso, last: [0, 0] }
            }
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

/// A question, and whether its answers were right.
struct Asking<'a> {
    question: &'a mut Question,
    answers: Compared,
}

impl Batch for Asking<'_> {
    fn run(&mut self, ops: u64) -> u64 {
        let right = self.question.ask(ops);
        self.answers.add(ops, ops - right);
        right
    }
}

/// What the calls of each point ask.
pub struct Calling(Vec<(Call, Question)>);

pub(super) type Session<'env> = Calling;

pub(super) type Evidence = Compared;

impl Calling {
    fn question(&mut self, call: Call) -> Result<&mut Question> {
        kept(&mut self.0, call, || Question::of(call))
    }
}

impl latlab_harness::Session<Syscall> for Calling {
    fn select(&mut self, point: &Made) -> Result<()> {
        // Made anew: a parent's number changes when it ends.
        self.0.retain(|(call, _)| *call != point.operation);
        if self.question(point.operation)?.ask(1) == 0 {
            return Err(ProbeError::last_os_error(format!(
                "{}: not the answer that it must have; the last refusal",
                point.to_point().label()
            )));
        }
        Ok(())
    }

    fn block(&mut self, point: &Made, answers: &mut Compared, block: &mut Block) -> Result<()> {
        let question = self.question(point.operation)?;
        let mut asking = Asking { question, answers: std::mem::take(answers) };
        block.batches(&mut asking);
        *answers = asking.answers;
        Ok(())
    }

    fn proof(&mut self, point: &Made, answers: &Compared) -> Proof<ServedBy> {
        let of_time = matches!(point.operation, Call::ClockGettimeVdso | Call::ClockGettimeSyscall);
        let source =
            std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
        Proof {
            findings: source
                .ok()
                .filter(|_| of_time)
                .map(|name| ServedBy { clock_source: name.trim().to_owned() }),
            ..Proof::of(vec![answers.check("every call had its answer", "", "answers were right")])
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;

    use super::*;

    fn proved(mut question: Question) -> bool {
        let mut asking = Asking { question: &mut question, answers: Compared::default() };
        asking.run(100);
        asking.answers.check("planted", "", "").ok
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
        assert!(!proved(Question::NoBytes { of: nothing.into() }));
    }

    #[test]
    fn a_wrong_answer_fails_the_proof() {
        let wrong = libc::c_long::from(parent()) + 1;
        assert!(!proved(Question::Parent { id: wrong }));
        assert!(!proved(Question::Time { through_vdso: true, last: [i64::MAX, 0] }));
        assert!(proved(Question::Parent { id: wrong - 1 }));
    }
}
