//! What asks Linux: starting the program, looking at it in /proc, its counters, what kernel work costs here.

pub(crate) mod beside;
pub(crate) mod blocks;
pub(crate) mod budget;
pub(crate) mod calls;
pub(crate) mod clock;
pub(crate) mod costs;
pub(crate) mod demangle;
pub(crate) mod files;
mod futex;
pub(crate) mod image;
pub(crate) mod interpreter;
pub(crate) mod launch;
pub(crate) mod levels;
pub(crate) mod line_tables;
pub(crate) mod lines;
pub(crate) mod mapped;
pub(crate) mod maps;
pub(crate) mod memory;
mod pauses;
pub(crate) mod perf_map;
pub(crate) mod polled;
pub(crate) mod price;
pub(crate) mod proc_file;
mod prompt;
pub(crate) mod python;
pub(crate) mod recorder;
pub(crate) mod rounds;
pub(crate) mod run;
#[cfg(test)]
pub(crate) mod sample;
pub(crate) mod scan;
pub(crate) mod segments;
mod sockets;
mod structures;
pub(crate) mod symbols;
pub(crate) mod traced;
pub(crate) mod unwind;

pub(crate) use clock::now_ns;
