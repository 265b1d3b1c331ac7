//! `python.object`: what Python's own steps cost: attributes, calls, objects, dictionaries, lists, strings,
//! arrays.

use std::path::Path;

use latlab_harness::Interpreter;
use latlab_probes_shared::prelude::*;
use latlab_record::significant;
use latlab_stats::count::nearest;

/// The probe.
pub struct Object;

/// Long beside the call of the program from outside (0.2 us), short beside a second.
const WINDOW_NS: f64 = 100e3;
/// Operations in a turn of the loops.
const UNROLLED: u64 = 16;
/// Lists up to this length are made sixteen in a turn (`FEW` in the programs).
const FEW: u64 = 100;
/// Objects up to this size are near the core.
const NEAR_BYTES: u64 = 64 << 10;
/// A program that keeps more than this is built again at each visit.
const KEPT_BYTES: u64 = 1 << 20;
/// The literal in the program that longer ones replace, and its length.
const LITERAL: &str = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]";
const LITERAL_ELEMENTS: u64 = 10;

/// What is done, and to how many elements where it has a size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    operation: Operation,
    elements: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Operation {
    /// Nothing but the loop.
    Loop,
    Attribute,
    Call,
    MethodCall,
    SmallObject,
    DictInsert,
    DictLookup,
    ListComprehension,
    ListMultiply,
    ListAppend,
    ListLiteral,
    StringConcatenate,
    StringJoin,
    NumpyInPlace,
    NumpyTemporary,
    NumpyEmpty,
    NumpyZeros,
}

/// What an operation makes, where it has a size.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub struct Made {
    elements_per_operation: u64,
    /// The median over these elements.
    #[serde(skip_serializing_if = "Option::is_none")]
    per_element_ns: Option<f64>,
}

/// All operations beside each other.
#[derive(Serialize, JsonSchema)]
pub struct Findings {
    /// A turn of the loop around them.
    loop_ns: Option<f64>,
    operations: Vec<Cost>,
}

/// What an operation costs.
#[derive(Serialize, JsonSchema)]
struct Cost {
    operation: Operation,
    elements: Option<u64>,
    p50_ns: f64,
    per_element_ns: Option<f64>,
    /// Part of it that is the loop.
    loop_share: Option<Estimate>,
}

/// One operation and the program that does it.
struct Program {
    operation: Operation,
    text: &'static str,
    /// `run` takes multiples of this.
    multiple: fn(elements: u64) -> u64,
    /// What `run` must return.
    expected: fn(ops: u64, elements: u64) -> u64,
    /// Bytes held at once for each element.
    element_bytes: u64,
    numpy: bool,
    /// `(elements, priority)`; empty where the operation has no size.
    sizes: &'static [(u64, u8)],
}

const EVERY_SIZE: &[(u64, u8)] = &[(1_000, 0), (10, 1), (100_000, 2), (1_000_000, 4)];
const SUMS: &[(u64, u8)] = &[(1_000, 1), (1_000_000, 1), (100_000, 3), (10, 4)];
const ARRAYS: &[(u64, u8)] = &[(1_000, 2), (1_000_000, 3), (100_000, 3), (10, 4)];

const fn plain(
    operation: Operation,
    text: &'static str,
    multiple: fn(u64) -> u64,
    expected: fn(u64, u64) -> u64,
) -> Program {
    Program { operation, text, multiple, expected, element_bytes: 0, numpy: false, sizes: &[] }
}

const fn list(
    operation: Operation,
    text: &'static str,
    multiple: fn(u64) -> u64,
    expected: fn(u64, u64) -> u64,
) -> Program {
    Program {
        // The list, the one before it, and the room into which it grows.
        element_bytes: 24,
        sizes: EVERY_SIZE,
        ..plain(operation, text, multiple, expected)
    }
}

const fn string(operation: Operation, text: &'static str) -> Program {
    Program {
        // A piece is an object of 57 bytes in blocks of 64, in a list; three strings are held.
        element_bytes: 64 + 8 + 24,
        sizes: &[(1_000, 0), (100_000, 4)],
        ..plain(operation, text, |_| 1, |ops, elements| ops * 8 * elements)
    }
}

const fn array(
    operation: Operation,
    text: &'static str,
    expected: fn(u64, u64) -> u64,
    sizes: &'static [(u64, u8)],
) -> Program {
    Program { element_bytes: 24, numpy: true, sizes, ..plain(operation, text, |_| 1, expected) }
}

