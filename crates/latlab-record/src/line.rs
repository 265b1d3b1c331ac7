//! The run file: JSON Lines, append-only; a header, one record a line, a footer.
//!
//! A line is appended and flushed as each record ends, so a file without a footer is a run that
//! was cut short and is read as one.

use std::collections::BTreeMap;

use latlab_clock::ClockFacts;
use latlab_machine::Machine;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::record::{Record, is_default};

/// Name that the header's `schema` field begins with.
pub const SCHEMA_NAME: &str = "latlab.run";
/// `major.minor`. A reader ignores unknown fields of a newer minor version and refuses a newer major one.
pub const SCHEMA_VERSION: &str = "2.0";

/// What made the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tool {
    /// Version of latlab.
    pub version: String,
    /// Commit that it was built from, when known.
    pub commit: Option<String>,
    /// Compiler, target and profile of the measuring core.
    pub build: String,
}

/// How much time a run may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// About half a minute.
    Quick,
    /// About a minute and a half.
    #[default]
    Standard,
    /// About ten minutes.
    Thorough,
}

impl Profile {
    /// 0, 1 or 2: the place of its entry in a table by profile.
    pub fn nth(self) -> u8 {
        self as u8
    }

    /// Rounds of a run.
    pub fn rounds(self) -> u32 {
        self.of([4, 6, 12])
    }

    /// Its entry of three: quick, standard, thorough.
    pub fn of<T: Copy>(self, entries: [T; 3]) -> T {
        entries[usize::from(self.nth())]
    }
}

/// What the user asked for, after defaults.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Settings {
    /// Deadline by name.
    pub profile: Profile,
    /// Globs of probe ids to run; empty = all.
    pub only: Vec<String>,
    /// Globs of probe ids to leave out.
    pub skip: Vec<String>,
    /// Directory whose file system is measured.
    #[schemars(extend("private" = true))]
    pub dir: Option<String>,
    /// A file of the user's to read from instead of a test file of ours.
    #[schemars(extend("private" = true))]
    pub file: Option<String>,
    /// A directory whose files are read for the first time since the machine was started.
    #[schemars(extend("private" = true))]
    pub first_touch: Option<String>,
    /// Whether the page cache of the whole machine may be dropped (needs root).
    pub drop_caches: bool,
    /// Seconds of wall time for the whole run, instead of the profile's.
    pub budget_s: Option<f64>,
    /// Most bytes that may be written.
    pub max_bytes: Option<u64>,
    /// CPUs that may be used, instead of all allowed ones.
    pub cpus: Option<Vec<u32>>,
    /// Delay that is put between the two sides of network probes, there and back together, milliseconds.
    pub delay_ms: Option<f64>,
    /// Rate of the path between the two sides of network probes, in each direction, 10^6 bits a second.
    pub rate_mbit: Option<f64>,
    /// A delay by its name: `same-rack`, `same-city`, `london-california`.
    pub distance: Option<String>,
    /// HTTP or HTTPS URL that `network.http` asks, instead of a server of ours.
    #[schemars(extend("private" = true))]
    pub url: Option<String>,
    /// File with the secret that the server there shares with us.
    #[schemars(extend("private" = true))]
    pub secret_file: Option<String>,
    /// Requests a second that `network.http` sends, instead of its own rates.
    pub requests_per_s: Option<u64>,
    /// Seed of every random choice.
    pub seed: u64,
    /// One CPU, no saturating probes, idle I/O class.
    pub gentle: bool,
}

/// One line of the plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedProbe {
    /// Id.
    pub id: String,
    /// Points that it would like to measure.
    pub points: u64,
    /// Seconds set aside for it.
    pub seconds: f64,
    /// Most memory that it holds at once, bytes.
    pub memory_bytes: u64,
    /// Most bytes that it writes to files.
    pub written_bytes: u64,
    /// CPUs that it keeps busy at once.
    pub cpus: u32,
}

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Good to know.
    Note,
    /// Some figures are less certain.
    Caution,
    /// Some figures are wrong or missing unless this is lifted.
    Warning,
}

