//! Where in the space of a probe's parameters a record was taken.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// Page size that was *asked for*; whether it was obtained is a check, and whether it was
/// effective is a finding, because the three differ on virtual machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Pages {
    /// The base page of the architecture, huge pages refused by `MADV_NOHUGEPAGE`.
    #[serde(rename = "4k")]
    Base,
    /// Transparent huge pages asked for by `MADV_HUGEPAGE`.
    #[serde(rename = "huge")]
    Huge,
}

/// The order in which the lines of a working set are visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Order {
    /// Random within windows of many pages, window after window: translation is cheap, prefetching is not
    /// possible.
    PageLocal,
    /// Random over the whole working set.
    Random,
    /// Random over consecutive lines: as many lines as `spread` has pages.
    Packed,
    /// Random over pages, one line a page.
    Spread,
    /// Ascending addresses.
    Sequential,
    /// Ascending addresses with a fixed distance.
    Strided,
}

/// How the same work is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Timing {
    /// Each operation alone: the tail is real, the body is as fine as the clock.
    Each,
    /// Windows of operations that wait for each other: the mean is fine, the tail is gone.
    Batch,
}

/// One point. A field that does not apply is absent; a new probe adds its fields here.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Point {
    /// Bytes that are visited, in binary units.
    pub working_set_bytes: Option<u64>,
    /// Page size asked for.
    pub pages: Option<Pages>,
    /// Order of the visits.
    pub order: Option<Order>,
    /// Which of several independent draws of physical pages this is, from 0.
    pub draw: Option<u32>,
    /// Number of lines in a paired chain (`packed`, `spread`).
    pub nodes: Option<u64>,
    /// Threads that work at the same time.
    pub threads: Option<u32>,
    /// What is done to each element or line: `read`, `write`, `copy`, `triad`, `poke-read`, ...
    pub operation: Option<String>,
    /// How it is timed, where a probe times the same work both ways.
    pub timing: Option<Timing>,
    /// Distance between accesses, bytes.
    pub stride_bytes: Option<u64>,
    /// Instruction set that moved the data: `avx512`, `avx2`, `neon`, `scalar`.
    pub isa: Option<String>,
    /// Name of a clock.
    pub clock: Option<String>,
    /// Size of one object, allocation, mapping or fault, bytes.
    pub size_bytes: Option<u64>,
    /// Elements of a list, an array or another container.
    pub elements: Option<u64>,
    /// Independent chains of dependent loads that are walked at the same time.
    pub chains: Option<u32>,
    /// How far ahead a software prefetch asks, in elements of the walk; 0 is none.
    pub distance: Option<u32>,
    /// Where an access begins within its line or page, or how far two variables lie apart, bytes.
    pub offset_bytes: Option<u64>,
    /// Steps of waiting that a load thread puts between two turns of its own work; 0 is as fast as it can.
    pub delay_steps: Option<u32>,
    /// Share of the traffic between caches and memory that is reading, percent.
    pub read_percent: Option<u32>,
    /// First CPU of a pair.
    pub from_cpu: Option<u32>,
    /// Second CPU of a pair.
    pub to_cpu: Option<u32>,
    /// Where the two sides of an exchange run: `same-cpu`, `across-blocking`, `across-polling`, `anywhere`;
    /// of an allocation, `same-thread` or `across-threads`.
    pub placement: Option<String>,
    /// What the two sides are: `threads` or `processes`.
    pub between: Option<String>,
    /// Requested sleep, or time asleep before being woken, ns.
    pub sleep_ns: Option<u64>,
    /// Whose `malloc`: `system`, `mimalloc`, `jemalloc`.
    pub allocator: Option<String>,
    /// Whether memory is new to the process or was used before: `fresh`, `reused`.
    pub state: Option<String>,
    /// Bytes of one read or write of a file.
    pub block_bytes: Option<u64>,
    /// Operations that are under way together.
    pub queue_depth: Option<u32>,
    /// How a file is reached: `direct`, `buffered-cold`, `buffered-warm`, `buffered-fsync-each`,
    /// `buffered-fsync-end`, `buffered`; or what lies between client and server: `loopback`, `emulated`,
    /// `url` (whatever lies before the server that the user names).
    pub path: Option<String>,
    /// What carries transfers out: `psync`, `io_uring`, `threads`; or whose program: `latlab`, `python`,
    /// `python-requests`, `python-httpx`.
    pub engine: Option<String>,
    /// Size of a file, bytes.
    pub file_bytes: Option<u64>,
    /// Number of files.
    pub files: Option<u64>,
    /// Requests a second of an open loop.
    pub rate_per_s: Option<u64>,
    /// What carries messages: `tcp`, `udp`, `unix`.
    pub transport: Option<String>,
    /// Size of one message, bytes.
    pub message_bytes: Option<u64>,
    /// Transfers under way at once.
    pub concurrency: Option<u32>,
    /// Whether each transfer opens a connection or uses one that is open: `new`, `kept`.
    pub connections: Option<String>,
    /// What is spoken: `http/1.1`, `https` (the same by TLS), `http/2`.
    pub protocol: Option<String>,
    /// Connections that carry bytes at the same time.
    pub streams: Option<u32>,
    /// How a write is made durable: `fsync`, `fdatasync`, `o_dsync`, `direct-fdatasync`, `full-fsync`.
    pub sync: Option<String>,
}