fn sixteen(_: u64) -> u64 {
    UNROLLED
}

fn sixteen_of_few(elements: u64) -> u64 {
    if elements <= FEW { UNROLLED } else { 1 }
}

/// Lists of the turn's number: the ends of the last ones, their lengths, the last turn.
fn of_turns(ops: u64, elements: u64) -> u64 {
    if elements <= FEW {
        let turn = ops / UNROLLED - 1;
        UNROLLED * turn + 2 * elements + turn
    } else {
        one_by_one(ops, elements)
    }
}

fn one_by_one(ops: u64, elements: u64) -> u64 {
    2 * (ops - 1) + elements + (ops - 1)
}

/// Lists of 0 and up.
fn of_literals(ops: u64, elements: u64) -> u64 {
    if elements <= FEW {
        UNROLLED * (elements - 1) + 2 * elements + ops / UNROLLED - 1
    } else {
        (elements - 1) + elements + ops - 1
    }
}

/// In the order in which they are given up last.
static PROGRAMS: &[Program] = &[
    plain(Operation::Loop, include_str!("programs/loop.py"), sixteen, |ops, _| ops / UNROLLED),
    plain(Operation::Attribute, include_str!("programs/attribute.py"), sixteen, |ops, _| ops % 61),
    plain(Operation::Call, include_str!("programs/call.py"), sixteen, |ops, _| ops / UNROLLED),
    plain(Operation::MethodCall, include_str!("programs/method_call.py"), sixteen, |ops, _| ops / UNROLLED),
    plain(Operation::SmallObject, include_str!("programs/small_object.py"), sixteen, |ops, _| {
        UNROLLED * (ops / UNROLLED - 1)
    }),
    plain(Operation::DictInsert, include_str!("programs/dict_insert.py"), |_| 1024, |ops, _| ops),
    plain(Operation::DictLookup, include_str!("programs/dict_lookup.py"), sixteen, |ops, _| {
        ops % 1024 * 389 % 1024
    }),
    list(
        Operation::ListComprehension,
        include_str!("programs/list_comprehension.py"),
        sixteen_of_few,
        of_turns,
    ),
    list(Operation::ListMultiply, include_str!("programs/list_multiply.py"), sixteen_of_few, of_turns),
    list(Operation::ListAppend, include_str!("programs/list_append.py"), |_| 1, one_by_one),
    Program {
        // Nobody writes longer ones.
        sizes: &[(LITERAL_ELEMENTS, 0), (1_000, 1)],
        ..list(Operation::ListLiteral, include_str!("programs/list_literal.py"), sixteen_of_few, of_literals)
    },
    string(Operation::StringConcatenate, include_str!("programs/string_concatenate.py")),
    string(Operation::StringJoin, include_str!("programs/string_join.py")),
    array(Operation::NumpyInPlace, include_str!("programs/numpy_in_place.py"), |ops, _| 2 * ops, SUMS),
    array(Operation::NumpyTemporary, include_str!("programs/numpy_temporary.py"), |ops, _| 2 * ops, SUMS),
    array(Operation::NumpyEmpty, include_str!("programs/numpy_empty.py"), |_, elements| elements, ARRAYS),
    array(Operation::NumpyZeros, include_str!("programs/numpy_zeros.py"), |_, elements| elements, ARRAYS),
];

/// What imports `NumPy` and tells its version.
const NUMPY_IMPORT: &str = include_str!("programs/numpy_import.py");

impl Program {
    fn of(point: &Step) -> Option<&'static Self> {
        PROGRAMS.iter().find(|program| program.operation == point.operation)
    }

    fn text(&self, elements: u64) -> String {
        let lines = self.text.lines().map(|line| {
            if line.starts_with("ELEMENTS = ") {
                format!("ELEMENTS = {elements}\n")
            } else {
                format!("{line}\n")
            }
        });
        let text: String = lines.collect();
        if elements == LITERAL_ELEMENTS || !text.contains(LITERAL) {
            return text;
        }
        let numbers: Vec<String> = (0..elements).map(|number| number.to_string()).collect();
        text.replace(LITERAL, &format!("[{}]", numbers.join(", ")))
    }

    fn bytes(&self, elements: u64) -> u64 {
        self.element_bytes * elements
    }

    fn planned(&self, elements: Option<u64>, priority: u8) -> Planned<Step> {
        let bytes = self.bytes(elements.unwrap_or(0));
        let near = bytes <= NEAR_BYTES;
        Planned {
            rank: Rank::Curve,
            // Importing NumPy is paid by those that use it.
            group: u16::from(self.numpy),
            priority,
            // Data are built again for each visit; about 0.1 us an element.
            setup_s: if bytes <= KEPT_BYTES { 3e-4 } else { 1e-3 + 1e-9 * bytes as f64 },
            block_s: if near { 3e-3 } else { 1e-2 },
            cache_scope: if near { CacheScope::First } else { CacheScope::Shared },
            ..Planned::new(Step { operation: self.operation, elements })
        }
    }
}

