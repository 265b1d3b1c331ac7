//! Small programs' files for tests, and inputs made from them by changing bytes.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsRawFd as _;

#[derive(Clone, Debug, Default)]
pub(crate) struct Section {
    pub(crate) name: &'static str,
    pub(crate) kind: u32,
    pub(crate) flags: u64,
    pub(crate) address: u64,
    pub(crate) bytes: Vec<u8>,
    /// The length that its header claims, if it is not that of its bytes.
    pub(crate) claims: Option<u64>,
    pub(crate) link: u32,
    pub(crate) each: u64,
}

pub(crate) const CODE_AT: u64 = 0x40_1000;
const PROGRAM: u32 = 1;
const SYMBOLS: u32 = 2;
const TEXTS: u32 = 3;
pub(crate) const NOTE: u32 = 7;
pub(crate) const COMPRESSED: u64 = 0x800;

pub(crate) fn debug(name: &'static str, bytes: Vec<u8>) -> Section {
    Section { name, kind: PROGRAM, bytes, ..Section::default() }
}

/// A program with one function, `name`, of 64 bytes at [`CODE_AT`].
pub(crate) fn named(name: &str) -> Vec<Section> {
    let mut texts = vec![0];
    texts.extend(name.bytes().chain([0]));
    let mut symbols = vec![0; 24];
    symbols.extend(1_u32.to_le_bytes());
    // A function that others may use, in section 1.
    symbols.extend([0x12, 0, 1, 0]);
    symbols.extend(CODE_AT.to_le_bytes());
    symbols.extend(64_u64.to_le_bytes());
    let code = Section {
        name: ".text",
        kind: PROGRAM,
        flags: 6,
        address: CODE_AT,
        bytes: vec![0x90; 64],
        ..Section::default()
    };
    let symbols =
        Section { name: ".symtab", kind: SYMBOLS, bytes: symbols, link: 3, each: 24, ..Section::default() };
    let texts = Section { name: ".strtab", kind: TEXTS, bytes: texts, ..Section::default() };
    vec![code, symbols, texts]
}

/// The bytes of the file, as `ld` would write it. All of it is loaded 0x400000 up, which puts code where its
/// section says if it is padded.
pub(crate) fn elf(sections: &[Section]) -> Vec<u8> {
    let mut names = vec![0];
    let mut bytes = vec![0; 0x1000];
    let mut headers = vec![0; 64];
    let index = Section {
        name: ".shstrtab",
        kind: TEXTS,
        bytes: sections.iter().map(|section| section.name).chain([".shstrtab"]).fold(
            vec![0],
            |mut all, name| {
                all.extend(name.bytes().chain([0]));
                all
            },
        ),
        ..Section::default()
    };
    for section in sections.iter().chain([&index]) {
        let (name, offset) = (names.len(), bytes.len());
        names.extend(section.name.bytes().chain([0]));
        let length = section.claims.unwrap_or(section.bytes.len() as u64);
        headers.extend(u32::try_from(name).unwrap().to_le_bytes());
        headers.extend(section.kind.to_le_bytes());
        for field in [section.flags, section.address, offset as u64, length] {
            headers.extend(field.to_le_bytes());
        }
        headers.extend(section.link.to_le_bytes());
        headers.extend(0_u32.to_le_bytes());
        headers.extend(1_u64.to_le_bytes());
        headers.extend(section.each.to_le_bytes());
        bytes.extend(&section.bytes);
    }
    let at = bytes.len() as u64;
    let many = u16::try_from(sections.len() + 2).unwrap();
    let loaded = at;
    bytes.extend(headers);
    let mut head = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    // An executable for x86-64.
    head.extend([2, 0, 62, 0, 1, 0, 0, 0]);
    for field in [CODE_AT, 64, at] {
        head.extend(field.to_le_bytes());
    }
    head.extend(0_u32.to_le_bytes());
    for field in [64, 56, 1, 64, many, many - 1] {
        head.extend(field.to_le_bytes());
    }
    head.extend([1, 0, 0, 0, 5, 0, 0, 0]);
    for field in [0, 0x40_0000, 0x40_0000, loaded, loaded, 0x1000_u64] {
        head.extend(field.to_le_bytes());
    }
    bytes[..head.len()].copy_from_slice(&head);
    bytes
}

fn with_length(bytes: Vec<u8>) -> Vec<u8> {
    let mut whole = u32::try_from(bytes.len()).unwrap().to_le_bytes().to_vec();
    whole.extend(bytes);
    whole
}

/// DWARF 4: a unit in `/src` with two files, of 64 bytes of code; `rows` is the program after its first
/// address.
pub(crate) fn dwarf(rows: &[u8]) -> Vec<Section> {
    // One unit without children: name, folder, lines, first address, length.
    let kinds = vec![1, 0x11, 0, 0x03, 0x08, 0x1b, 0x08, 0x10, 0x17, 0x11, 0x01, 0x12, 0x06, 0, 0, 0];
    let mut unit = vec![4, 0, 0, 0, 0, 0, 8, 1];
    unit.extend(b"main.c\0/src\0\0\0\0\0");
    unit.extend(CODE_AT.to_le_bytes());
    unit.extend(64_u32.to_le_bytes());
    let mut header = vec![1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1];
    header.extend(b"/usr/include\0parts\0\0main.c\0\0\0\0list.h\0\x02\0\0\0");
    let mut lines = vec![4, 0];
    lines.extend(with_length(header));
    lines.extend([0, 9, 2]);
    lines.extend(CODE_AT.to_le_bytes());
    lines.extend(rows);
    vec![
        debug(".debug_abbrev", kinds),
        debug(".debug_info", with_length(unit)),
        debug(".debug_line", with_length(lines)),
    ]
}