impl Point {
    /// A short name for progress lines and tables: `working_set 16 MiB, 4k, random`.
    pub fn label(&self) -> String {
        let pages = |pages| match pages {
            Pages::Base => "4k pages".to_owned(),
            Pages::Huge => "huge pages".to_owned(),
        };
        let timing = |timing| match timing {
            Timing::Each => "one by one".to_owned(),
            Timing::Batch => "in batches".to_owned(),
        };
        let prefetch = |distance| match distance {
            0 => "no prefetch".to_owned(),
            ahead => format!("prefetch {ahead} ahead"),
        };
        let parts = [
            self.clock.clone(),
            self.operation.clone(),
            self.allocator.clone(),
            self.files.map(|files| counted(files, "file")),
            self.file_bytes.map(|bytes| format!("file {}", file_size(bytes))),
            self.block_bytes.map(|bytes| format!("block {}", binary_size(bytes))),
            self.queue_depth.map(|depth| format!("depth {depth}")),
            self.rate_per_s.map(|rate| format!("{rate} a second")),
            self.transport.clone(),
            self.message_bytes.map(|bytes| format!("messages of {}", binary_size(bytes))),
            self.streams.map(|streams| counted(streams.into(), "stream")),
            self.concurrency.map(|many| format!("{many} at once")),
            self.connections.as_ref().map(|connections| format!("{connections} connections")),
            self.protocol.clone(),
            self.path.clone(),
            self.sync.clone(),
            self.engine.clone(),
            self.size_bytes.map(binary_size),
            self.elements.map(|elements| format!("{elements} elements")),
            self.sleep_ns.map(|sleep_ns| format!("after {}", duration(sleep_ns))),
            self.state.clone(),
            self.between.clone(),
            self.placement.clone(),
            self.from_cpu.zip(self.to_cpu).map(|(from, to)| format!("CPU {from} and {to}")),
            self.working_set_bytes.map(binary_size),
            self.nodes.map(|nodes| format!("{nodes} nodes")),
            self.stride_bytes.map(|stride| format!("stride {}", binary_size(stride))),
            self.pages.map(pages),
            self.order.map(|order| <&str>::from(order).to_owned()),
            self.chains.map(|chains| counted(chains.into(), "chain")),
            self.distance.map(prefetch),
            self.offset_bytes.map(|offset| format!("offset {}", binary_size(offset))),
            self.read_percent.map(|percent| format!("{percent} % reads")),
            self.delay_steps.map(|steps| format!("delay {steps}")),
            self.timing.map(timing),
            self.threads.map(|threads| counted(threads.into(), "thread")),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// `1 file`, `3 files`.
fn counted(many: u64, what: &str) -> String {
    format!("{many} {what}{}", if many == 1 { "" } else { "s" })
}

/// In the largest of three decimal units, each a thousand of the next, of which it is a whole number; `None`
/// where it is of none.
fn decimal(value: u64, units: [&str; 3]) -> Option<String> {
    let sizes = [1_000_000_000, 1_000_000, 1_000];
    let (unit, size) =
        units.into_iter().zip(sizes).find(|(_, size)| value > 0 && value.is_multiple_of(*size))?;
    Some(format!("{} {unit}", value / size))
}

/// `10 kB`, `1 GB`, `4 GiB`: decimal where it is a round decimal number, as the sizes of the experiments'
/// files are.
fn file_size(bytes: u64) -> String {
    decimal(bytes, ["GB", "MB", "kB"]).unwrap_or_else(|| binary_size(bytes))
}

/// `1.5 MiB`: at most three significant digits, binary prefix.
pub fn binary_size(bytes: u64) -> String {
    let mut value = bytes as f64;
    let mut unit = "B";
    for next in ["KiB", "MiB", "GiB", "TiB"] {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    let text = if value >= 100.0 || (value - value.round()).abs() < 0.005 {
        format!("{value:.0}")
    } else {
        format!("{value:.1}")
    };
    format!("{text} {unit}")
}

/// `50 µs`, `1 ms`: decimal, the unit in which it is a small whole number.
fn duration(ns: u64) -> String {
    decimal(ns, ["s", "ms", "µs"]).unwrap_or_else(|| format!("{ns} ns"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_names_every_field_with_its_unit() {
        let text = |text: &str| Some(text.to_owned());
        let point = Point {
            working_set_bytes: Some(1 << 20),
            pages: Some(Pages::Base),
            order: Some(Order::Strided),
            nodes: Some(96),
            threads: Some(2),
            operation: text("read"),
            timing: Some(Timing::Batch),
            stride_bytes: Some(256),
            clock: text("tsc"),
            size_bytes: Some(64),
            elements: Some(1000),
            chains: Some(4),
            distance: Some(8),
            offset_bytes: Some(60),
            delay_steps: Some(5),
            read_percent: Some(50),
            from_cpu: Some(0),
            to_cpu: Some(3),
            placement: text("same-cpu"),
            between: text("threads"),
            sleep_ns: Some(2_000_000_000),
            allocator: text("system"),
            state: text("fresh"),
            block_bytes: Some(4096),
            queue_depth: Some(16),
            path: text("loopback"),
            engine: text("psync"),
            file_bytes: Some(3_000_000),
            files: Some(100),
            rate_per_s: Some(500),
            transport: text("tcp"),
            message_bytes: Some(1536),
            concurrency: Some(7),
            connections: text("kept"),
            protocol: text("http/2"),
            streams: Some(2),
            sync: text("fsync"),
            draw: Some(1),
            isa: text("avx2"),
        };
        assert_eq!(
            point.label(),
            "tsc, read, system, 100 files, file 3 MB, block 4 KiB, depth 16, 500 a second, tcp, messages of \
                1.5 KiB, \
             2 streams, 7 at once, kept connections, http/2, loopback, fsync, psync, 64 B, 1000 elements, \
                after 2 s, \
             fresh, threads, same-cpu, CPU 0 and 3, 1 MiB, 96 nodes, stride 256 B, 4k pages, strided, 4 \
                chains, \
             prefetch 8 ahead, offset 60 B, 50 % reads, delay 5, in batches, 2 threads"
        );
        let one = Point {
            files: Some(1),
            streams: Some(1),
            chains: Some(1),
            distance: Some(0),
            timing: Some(Timing::Each),
            threads: Some(1),
            ..Point::default()
        };
        assert_eq!(one.label(), "1 file, 1 stream, 1 chain, no prefetch, one by one, 1 thread");
        let named = |pages, order| Point { pages, order, ..Point::default() }.label();
        assert_eq!(named(Some(Pages::Huge), Some(Order::PageLocal)), "huge pages, page-local");
        for order in [Order::Random, Order::Packed, Order::Spread, Order::Sequential] {
            let written = serde_json::to_value(order).expect("a name");
            assert_eq!(written, named(None, Some(order)), "as it is written");
        }
    }

    #[test]
    fn sizes_and_durations_have_at_most_three_digits_and_the_unit_that_people_write() {
        let sizes = [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1 KiB"),
            (1028, "1 KiB"),
            (1034, "1.0 KiB"),
            (99 << 10, "99 KiB"),
            ((100 << 10) + 512, "100 KiB"),
            (1 << 20, "1 MiB"),
            (5 << 29, "2.5 GiB"),
            (1 << 50, "1024 TiB"),
        ];
        for (bytes, text) in sizes {
            assert_eq!(binary_size(bytes), text, "{bytes}");
        }
        let durations = [(0, "0 ns"), (1, "1 ns"), (1_500, "1500 ns"), (3_000, "3 µs"), (1_000_000, "1 ms")];
        for (ns, text) in durations {
            assert_eq!(duration(ns), text, "{ns}");
        }
        let files =
            [(0, "0 B"), (10_000, "10 kB"), (2_000_000, "2 MB"), (1_000_000_000, "1 GB"), (4 << 30, "4 GiB")];
        for (bytes, text) in files {
            assert_eq!(file_size(bytes), text, "{bytes}");
        }
    }

    #[test]
    fn fields_that_do_not_apply_are_not_written() {
        let point = Point { working_set_bytes: Some(1024), pages: Some(Pages::Base), ..Point::default() };
        let text = serde_json::to_string(&point).expect("a point serialises");
        assert_eq!(text, r#"{"working_set_bytes":1024,"pages":"4k"}"#);
    }
}
