//! Where the usual Python interpreter keeps what is read, by version: byte offsets of fields, as a C compiler
//! gives them for its own headers with `offsetof` on a 64-bit system. They are the same for all releases of
//! one minor version, and for x86-64 and aarch64.

use crate::account::python::LineTable;

/// Owners of frames from this on are no Python code: the interpreter's own marks on the C stack.
pub(super) const OWNED_BY_C: u8 = 3;
/// A code object with more instructions is none.
pub(super) const MOST_INSTRUCTIONS: u64 = 1 << 22;

/// Where the thread is named that holds the interpreter's lock.
#[derive(Clone, Copy, Debug)]
pub(super) enum Holder {
    /// In the state of the whole runtime, at this offset; 0 while none does.
    OfRuntime(u64),
    /// In the lock, to which the interpreter's state points.
    OfInterpreter {
        /// Of the pointer.
        lock: u64,
        /// In the lock: whether it is held.
        locked: u64,
        /// Which thread had it last.
        last: u64,
    },
}

/// Where a frame says which instruction runs.
#[derive(Clone, Copy, Debug)]
pub(super) enum Instruction {
    /// A number of four bytes, counting instructions.
    Index(usize),
    /// An address.
    Pointer(usize),
}

/// See the module. Names are those of what is meant; the fields' own names stand beside the values.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) version: &'static str,
    /// In the runtime: the main interpreter.
    pub(super) interpreter: u64,
    pub(super) holder: Holder,
    /// In an interpreter.
    pub(super) threads: u64,
    /// In a thread.
    pub(super) next_thread: u64,
    pub(super) thread_id: u64,
    /// Whether that is an id that the kernel knows.
    pub(super) has_ids: bool,
    /// In a thread, and where that points to something in between, in that.
    pub(super) current_frame: (u64, Option<u64>),
    /// In a frame.
    pub(super) frame_code: usize,
    pub(super) frame_previous: usize,
    pub(super) instruction: Instruction,
    pub(super) frame_owner: Option<usize>,
    pub(super) frame_bytes: usize,
    /// In a code object.
    pub(super) code_file: usize,
    pub(super) code_name: usize,
    pub(super) code_first_line: usize,
    pub(super) code_lines: usize,
    pub(super) code_begin: u64,
    /// As much of it as is read.
    pub(super) code_bytes: usize,
    pub(super) line_table: LineTable,
    /// Where the characters of a string begin: of ASCII, of others.
    pub(super) ascii_bytes: u64,
    pub(super) compact_bytes: u64,
}

/// From 3.11 on frames and code objects differ little.
const OF_3_11: Layout = Layout {
    version: "3.11",
    interpreter: 48,                // _PyRuntimeState.interpreters.main
    holder: Holder::OfRuntime(576), // _PyRuntimeState.gilstate.tstate_current
    threads: 16,                    // PyInterpreterState.threads.head
    next_thread: 8,                 // PyThreadState.next
    thread_id: 160,                 // .native_thread_id
    has_ids: true,
    current_frame: (56, Some(8)),          // .cframe, _PyCFrame.current_frame
    frame_code: 32,                        // _PyInterpreterFrame.f_code
    frame_previous: 48,                    // .previous
    instruction: Instruction::Pointer(56), // .prev_instr
    frame_owner: None,
    frame_bytes: 72,
    code_file: 112,      // PyCodeObject.co_filename
    code_name: 128,      // .co_qualname
    code_first_line: 72, // .co_firstlineno
    code_lines: 136,     // .co_linetable
    code_begin: 184,     // .co_code_adaptive
    code_bytes: 144,
    line_table: LineTable::Locations,
    ascii_bytes: 48,   // sizeof(PyASCIIObject)
    compact_bytes: 72, // sizeof(PyCompactUnicodeObject)
};

const OF_3_12: Layout = Layout {
    version: "3.12",
    holder: Holder::OfInterpreter {
        lock: 384,  // PyInterpreterState.ceval.gil
        locked: 16, // _gil_runtime_state.locked
        last: 8,    // .last_holder
    },
    threads: 72,
    thread_id: 144,
    current_frame: (56, Some(0)),
    frame_code: 0,
    frame_previous: 8,
    frame_owner: Some(70), // .owner
    code_first_line: 68,
    code_begin: 192,
    ascii_bytes: 40,
    compact_bytes: 56,
    ..OF_3_11
};

static LAYOUTS: [Layout; 4] = [
    Layout {
        version: "3.10",
        interpreter: 40,
        holder: Holder::OfRuntime(568),
        threads: 8, // PyInterpreterState.tstate_head
        thread_id: 176,
        has_ids: false,
        current_frame: (24, None),           // PyThreadState.frame
        frame_code: 32,                      // PyFrameObject.f_code
        frame_previous: 24,                  // .f_back
        instruction: Instruction::Index(96), // .f_lasti
        frame_owner: None,
        frame_bytes: 104,
        code_file: 104,
        code_name: 112, // .co_name: it has no other
        code_first_line: 40,
        code_lines: 120,
        code_begin: 0,
        code_bytes: 128,
        line_table: LineTable::Pairs,
        ..OF_3_11
    },
    OF_3_11,
    OF_3_12,
    Layout {
        version: "3.13",
        interpreter: 640,
        holder: Holder::OfInterpreter { lock: 16, locked: 16, last: 8 },
        threads: 7344,
        thread_id: 160,
        current_frame: (72, None), // PyThreadState.current_frame
        code_begin: 200,
        ..OF_3_12
    },
];

impl Layout {
    /// Of a version such as `3.11`; `None`: not known here, such as of builds without the lock.
    pub(super) fn of(version: &str) -> Option<&'static Self> {
        LAYOUTS.iter().find(|layout| layout.version == version)
    }
}