impl Probe for Object {
    type Point = Step;
    type Evidence = ();
    type Details = Made;
    type Findings = Findings;
    type Session<'env> = Running<'env>;

    const SPEC: Spec = Spec {
        id: "python.object",
        tier: Tier::Python,
        title: "attributes, calls, objects, lists and arrays in Python",
        question: "What do Python's own steps cost here, before any data is moved?",
        method: "Each program is Python code that runs in the interpreter that measures: the one that \
            latlab was started with, bare (-I -S), its garbage collector on, as programs have it \
(python -m timeit switches it off). A value is the mean of a window of about 100 µs.

Each iteration of the loop has short operations sixteen times, on local variables; the loop itself is \
measured as the operation \"loop\" and is not subtracted: the derived record says what share of each figure \
it is. \
Calls pass on what the call before returned; attributes and lookups lead to the next object of a ring, so \
each waits for the one before it (about a nanosecond more than an attribute \
of an object that is known), and no step can be left out without changing the result. \
A function or method takes one argument and returns it. A small object is an instance of a class whose \
__init__ sets two attributes. \
The dictionaries have strings as keys; insertion grows one from empty to 1,024, which includes its growing. \
Strings are hashed with a seed of the process, so dictionaries differ a little from run to run.

A list is one operation, whatever its length, and freeing the one that it replaces is part of it: a literal \
of constants (copied from a constant), a comprehension, one item multiplied, or appends in a loop. \
From some 100 KiB on it matters whether the C library gives freed memory back to the kernel and obtains it \
again, which depends on what was allocated before: figures of large objects then differ by a factor of \
three or more between runs, \
and the record's minor faults show which it was. \
Strings are joined from existing pieces of eight characters. Concatenation is the favourable case: no other \
reference to the string exists, so CPython extends it in place; with another reference, every step copies \
all of it.

NumPy is imported from where the user has it, outside anything timed and with one thread. Each array is \
freed when the next one exists, so memory is mostly recycled: numpy-empty then needs no new page, and \
numpy-zeros has to clear it. \
An array that is kept has fresh pages instead, already zero, and the first write pays then (vm.fault). \
numpy-in-place adds to an array of floats where it is; numpy-temporary makes a new array for each sum and \
frees the old one.

Proof: what every window's run returns is compared with what that number of operations must give; for array \
creation, the same code runs once with a creator that counts.",
        method_version: 1,
        convention: "one operation; of lists, strings and arrays one whole object made and the one before \
            it freed",
        needs: &["the interpreter; NumPy for the arrays"],
        touches: &["memory up to 24 MiB"],
        ..USUAL
    };

    fn plan(&self, env: &Env) -> Plan<Step> {
        if env.interpreter.is_none() {
            return Plan::no("the measuring core runs here without a Python interpreter");
        }
        // What is beyond has not the time to be measured.
        let last = match env.settings.profile {
            Profile::Quick => 1,
            Profile::Standard => 3,
            Profile::Thorough => 4,
        };
        let (mut points, mut memory_bytes) = (Vec::new(), 0);
        for program in PROGRAMS {
            // Importing NumPy takes a quarter of the quick profile's time for all of this.
            if program.numpy && (env.packages.is_none() || env.settings.profile == Profile::Quick) {
                continue;
            }
            if program.sizes.is_empty() {
                let rank = rank(env, program.operation == Operation::Call, Rank::Detail);
                points.push(Planned { rank, ..program.planned(None, 0) });
            }
            for (elements, priority) in program.sizes {
                let bytes = program.bytes(*elements);
                if bytes <= env.memory_bytes && *priority <= last {
                    memory_bytes = bytes.max(memory_bytes);
                    points.push(program.planned(Some(*elements), *priority));
                }
            }
        }
        let plan = Plan::of(points).memory(memory_bytes);
        if env.packages.is_none() { plan.degraded("NumPy was not found: no arrays") } else { plan }
    }

