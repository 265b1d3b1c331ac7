//! A sweep among other people's files: nothing that latlab did not make disappears, and what killed runs left
//! does.
#![cfg(target_os = "linux")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use latlab_storage::{Entry, Folder, Place, Purpose, sweep};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use rustix::fs::{CWD, FileType, FlockOperation, Mode, flock, mknodat};
use rustix::process::geteuid;

/// Something that a user may have made.
#[derive(Clone, Debug)]
enum Foreign {
    File(Vec<u8>),
    Link { to_folder: bool },
    HardLink,
    Pipe,
    Folder(BTreeMap<String, Foreign>),
}

/// What a killed run left in a folder, besides the lock: files in the folder and in its directories.
#[derive(Clone, Debug)]
struct Leftover {
    files: BTreeSet<u8>,
    directories: BTreeMap<u8, BTreeSet<u8>>,
    fate: Fate,
}

#[derive(Clone, Debug)]
enum Fate {
    /// Goes.
    Left,
    /// A running process holds its lock: all of it stays.
    Held,
    /// Another user's: all of it stays.
    AnotherUsers,
    /// The user put this into it, and this into its directories: both stay, and so do the folder and its
    /// lock.
    Shared { inside: BTreeMap<String, Foreign>, deeper: BTreeMap<String, Foreign> },
}

/// What latlab calls a folder.
const EXACT: &str = r"\.latlab-[1-9][0-9]{0,6}-[1-9a-f][0-9a-f]{0,15}";
/// Nearly that.
const OTHER: &str = r"\.latlab(-|-notes|-1|-12-|--1|-0-1|-012-1|-12-01|-12-AB|-12-zz|-12-1\.txt|-12-1-2|-\+12-1)?|latlab-12-1|\.Latlab-12-1|\.latlab-99999999999-1";
/// What latlab calls some of what is in a folder.
const INNER: &str = "lock|f[017]|g[03]|[0-2]";
/// None of them is a name that latlab gives in a folder.
const FOREIGN: &str = r"thesis\.txt|lock\.txt|Lock|f|f01|F1|g-1|h1|01|\+1|1 |f1\.txt|x|\.f1|f99999999999999999999|99999999999999999999";

fn near_names() -> impl Strategy<Value = String> {
    prop_oneof![3 => OTHER, 1 => "\\.latlab-[-+0-9a-fA-F_. ]{0,12}", 3 => EXACT, 1 => inner_names()]
}

fn inner_names() -> impl Strategy<Value = String> {
    prop_oneof![3 => INNER, 2 => FOREIGN]
}

/// As a lock file's text, nearly.
fn texts() -> impl Strategy<Value = Vec<u8>> {
    let magic = magic();
    let (cut, longer) = (magic[..magic.len() - 1].to_vec(), [magic.as_slice(), b"\n"].concat());
    prop_oneof![
        2 => Just(Vec::new()),
        2 => prop::collection::vec(any::<u8>(), 1..60),
        1 => Just(cut),
        1 => Just(longer),
        1 => (0..magic.len()).prop_map(move |at| {
            let mut changed = magic.clone();
            changed[at] ^= 0x20;
            changed
        }),
    ]
}

fn foreign() -> impl Strategy<Value = Foreign> {
    let leaf = prop_oneof![
        4 => texts().prop_map(Foreign::File),
        1 => any::<bool>().prop_map(|to_folder| Foreign::Link { to_folder }),
        1 => Just(Foreign::HardLink),
        1 => Just(Foreign::Pipe),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop::collection::btree_map(inner_names(), inner, 0..5).prop_map(Foreign::Folder)
    })
}

/// A folder that latlab could have made, but for its lock.
fn impostor() -> impl Strategy<Value = Foreign> {
    let lock = prop_oneof![
        4 => texts().prop_map(Foreign::File),
        1 => Just(Foreign::Folder(BTreeMap::new())),
        1 => any::<bool>().prop_map(|to_folder| Foreign::Link { to_folder }),
        1 => Just(Foreign::Pipe),
    ];
    (prop::option::weighted(0.8, lock), prop::collection::btree_set(0..100, 1..4)).prop_map(
        |(lock, files)| {
            let mut inside: BTreeMap<_, _> = lock.into_iter().map(|lock| ("lock".to_owned(), lock)).collect();
            inside.extend(files.iter().map(|number| (format!("f{number}"), Foreign::File(b"mine".to_vec()))));
            Foreign::Folder(inside)
        },
    )
}

/// A folder that latlab could have made, but for its name.
fn misnamed() -> impl Strategy<Value = Foreign> {
    prop::collection::btree_set(0..100, 0..4).prop_map(|files| {
        let mut inside = BTreeMap::from([("lock".to_owned(), Foreign::File(magic()))]);
        inside.extend(files.iter().map(|number| (format!("f{number}"), Foreign::File(b"mine".to_vec()))));
        Foreign::Folder(inside)
    })
}

