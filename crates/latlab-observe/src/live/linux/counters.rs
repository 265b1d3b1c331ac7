//! Linux: getrusage(2) of the thread, its schedstat, `/proc/stat`, the control group's `cpu.stat`.

use std::fs::File;
use std::mem::MaybeUninit;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use latlab_record::Observed;

/// `USER_HZ`, the unit of `/proc/stat`; 100 on every Linux that latlab supports.
const NS_PER_USER_TICK: u64 = 10_000_000;

#[derive(Debug)]
pub(crate) struct ThreadCounters {
    cpu_label: Option<String>,
    schedstat: Option<File>,
    stat: Option<File>,
    group_stat: Option<File>,
}

impl ThreadCounters {
    pub(crate) fn open(cpu: Option<u32>) -> Self {
        Self {
            cpu_label: cpu.map(|number| format!("cpu{number} ")),
            schedstat: File::open("/proc/thread-self/schedstat").ok(),
            stat: File::open("/proc/stat").ok(),
            group_stat: group_stat_path().and_then(|path| File::open(path).ok()),
        }
    }

    pub(crate) fn read(&self) -> Observed {
        let mut observed = Observed::default();
        if let Some(usage) = thread_usage() {
            let count = |value: libc::c_long| u64::try_from(value).ok();
            observed.voluntary_switches = count(usage.ru_nvcsw);
            observed.involuntary_switches = count(usage.ru_nivcsw);
            observed.minor_faults = count(usage.ru_minflt);
            observed.major_faults = count(usage.ru_majflt);
        }
        observed.run_queue_delay_ns =
            self.schedstat.as_ref().and_then(text_of).and_then(|text| run_delay(&text));
        observed.steal_ns = match (&self.stat, &self.cpu_label) {
            (Some(file), Some(label)) => text_of(file).and_then(|text| steal(&text, label)),
            _ => None,
        };
        observed.throttled_ns = self.group_stat.as_ref().and_then(text_of).and_then(|text| throttled(&text));
        observed
    }
}

/// The thread's schedstat, read without allocating.
#[derive(Debug)]
pub(crate) struct DelayFile(File);

impl DelayFile {
    pub(crate) fn open(thread: Option<u32>) -> Option<Self> {
        let path = match thread {
            None => "/proc/thread-self/schedstat".to_owned(),
            Some(tid) => format!("/proc/self/task/{tid}/schedstat"),
        };
        File::open(path).ok().map(Self)
    }

    pub(crate) fn read_ns(&self) -> Option<u64> {
        // Three numbers of at most 20 digits.
        let mut buffer = [0_u8; 64];
        let length = self.0.read_at(&mut buffer, 0).ok()?;
        run_delay(std::str::from_utf8(&buffer[..length]).ok()?)
    }
}

fn thread_usage() -> Option<libc::rusage> {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a rusage of ours, which the call fills when it returns 0.
    let status = unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) };
    // SAFETY: all-zero is a valid rusage, and the call only ever writes valid fields.
    (status == 0).then(|| unsafe { usage.assume_init() })
}

/// The file's whole lines from its beginning. `/proc/stat` of a machine with hundreds of CPUs is longer than
/// the buffer; a CPU beyond it stays unknown.
fn text_of(file: &File) -> Option<String> {
    let mut buffer = [0u8; 16_384];
    let length = file.read_at(&mut buffer, 0).ok()?;
    Some(String::from_utf8_lossy(whole_lines(&buffer[..length])).into_owned())
}

/// Without what follows the last end of a line: a number that was cut short would be another number.
fn whole_lines(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| *byte == b'\n');
    &bytes[..end.map_or(0, |end| end + 1)]
}

/// Second field of schedstat: ns spent runnable but waiting.
fn run_delay(text: &str) -> Option<u64> {
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Eighth value of the CPU's line in `/proc/stat`.
fn steal(text: &str, label: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with(label))?;
    let ticks: u64 = line.split_ascii_whitespace().nth(8)?.parse().ok()?;
    Some(ticks * NS_PER_USER_TICK)
}

/// `throttled_usec` (version 2) or `throttled_time` in ns (version 1).
fn throttled(text: &str) -> Option<u64> {
    text.lines().find_map(|line| match line.split_once(' ')? {
        ("throttled_usec", value) => value.trim().parse::<u64>().ok().map(|us| us * 1_000),
        ("throttled_time", value) => value.trim().parse().ok(),
        _ => None,
    })
}

fn group_stat_path() -> Option<PathBuf> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    groups
        .lines()
        .filter_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            let controllers = fields.next()?;
            let path = fields.next()?.trim_start_matches('/');
            let mount = if controllers.is_empty() {
                "/sys/fs/cgroup"
            } else if controllers.split(',').any(|name| name == "cpu") {
                "/sys/fs/cgroup/cpu"
            } else {
                return None;
            };
            let own = Path::new(mount).join(path);
            // A quota stops all below its group, and only that group counts it.
            let with_quota = own.ancestors().take_while(|group| group.starts_with(mount)).find(has_quota);
            Some(with_quota.unwrap_or(&own).join("cpu.stat"))
        })
        .find(|path| path.exists())
}

/// `cpu.max` (version 2: `max 100000` is none) or `cpu.cfs_quota_us` (version 1: -1 is none).
fn has_quota(group: &&Path) -> bool {
    let begins_with_a_digit = |text: String| text.starts_with(|first: char| first.is_ascii_digit());
    ["cpu.max", "cpu.cfs_quota_us"]
        .iter()
        .any(|file| std::fs::read_to_string(group.join(file)).is_ok_and(begins_with_a_digit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_is_the_eighth_value_of_the_right_cpu() {
        let text = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\ncpu10 1 1 1 1 1 1 1 77 0 0\n";
        assert_eq!(steal(text, "cpu0 "), Some(80_000_000));
        assert_eq!(steal(text, "cpu1 "), None);
    }

    #[test]
    fn a_number_that_the_buffer_cuts_short_stays_unknown() {
        let text = b"cpu0 1 2 3 4 5 6 7 8 0 0\ncpu1 1 2 3 4 5 6 7 12";
        let whole = String::from_utf8_lossy(whole_lines(text));
        assert_eq!(steal(&whole, "cpu0 "), Some(80_000_000));
        assert_eq!(steal(&whole, "cpu1 "), None);
    }

    #[test]
    fn waiting_time_is_the_second_field_of_schedstat() {
        assert_eq!(run_delay("123 456 7\n"), Some(456));
        assert_eq!(run_delay(""), None);
    }

    #[test]
    fn throttling_is_read_from_both_versions_of_control_groups() {
        assert_eq!(throttled("usage_usec 5\nthrottled_usec 12\n"), Some(12_000));
        assert_eq!(throttled("nr_periods 1\nthrottled_time 34\n"), Some(34));
        assert_eq!(throttled("usage_usec 5\n"), None);
    }
}