    fn open<'env>(&'env self, env: &'env Env, group: &[Step]) -> Result<Running<'env>> {
        let interpreter = env
            .interpreter
            .as_deref()
            .ok_or_else(|| ProbeError::Other("there is no interpreter".to_owned()))?;
        let arrays = group.iter().filter_map(Program::of).any(|program| program.numpy);
        Ok(Running {
            env,
            interpreter,
            numpy: arrays.then(|| import_numpy(interpreter, env.packages.as_deref())),
            works: Vec::new(),
        })
    }

    fn conclude(&self, _header: &Header, figures: &[Figure<Self>]) -> Option<Findings> {
        let of = |program: &'static Program| {
            figures.iter().filter(move |figure| figure.point.operation == program.operation)
        };
        let empty = figures
            .iter()
            .find(|figure| figure.point.operation == Operation::Loop)
            .map(|figure| &figure.result);
        let cost = |(program, figure): (&'static Program, &Figure<Self>)| {
            let (elements, result) = (figure.point.elements, &figure.result);
            // A turn of the loop around each operation, or around sixteen.
            let turns = if (program.multiple)(elements.unwrap_or(0)) == 1 && !program.numpy {
                UNROLLED as f64
            } else {
                1.0
            };
            Cost {
                operation: program.operation,
                elements,
                p50_ns: result.p50,
                per_element_ns: elements.map(|elements| result.p50 / elements as f64),
                loop_share: empty.map(|empty| ratio(empty, result).map(|share| turns * share)),
            }
        };
        let operations: Vec<Cost> = PROGRAMS
            .iter()
            .filter(|program| program.operation != Operation::Loop)
            .flat_map(|program| of(program).map(move |figure| (program, figure)))
            .map(cost)
            .collect();
        let loop_ns = empty.map(|empty| empty.p50);
        (!operations.is_empty()).then_some(Findings { loop_ns, operations })
    }
}

/// A program under way, and whether what it returned was right.
struct Work {
    program: &'static Program,
    elements: u64,
    batch: Option<Box<dyn Batch>>,
    /// Of all windows, once chosen.
    ops: Option<u64>,
    runs: u64,
    /// The first wrong answer, and what it should have been.
    wrong: Option<String>,
    /// What the counting creator counted, and what it should have.
    counted: Option<(u64, u64)>,
}

impl Work {
    fn of(point: &Step) -> Result<Self> {
        let program = Program::of(point)
            .ok_or_else(|| ProbeError::Other(format!("no program for {}", point.to_point().label())))?;
        let elements = point.elements.unwrap_or(0);
        Ok(Self { program, elements, batch: None, ops: None, runs: 0, wrong: None, counted: None })
    }

    fn bytes(&self) -> u64 {
        self.program.bytes(self.elements)
    }
}

impl Batch for Work {
    fn run(&mut self, ops: u64) -> u64 {
        let Some(batch) = &mut self.batch else { return 0 };
        let answer = batch.run(ops);
        self.runs += 1;
        let expected = (self.program.expected)(ops, self.elements);
        if answer != expected && self.wrong.is_none() {
            self.wrong = Some(format!("{ops} operations gave {answer}, not {expected}"));
        }
        answer
    }
}

/// The interpreter and the programs that it runs.
pub struct Running<'env> {
    env: &'env Env,
    interpreter: &'env dyn Interpreter,
    /// `NumPy`'s version, or why it could not be imported; `None` where no array is asked for.
    numpy: Option<Result<String, String>>,
    /// Selecting a point runs its program too: what that returned is judged with what its blocks did.
    works: Vec<(Step, Work)>,
}

fn import_numpy(interpreter: &dyn Interpreter, packages: Option<&Path>) -> Result<String, String> {
    let folder = packages.ok_or("it was not found")?.to_string_lossy();
    // A JSON string is a Python string.
    let folder = serde_json::to_string(&folder).map_err(|error| error.to_string())?;
    let text = NUMPY_IMPORT.replace("PACKAGES = \"\"", &format!("PACKAGES = {folder}"));
    let mut version = interpreter.compile(&text)?;
    let parts: Vec<String> = (0..3).map(|part| version.run(part).to_string()).collect();
    Ok(parts.join("."))
}

