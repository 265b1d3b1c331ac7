//! What a system call, a kernel function, a function of user code means for the ledger: data in
//! `rules/v1.toml`, compiled here.

use std::collections::HashMap;
use std::sync::OnceLock;

use serde::Deserialize;

use crate::Category;

/// What a wait in `poll`, `select` or `epoll_wait` is of which no more is known.
const READINESS: &str = "readiness";
const TEXT: &str = include_str!("../rules/v1.toml");
/// Callers that are looked at above the running function; an allocator calls itself no deeper.
pub(crate) const CALLERS: usize = 12;

/// A category and what of it: an index into what [`Rules`] knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Reason(pub u16);

/// What the descriptor of a system call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// A file, a directory, a block device.
    File,
    /// A socket of any family.
    Socket,
    /// A pipe or FIFO.
    Pipe,
    /// A terminal.
    Terminal,
    /// An event counter.
    Event,
    /// A timer.
    Timer,
    /// A process.
    Process,
    /// Not looked at, or something else.
    Other,
}

impl Kind {
    /// The kind by what the link in `/proc/PID/fd` says.
    pub(crate) fn of_link(link: &str) -> Self {
        if link.starts_with("socket:") {
            Self::Socket
        } else if link.starts_with("pipe:") {
            Self::Pipe
        } else if ["/dev/pts/", "/dev/tty", "/dev/console"].iter().any(|start| link.starts_with(start)) {
            Self::Terminal
        } else if link.starts_with("anon_inode:[eventfd") {
            Self::Event
        } else if link.starts_with("anon_inode:[timerfd") {
            Self::Timer
        } else if link.starts_with("anon_inode:[pidfd") || link.starts_with("pidfd:") {
            Self::Process
        } else if link.starts_with("anon_inode:") {
            Self::Other
        } else {
            Self::File
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct File {
    version: u32,
    wait_call: Vec<Call>,
    wait_frame: Vec<Frame>,
    busy_frame: Vec<Frame>,
    user_function: Vec<User>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    category: Category,
    part: String,
    of: Option<Kind>,
    names: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Frame {
    category: Category,
    part: String,
    any: Vec<Pattern>,
    #[serde(default)]
    with: Vec<Pattern>,
    #[serde(default)]
    allocating: bool,
    /// Of category and part; given once the file is read.
    #[serde(skip)]
    reason: Reason,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct User {
    category: Category,
    part: String,
    #[serde(default, rename = "where")]
    place: Place,
    #[serde(default)]
    any: Vec<Pattern>,
    #[serde(default)]
    objects: Vec<Pattern>,
    #[serde(default)]
    threads: Vec<Pattern>,
    /// As in a [`Frame`].
    #[serde(skip)]
    reason: Reason,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Place {
    Leaf,
    #[default]
    Stack,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
enum Pattern {
    Is(String),
    Begins(String),
    Ends(String),
    Has(String),
}

impl From<String> for Pattern {
    fn from(text: String) -> Self {
        match (text.strip_prefix('*'), text.strip_suffix('*')) {
            (Some(""), _) => Self::Has(String::new()),
            (Some(rest), Some(_)) => Self::Has(rest.strip_suffix('*').unwrap_or(rest).to_owned()),
            (Some(rest), None) => Self::Ends(rest.to_owned()),
            (None, Some(rest)) => Self::Begins(rest.to_owned()),
            (None, None) => Self::Is(text),
        }
    }
}

impl Pattern {
    fn fits(&self, name: &str) -> bool {
        match self {
            Self::Is(text) => name == text,
            Self::Begins(text) => name.starts_with(text.as_str()),
            Self::Ends(text) => name.ends_with(text.as_str()),
            Self::Has(text) => name.contains(text.as_str()),
        }
    }
}

fn fits(patterns: &[Pattern], name: &str) -> bool {
    patterns.iter().any(|pattern| pattern.fits(name))
}

/// Which rules of a table a function belongs to; found once a function, then combined over a stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fit {
    any: u64,
    with: u64,
}

impl Fit {
    /// Of a stack, from those of its functions.
    pub(crate) fn and(self, other: Self) -> Self {
        Self { any: self.any | other.any, with: self.with | other.with }
    }
}

/// The compiled rules.
#[derive(Debug)]
pub(crate) struct Rules {
    version: u32,
    reasons: Vec<(Category, String)>,
    calls: HashMap<String, Vec<(Option<Kind>, Reason)>>,
    wait: Vec<Frame>,
    busy: Vec<Frame>,
    user: Vec<User>,
    whole: Vec<Reason>,
    /// Reading because a page of a file was touched.
    reads_for_faults: Option<Reason>,
    /// Waiting in `poll`, `select` or `epoll_wait`: for whatever, and for sockets.
    readiness: [Option<Reason>; 2],
}

impl Rules {
    /// The rules that come with the program.
    ///
    /// # Panics
    /// Never: a test reads the file.
    pub(crate) fn built_in() -> &'static Self {
        static RULES: OnceLock<Rules> = OnceLock::new();
        RULES.get_or_init(|| Self::parse(TEXT).expect("the built-in rules are tested"))
    }

    fn parse(text: &str) -> Result<Self, toml::de::Error> {
        let mut file: File = toml::from_str(text)?;
        let mut reasons: Vec<(Category, String)> = Vec::new();
        let mut intern = |category: Category, part: &str| {
            let at = reasons.iter().position(|known| known.0 == category && known.1 == part).unwrap_or_else(
                || {
                    reasons.push((category, part.to_owned()));
                    reasons.len() - 1
                },
            );
            Reason(u16::try_from(at).unwrap_or(u16::MAX))
        };
        let whole = Category::ALL.iter().map(|category| intern(*category, "")).collect();
        let mut calls: HashMap<String, Vec<(Option<Kind>, Reason)>> = HashMap::new();
        for rule in &file.wait_call {
            let reason = intern(rule.category, &rule.part);
            for name in &rule.names {
                calls.entry(name.clone()).or_default().push((rule.of, reason));
            }
        }
        for rule in file.wait_frame.iter_mut().chain(&mut file.busy_frame) {
            rule.reason = intern(rule.category, &rule.part);
        }
        for rule in &mut file.user_function {
            rule.reason = intern(rule.category, &rule.part);
        }
        let mut rules = Self {
            version: file.version,
            calls,
            wait: file.wait_frame,
            busy: file.busy_frame,
            user: file.user_function,
            whole,
            reads_for_faults: None,
            readiness: [None; 2],
            reasons,
        };
        rules.reads_for_faults = rules.named(Category::FileIoCpu, "reading for page faults");
        rules.readiness =
            [READINESS, "readiness of sockets"].map(|part| rules.named(Category::Network, part));
        Ok(rules)
    }

    /// Of the file: raised when a rule means something else.
    pub(crate) fn version(&self) -> u32 {
        self.version
    }

    pub(crate) fn category(&self, reason: Reason) -> Category {
        self.reasons.get(usize::from(reason.0)).map_or(Category::Unexplained, |reason| reason.0)
    }

    /// What of its category a reason is; empty for the category as a whole.
    pub(crate) fn part(&self, reason: Reason) -> &str {
        self.reasons.get(usize::from(reason.0)).map_or("", |reason| reason.1.as_str())
    }

    pub(crate) fn whole(&self, category: Category) -> Reason {
        self.whole[category.index()]
    }

    /// The reason of this category and part, if a rule has it.
    pub(crate) fn named(&self, category: Category, part: &str) -> Option<Reason> {
        let at = self.reasons.iter().position(|known| known.0 == category && known.1 == part)?;
        u16::try_from(at).ok().map(Reason)
    }

    /// Whether a wait is for the outside, whatever else the program does. Who waits for readiness may wait
    /// for the program's own threads and processes, as a loop does for those that read files for it.
    pub(crate) fn is_outside(&self, reason: Reason) -> bool {
        self.category(reason).is_outside() && !self.readiness.contains(&Some(reason))
    }

    /// Whether a wait is for descriptors of which it is not known what they are.
    pub(crate) fn is_readiness(&self, reason: Reason) -> bool {
        self.readiness[0] == Some(reason)
    }

    /// Whether a reason for running in the kernel is a page fault.
    pub(crate) fn is_fault(&self, reason: Reason) -> bool {
        self.category(reason) == Category::PageFaults || self.reads_for_faults == Some(reason)
    }

    /// Why a thread waits in a system call; `None` for calls of which nothing is said.
    pub(crate) fn wait_in_call(&self, name: &str, kind: Kind) -> Option<Reason> {
        let rules = self.calls.get(name)?;
        rules.iter().find(|(of, _)| of.is_none_or(|of| of == kind)).map(|(_, reason)| *reason)
    }

    /// Whether the first argument of a call is a descriptor whose kind decides.
    pub(crate) fn depends_on_descriptor(&self, name: &str) -> bool {
        self.calls.get(name).is_some_and(|rules| rules.iter().any(|(of, _)| of.is_some()))
    }

    /// What a kernel function says of a waiting thread.
    pub(crate) fn wait_fit(&self, function: &str) -> Fit {
        fit(&self.wait, function)
    }

    /// Why a thread waits whose stack has this fit.
    pub(crate) fn wait_by(&self, stack: Fit) -> Option<Reason> {
        first(&self.wait, stack, false)
    }

    /// What a kernel function says of a running thread.
    pub(crate) fn busy_fit(&self, function: &str) -> Fit {
        fit(&self.busy, function)
    }

    /// What a thread does in the kernel whose stack has this fit; `allocating`: the allocator's user code led
    /// there.
    pub(crate) fn busy_by(&self, stack: Fit, allocating: bool) -> Option<Reason> {
        first(&self.busy, stack, allocating)
    }

    /// What a function of user code says: as the running one, and as a caller.
    pub(crate) fn user_fit(&self, function: &str, object: &str) -> (u64, u64) {
        let (mut leaf, mut caller) = (0, 0);
        for (at, rule) in self.user.iter().enumerate().take(64) {
            let here = rule.objects.is_empty() || fits(&rule.objects, object);
            if !here || !rule.threads.is_empty() || !fits(&rule.any, function) {
                continue;
            }
            leaf |= 1 << at;
            if rule.place == Place::Stack {
                caller |= 1 << at;
            }
        }
        (leaf, caller)
    }

    /// What every function of a thread of this name says.
    pub(crate) fn thread_fit(&self, thread: &str) -> u64 {
        let rules = self.user.iter().enumerate().take(64);
        rules
            .filter(|(_, rule)| !rule.threads.is_empty() && fits(&rule.threads, thread))
            .fold(0, |fit, (at, _)| fit | 1 << at)
    }

    /// What user code does whose stack has this fit.
    pub(crate) fn user_by(&self, stack: u64) -> Option<Reason> {
        let at = usize::try_from(stack.trailing_zeros()).ok()?;
        self.user.get(at).map(|rule| rule.reason)
    }

    /// Whether a fit of user code has the allocator in it.
    pub(crate) fn is_allocating(&self, stack: u64) -> bool {
        self.user
            .iter()
            .enumerate()
            .take(64)
            .any(|(at, rule)| stack & (1 << at) != 0 && self.category(rule.reason) == Category::Allocator)
    }
}

fn fit(rules: &[Frame], function: &str) -> Fit {
    let mut found = Fit::default();
    for (at, rule) in rules.iter().enumerate().take(64) {
        if fits(&rule.any, function) {
            found.any |= 1 << at;
        }
        if fits(&rule.with, function) {
            found.with |= 1 << at;
        }
    }
    found
}

fn first(rules: &[Frame], stack: Fit, allocating: bool) -> Option<Reason> {
    let mut rest = stack.any;
    while rest != 0 {
        let at = usize::try_from(rest.trailing_zeros()).ok()?;
        rest &= rest - 1;
        let rule = rules.get(at)?;
        let together = rule.with.is_empty() || stack.with & (1 << at) != 0;
        if together && (allocating || !rule.allocating) {
            return Some(rule.reason);
        }
    }
    None
}

#[cfg(test)]
mod tests;