/// Line 10 of the first file for 16 bytes, line 12 of the second for 48.
pub(crate) const ROWS: [u8; 15] = [3, 9, 1, 2, 16, 4, 2, 3, 2, 1, 2, 48, 0, 1, 1];

/// DWARF 4: a unit with a structure of so many bytes, whose fields have a name, an offset and a type of so
/// many bytes in another unit.
pub(crate) fn structure(name: &str, bytes: u16, fields: &[(&str, u8, u16)]) -> Vec<Section> {
    // A unit; a structure with its name and size; a field with its name, place and type; a type with its
    // size. The first two have children.
    let kinds = [
        &[1, 0x11, 1, 0, 0][..],
        &[2, 0x13, 1, 0x03, 0x08, 0x0b, 0x05, 0, 0],
        &[3, 0x0d, 0, 0x03, 0x08, 0x38, 0x0f, 0x49, 0x10, 0, 0],
        &[4, 0x24, 0, 0x0b, 0x05, 0, 0, 0],
    ];
    let head = [4, 0, 0, 0, 0, 0, 8, 1];
    let mut types = head.to_vec();
    let mut unit = head.to_vec();
    unit.push(2);
    unit.extend(name.bytes().chain([0]).chain(bytes.to_le_bytes()));
    for (name, offset, bytes) in fields {
        unit.push(3);
        unit.extend(name.bytes().chain([0, *offset]));
        // Behind the length of its unit.
        unit.extend(u32::try_from(4 + types.len()).unwrap().to_le_bytes());
        types.push(4);
        types.extend(bytes.to_le_bytes());
    }
    types.push(0);
    unit.extend([0, 0]);
    let units = [with_length(types), with_length(unit)].concat();
    vec![debug(".debug_abbrev", kinds.concat()), debug(".debug_info", units)]
}

/// A file of these bytes that has no name.
pub(crate) fn file(bytes: &[u8]) -> File {
    static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("latlab-sample-{}-{count}", std::process::id()));
    let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    file.set_len(bytes.len() as u64).unwrap();
    if bytes.is_empty() {
        return file;
    }
    // Another test compares what this process writes by calls.
    // SAFETY: a new mapping, as long as the file and the bytes, that nobody else knows.
    unsafe {
        let (access, length) = (libc::PROT_READ | libc::PROT_WRITE, bytes.len());
        let at = libc::mmap(std::ptr::null_mut(), length, access, libc::MAP_SHARED, file.as_raw_fd(), 0);
        assert_ne!(at, libc::MAP_FAILED);
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), at.cast(), length);
        libc::munmap(at, length);
    }
    file
}

/// What a C compiler makes with the debug information that is usual here; `None` without one.
pub(crate) fn compiled() -> Option<Vec<u8>> {
    let path = std::env::temp_dir().join(format!("latlab-compiled-{}", std::process::id()));
    let mut compiler = std::process::Command::new("cc")
        .args(["-g", "-O1", "-x", "c", "-", "-nostdlib", "-shared", "-fPIC", "-o"])
        .arg(&path)
        .stdin(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .ok()?;
    let source = b"static int half(int a) { return a / 2; }\nint twice(int a) {\n  int sum = 0;\n  while (a--) sum += half(a) * sum;\n  return sum;\n}\n";
    compiler.stdin.take()?.write_all(source).ok()?;
    let done = compiler.wait().ok()?.success();
    let bytes = std::fs::read(&path).ok().filter(|_| done);
    let _ = std::fs::remove_file(&path);
    bytes
}

/// Numbers that are the same for the same seed.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap() % bound.max(1)
    }

    /// A few changes: bytes, numbers at the limits, pieces moved or cut off.
    pub(crate) fn change(&mut self, bytes: &mut Vec<u8>) {
        const LIMITS: [u64; 10] =
            [0, 1, 0x7f, 0xff, 0x7fff_ffff, 0xffff_ffff, 1 << 62, 1 << 63, u64::MAX - 1, u64::MAX];
        for _ in 0..=self.below(6) {
            if bytes.is_empty() {
                return;
            }
            let at = self.below(bytes.len());
            let rest = bytes.len() - at;
            match self.below(8) {
                0..3 => bytes[at] = u8::try_from(self.below(256)).unwrap(),
                3 => bytes[at] ^= 1 << self.below(8),
                4 | 5 => {
                    let number = LIMITS[self.below(LIMITS.len())].to_le_bytes();
                    let length = [1, 2, 4, 8][self.below(4)].min(rest);
                    bytes[at..at + length].copy_from_slice(&number[..length]);
                }
                6 => {
                    let length = self.below(64.min(rest));
                    let from = self.below(bytes.len() - length);
                    bytes.copy_within(from..from + length, at);
                }
                _ if self.below(8) == 0 => bytes.truncate(at),
                _ => bytes[at] = bytes[at].wrapping_add(1),
            }
        }
    }
}

/// Calls it as often as `LATLAB_FUZZ` says, with numbers of another seed each time; says with which it
/// failed.
pub(crate) fn fuzz(mut each: impl FnMut(&mut Random)) {
    struct Seed(u64);
    impl Drop for Seed {
        fn drop(&mut self) {
            if std::thread::panicking() {
                eprintln!("failed with seed {}", self.0);
            }
        }
    }
    let times = std::env::var("LATLAB_FUZZ").map_or(1_000, |times| times.parse().unwrap());
    for number in 1..=times {
        let seed = Seed(number);
        each(&mut Random(seed.0.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    }
}