impl Session<Object> for Running<'_> {
    fn select(&mut self, point: &Step) -> Result<()> {
        for (other, work) in &mut self.works {
            if other != point && work.bytes() > KEPT_BYTES {
                work.batch = None;
            }
        }
        let work = kept(&mut self.works, *point, || Work::of(point))?;
        if let (true, Some(Err(reason))) = (work.program.numpy, &self.numpy) {
            return Err(ProbeError::Other(format!("NumPy: {reason}")));
        }
        if work.batch.is_none() {
            let text = work.program.text(work.elements);
            if text.contains("def audit(") && work.counted.is_none() {
                let mut audit =
                    self.interpreter.compile(&format!("{text}\nrun = audit\n")).map_err(ProbeError::Other)?;
                // Enough for both loops of the program.
                let ops = 2 * UNROLLED + 3;
                work.counted = Some((audit.run(ops), ops * work.elements));
            }
            work.batch = Some(self.interpreter.compile(&text).map_err(ProbeError::Other)?);
        }
        if work.ops.is_none() {
            let multiple = (work.program.multiple)(work.elements);
            work.ops = Some(window_ops(self.env, multiple, work));
        }
        Ok(())
    }

    fn block(&mut self, point: &Step, _evidence: &mut (), block: &mut Block) -> Result<()> {
        let work = kept(&mut self.works, *point, || Work::of(point))?;
        block.set_window_ops(work.ops.unwrap_or(1));
        block.set_windows(windows(self.env.settings.profile, work.bytes()));
        block.batches(work);
        Ok(())
    }

    fn proof(&mut self, point: &Step, _evidence: &()) -> Proof<Made> {
        let Some(work) = known(&self.works, point) else { return Proof::default() };
        let mut checks = vec![Check {
            name: "every run returned what its work must give".to_owned(),
            ok: work.runs > 0 && work.wrong.is_none(),
            detail: work.wrong.clone().unwrap_or_else(|| format!("{} runs", work.runs)),
        }];
        checks.extend(work.counted.map(|(counted, expected)| Check {
            name: "so many arrays were made".to_owned(),
            ok: counted == expected,
            detail: format!("{counted} elements of {expected}"),
        }));
        let mut engine = self.interpreter.name();
        if let (true, Some(Ok(version))) = (work.program.numpy, &self.numpy) {
            engine = format!("{engine}, NumPy {version}");
        }
        let made = point
            .elements
            .map(|elements_per_operation| Made { elements_per_operation, per_element_ns: None });
        Proof { engine: Some(engine), findings: made, ..Proof::of(checks) }
    }

    fn add_samples(&self, made: Option<Made>, sampled: &Sampled) -> Option<Made> {
        let made = made?;
        let per_element_ns = sampled.p50.map(|p50| significant(p50 / made.elements_per_operation as f64));
        Some(Made { per_element_ns, ..made })
    }
}

/// Windows of a block, as many as the profile has time for; large objects take longer than a window's usual
/// length.
fn windows(profile: Profile, bytes: u64) -> u32 {
    match (profile, bytes <= KEPT_BYTES) {
        (Profile::Quick, true) => 16,
        (Profile::Standard, true) => 32,
        (Profile::Thorough, true) => 64,
        (Profile::Quick | Profile::Standard, false) => 5,
        (Profile::Thorough, false) => 15,
    }
}

/// Operations of a window of about [`WINDOW_NS`], a multiple of what the program takes. Each trial is made
/// twice and the shorter one counts: the first runs the interpreter's unspecialised code, and either may be
/// interrupted.
fn window_ops(env: &Env, multiple: u64, work: &mut Work) -> u64 {
    let mut timed = |ops| {
        let begin = env.clock.now_ns();
        work.run(ops);
        env.clock.now_ns() - begin
    };
    let mut turns = 1u64;
    loop {
        let took = timed(turns * multiple).min(timed(turns * multiple));
        // A program that returns at once is found out by its proof.
        if took >= WINDOW_NS / 4.0 || turns >= 1 << 20 {
            let fitting = nearest(turns as f64 * WINDOW_NS / took.max(1.0));
            return fitting.clamp(1, 1 << 20) * multiple;
        }
        turns *= 2;
    }
}

#[cfg(test)]
mod tests;