/// One thing on this machine that distorts figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Stable name: `clock-quantum`.
    pub id: String,
    /// How much it matters.
    pub severity: Severity,
    /// One line: what it is.
    pub title: String,
    /// What it does to which figures, with its size.
    pub effect: String,
    /// What would lift it; absent when nothing would.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// First line of a run file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Header {
    /// `latlab.run/2.0`.
    pub schema: String,
    /// Unique name of the run.
    pub id: String,
    /// Wall-clock time at the start, RFC 3339 with offset.
    pub started: String,
    /// What measured.
    pub tool: Tool,
    /// What was measured on.
    #[serde(deserialize_with = "latlab_machine::as_far_as_known")]
    pub machine: Machine,
    /// The clock as it measured itself.
    pub clock: ClockFacts,
    /// What was asked for.
    pub settings: Settings,
    /// What was planned.
    pub plan: Vec<PlannedProbe>,
    /// Number of rounds that were planned, those of one pass: runs of few probes go on until their figures
    /// agree. 0 in a file of version 1, which has one.
    #[serde(default)]
    pub rounds: u32,
    /// CPUs that the rounds take in turn, in the order of their turns.
    #[serde(default)]
    pub cpus: Vec<u32>,
    /// What distorts figures here.
    pub doctor: Vec<Finding>,
}

/// Sums over the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Totals {
    /// Records written, by kind.
    pub records: BTreeMap<String, u64>,
    /// Wall seconds.
    pub seconds: f64,
    /// Bytes written to files by the probes.
    pub written_bytes: u64,
    /// Blocks that a drifting reference marked.
    pub disturbed_blocks: u64,
    /// Times that the worker process had to be started again.
    pub worker_restarts: u64,
}

/// Last line of a complete run file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Footer {
    /// Wall-clock time at the end, RFC 3339 with offset.
    pub ended: String,
    /// `completed`, `interrupted`, `deadline` or `failed: <reason>`.
    pub stopped_by: String,
    /// Sums.
    pub totals: Totals,
    /// Version of the fold that made `figures`; 0 = none are stored. A reader whose fold has another version
    /// folds the lines again.
    #[serde(default, skip_serializing_if = "is_default")]
    pub fold: u32,
    /// The figures of the run without their shapes: no values, histograms, tail and blocks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<Record>,
    /// What else happened while it lasted; absent where nothing of that could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meanwhile: Option<Box<Meanwhile>>,
}

/// What else happened while a run lasted. Absent = could not be read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Meanwhile {
    /// Share of the time of windows in which the measuring thread was ready and waited for a CPU.
    pub delayed: Option<f64>,
    /// Share of that time in which a CPU quota stopped it.
    pub throttled: Option<f64>,
    /// Share of that time that the host took from its CPU (as the guest kernel was told).
    pub stolen: Option<f64>,
    /// Median frequency of the core, GHz.
    pub core_ghz: Option<f64>,
    /// CPUs that other programs kept busy, mean over the run.
    pub other_cpus: Option<f64>,
    /// Bytes a second that other programs read from and wrote to the measured disk.
    pub other_disk_bytes_per_s: Option<f64>,
}

/// One line of a run file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "line", rename_all = "lowercase")]
pub enum Line {
    /// The first.
    Header(Box<Header>),
    /// Any number.
    Record(Box<Record>),
    /// The last, if the run came to its end.
    Footer(Footer),
}

/// A whole run as `measure --json` prints it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunFile {
    /// The header's fields, at the top level.
    #[serde(flatten)]
    pub header: Header,
    /// The figures, derived ones included: what the rounds fold into.
    pub records: Vec<Record>,
    /// What each round measured, in the order of the file; empty of a file of version 1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<Record>,
    /// Absent when the run was cut short.
    #[serde(default)]
    pub footer: Option<Footer>,
}

/// The JSON Schema of a line and of a whole run. What the findings of each probe hold is not in it yet.
pub fn schema() -> serde_json::Value {
    let mut generator = schemars::SchemaGenerator::default();
    let line = generator.subschema_for::<Line>();
    let whole = generator.subschema_for::<RunFile>();
    serde_json::json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": format!("{SCHEMA_NAME}/{SCHEMA_VERSION}"),
        "description": "A latlab run: JSON Lines, each line a `line`; `whole` is what `latlab measure \
            --json` prints.",
        "anyOf": [line, whole],
        "$defs": generator.take_definitions(true),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_picks_its_entry_of_three() {
        let profiles = [Profile::Quick, Profile::Standard, Profile::Thorough];
        assert_eq!(profiles.map(Profile::nth), [0, 1, 2]);
        assert_eq!(profiles.map(|profile| profile.of(['q', 's', 't'])), ['q', 's', 't']);
    }
}