fn leftover() -> impl Strategy<Value = Leftover> {
    let some = || prop::collection::btree_map(FOREIGN, foreign(), 0..3);
    // Names of ours, but nothing that latlab makes.
    let disguised = prop::collection::btree_map(
        "f200|g201|202",
        prop_oneof![
            any::<bool>().prop_map(|to_folder| Foreign::Link { to_folder }),
            Just(Foreign::HardLink),
            Just(Foreign::Pipe),
        ],
        1..3,
    );
    let shared = (some(), some(), disguised).prop_map(|(mut inside, deeper, disguised)| {
        inside.extend(disguised);
        Fate::Shared { inside, deeper }
    });
    let fate =
        prop_oneof![4 => Just(Fate::Left), 1 => Just(Fate::Held), 1 => Just(Fate::AnotherUsers), 3 => shared];
    let numbers = || prop::collection::btree_set(0_u8..100, 0..6);
    (numbers(), prop::collection::btree_map(100_u8..105, numbers(), 0..3), fate)
        .prop_map(|(files, directories, fate)| Leftover { files, directories, fate })
}

/// The text of a lock, read from a folder that was just made.
fn magic() -> Vec<u8> {
    static MAGIC: OnceLock<Vec<u8>> = OnceLock::new();
    MAGIC.get_or_init(read_magic).clone()
}

fn read_magic() -> Vec<u8> {
    let own = Own::new();
    let place = Place::open(&own.0, Purpose::Any).expect("our own directory");
    let _folder = Folder::create(&place).expect("made");
    let folder = fs::read_dir(&own.0).expect("readable").next().expect("one folder").expect("readable");
    fs::read(folder.path().join("lock")).expect("readable")
}

/// A new directory beside the test binary, removed at the end.
struct Own(PathBuf);

