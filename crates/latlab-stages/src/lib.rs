//! Named stages of a program ("read", "parse"), as the program itself marks them.
//!
//! ```text
//! marks/ (Rust, C, Go; Python through the binding) ──► ring in shared memory ──┐
//! lines appended to a file (any other language) ──────────────────────────────┴► Reader ──► Spans ──► Table
//! ```
//! The ring's form is written in `marks/latlab_stage.rs`; that file is this crate's writer and what users
//! copy. A writer never waits and never fails: where the reader is late, the oldest marks are overwritten and
//! counted as lost.

mod lines;
#[cfg(target_os = "linux")]
mod listener;
mod reader;
#[cfg(target_os = "linux")]
mod shared;
mod spans;
/// The writer, which users copy into their own programs.
#[cfg(target_os = "linux")]
#[path = "../marks/latlab_stage.rs"]
pub mod writer;

pub use lines::{Line, LineError, Lines};
#[cfg(target_os = "linux")]
pub use listener::{Event, Heard, Listener};
pub use reader::Mark;
#[cfg(target_os = "linux")]
pub use shared::Shared;
pub use spans::{Span, Spans, StageRow, Table};

/// The files that users copy: what it is asked for by, its name, its text.
pub const FILES: [(&str, &str, &str); 4] = [
    ("c", "latlab_stage.h", include_str!("../marks/latlab_stage.h")),
    ("rust", "latlab_stage.rs", include_str!("../marks/latlab_stage.rs")),
    ("go", "stage.go", include_str!("../marks/go/stage.go")),
    ("lines", "lines.txt", include_str!("../marks/lines.txt")),
];