impl Own {
    fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let binary = std::env::current_exe().expect("the test binary has a path");
        let name = format!("sweep-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = binary.with_file_name(name);
        fs::create_dir(&path).expect("the build folder can be written");
        Self(path)
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn make(path: &Path, what: &Foreign, precious: &Path) {
    match what {
        Foreign::File(text) => fs::write(path, text).expect("written"),
        Foreign::Link { to_folder: true } => symlink(precious, path).expect("linked"),
        Foreign::Link { to_folder: false } => symlink(precious.join("file"), path).expect("linked"),
        Foreign::HardLink => fs::hard_link(precious.join("file"), path).expect("linked"),
        Foreign::Pipe => mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("made"),
        Foreign::Folder(inside) => {
            fs::create_dir(path).expect("made");
            make_all(path, inside, precious);
        }
    }
}

fn make_all(folder: &Path, inside: &BTreeMap<String, Foreign>, precious: &Path) {
    for (name, what) in inside {
        make(&folder.join(name), what, precious);
    }
}

/// Makes it as a run does that is killed then; the lock of one that is held.
fn make_leftover(folder: &Path, what: &Leftover, magic: &[u8], precious: &Path) -> Option<File> {
    let name_of = |entry: Entry| entry.to_string();
    fs::DirBuilder::new().mode(0o700).create(folder).expect("made");
    fs::write(folder.join("lock"), magic).expect("written");
    for &number in &what.files {
        fs::write(folder.join(name_of(Entry::File(number.into()))), b"data").expect("written");
    }
    for (&number, files) in &what.directories {
        let directory = folder.join(name_of(Entry::Directory(number.into())));
        fs::create_dir(&directory).expect("made");
        for &number in files {
            let made =
                if number % 2 == 0 { Entry::File(number.into()) } else { Entry::Renamed(number.into()) };
            fs::write(directory.join(name_of(made)), b"data").expect("written");
        }
        if let Fate::Shared { deeper, .. } = &what.fate {
            make_all(&directory, deeper, precious);
        }
    }
    match &what.fate {
        Fate::Left => None,
        Fate::Held => {
            let lock = File::open(folder.join("lock")).expect("there");
            flock(&lock, FlockOperation::NonBlockingLockExclusive).expect("free");
            Some(lock)
        }
        Fate::AnotherUsers => {
            chown(folder, Some(12_345), None).expect("root may");
            None
        }
        Fate::Shared { inside, .. } => {
            make_all(folder, inside, precious);
            None
        }
    }
}

/// Everything below a directory: its kind and what it holds.
fn seen(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![directory.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("readable") {
            let path = entry.expect("readable").path();
            let kind = fs::symlink_metadata(&path).expect("there").file_type();
            let content = if kind.is_symlink() {
                fs::read_link(&path).expect("a link").as_os_str().as_bytes().to_vec()
            } else if kind.is_fifo() {
                b"pipe".to_vec()
            } else if kind.is_dir() {
                folders.push(path.clone());
                b"folder".to_vec()
            } else {
                fs::read(&path).expect("readable")
            };
            found.insert(path, content);
        }
    }
    found
}

/// Whether latlab gives such a name, told in another way than it does.
fn is_exact(name: &str) -> bool {
    let parts: Vec<&str> = name.strip_prefix(".latlab-").unwrap_or_default().split('-').collect();
    let [process, time] = parts.as_slice() else { return false };
    let first = |text: &str| text.chars().next().unwrap_or('0');
    first(process) != '0'
        && process.len() <= 10
        && process.chars().all(|letter| letter.is_ascii_digit())
        && (first(time) != '0' || *time == "0")
        && time.chars().all(|letter| matches!(letter, '0'..='9' | 'a'..='f'))
}

/// An empty file or folder of such a name holds nothing that could be lost.
fn may_go(name: &str, what: &Foreign) -> bool {
    let is_empty = match what {
        Foreign::File(text) => text.is_empty(),
        Foreign::Folder(inside) => inside.is_empty(),
        Foreign::Link { .. } | Foreign::HardLink | Foreign::Pipe => false,
    };
    is_empty && is_exact(name)
}

fn config() -> ProptestConfig {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let cases = number("LATLAB_FUZZ").unwrap_or(10_000).div_ceil(100);
    ProptestConfig {
        cases: u32::try_from(cases).expect("not that many"),
        // Every run tries the same trees, unless another seed is asked for.
        rng_seed: RngSeed::Fixed(number("LATLAB_FUZZ_SEED").unwrap_or(15)),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn fuzz_a_sweep_removes_all_that_killed_runs_left_and_nothing_else(
        mut foreign in prop::collection::btree_map(near_names(), foreign(), 0..12),
        impostors in prop::collection::btree_map(EXACT, impostor(), 1..4),
        misnamed in prop::collection::btree_map(OTHER, misnamed(), 1..4),
        mut leftovers in prop::collection::btree_map(EXACT, leftover(), 1..6),
    ) {
        foreign.extend(impostors);
        foreign.extend(misnamed);
        foreign.retain(|name, _| !leftovers.contains_key(name));
        let (own, elsewhere, magic) = (Own::new(), Own::new(), magic());
        let precious = elsewhere.0.as_path();
        fs::write(precious.join("file"), b"precious").expect("written");
        make_all(&own.0, &foreign, precious);
        let mut locks = BTreeMap::new();
        for (name, what) in &mut leftovers {
            if matches!(what.fate, Fate::AnotherUsers) && !geteuid().is_root() {
                what.fate = Fate::Held;
            }
            locks.insert(name.clone(), make_leftover(&own.0.join(name), what, &magic, precious));
        }
        let (before, precious_before) = (seen(&own.0), seen(precious));

        let place = Place::open(&own.0, Purpose::Any).expect("our own directory");
        sweep(&place).expect("listed");

        let mut expected = before.clone();
        for (name, what) in &leftovers {
            let folder = own.0.join(name);
            match &what.fate {
                Fate::Left => expected.retain(|path, _| !path.starts_with(&folder)),
                Fate::Held | Fate::AnotherUsers => {}
                Fate::Shared { deeper, .. } => {
                    for number in &what.files {
                        expected.remove(&folder.join(Entry::File((*number).into()).to_string()));
                    }
                    for (number, files) in &what.directories {
                        let directory = folder.join(Entry::Directory((*number).into()).to_string());
                        for number in files {
                            expected.remove(&directory.join(format!("f{number}")));
                            expected.remove(&directory.join(format!("g{number}")));
                        }
                        if deeper.is_empty() {
                            expected.remove(&directory);
                        }
                    }
                }
            }
        }
        let after = seen(&own.0);
        for (path, content) in &expected {
            let name = path.strip_prefix(&own.0).expect("below").to_str().expect("ASCII");
            if !foreign.get(name).is_some_and(|what| may_go(name, what)) {
                prop_assert_eq!(after.get(path), Some(content), "{} was changed", name);
            }
        }
        for path in after.keys() {
            prop_assert!(expected.contains_key(path), "{} was left", path.display());
        }
        prop_assert_eq!(seen(precious), precious_before);

        // What a run held goes when it ends.
        locks.clear();
        sweep(&place).expect("listed");
        for (name, what) in &leftovers {
            let is_gone = !own.0.join(name).exists();
            prop_assert_eq!(is_gone, matches!(what.fate, Fate::Left | Fate::Held), "{}", name);
        }
    }
}
