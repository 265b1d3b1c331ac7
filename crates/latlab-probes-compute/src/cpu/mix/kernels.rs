//! The loops of `cpu.mix`, and what their results must be.

use std::hint::black_box;

use latlab_harness::Batch;
use latlab_probes_shared::walk::to_usize;

/// Of the 64-bit generator by Knuth (MMIX), of full period: its high bits repeat after 2^64 steps only.
const FACTOR: u64 = 6_364_136_223_846_793_005;
const ADDEND: u64 = 1_442_695_040_888_963_407;
/// Added in each step of a floating-point sum: whole numbers, of which sums are exact up to 2^53.
const STEP: f64 = 3.0;
/// Sums that do not wait for each other: two in a register are eight chains, as many as two such operations
/// of four cycles each keep busy at one a cycle.
const SUMS: usize = 16;
/// One step of each.
const TURN: u64 = SUMS as u64;

/// A loop whose result is known by other means.
pub(super) trait Kernel {
    /// Whether it did something, and that is what it should have been.
    fn is_right(&mut self) -> bool;
}

/// The generator after so many steps, by squaring the step: x → ax + b twice is x → a²x + (a + 1)b.
fn generated(start: u64, steps: u64) -> u64 {
    let (mut factor, mut addend, mut state, mut left) = (FACTOR, ADDEND, start, steps);
    while left > 0 {
        if left & 1 == 1 {
            state = state.wrapping_mul(factor).wrapping_add(addend);
        }
        addend = factor.wrapping_add(1).wrapping_mul(addend);
        factor = factor.wrapping_mul(factor);
        left >>= 1;
    }
    state
}

/// Steps of the generator, one after the other.
pub(super) struct IntegerChain {
    start: u64,
    pub(super) state: u64,
    pub(super) made: u64,
}

impl IntegerChain {
    pub(super) fn new(start: u64) -> Self {
        Self { start, state: start, made: 0 }
    }
}

impl Batch for IntegerChain {
    fn run(&mut self, ops: u64) -> u64 {
        // Known to the compiler, several steps would be one multiplication and one addition.
        let (factor, addend) = black_box((FACTOR, ADDEND));
        let mut state = self.state;
        for _ in 0..ops {
            state = state.wrapping_mul(factor).wrapping_add(addend);
        }
        self.state = state;
        self.made += ops;
        state
    }
}

impl Kernel for IntegerChain {
    fn is_right(&mut self) -> bool {
        self.made > 0 && self.state == generated(self.start, self.made)
    }
}

/// A branch on a bit that nothing predicts, in each step.
pub(super) struct Branches {
    start: u64,
    state: u64,
    /// Of the states that took the branch.
    pub(super) sum: u64,
    pub(super) made: u64,
}

impl Branches {
    pub(super) fn new(start: u64) -> Self {
        Self { start, state: start, sum: 0, made: 0 }
    }
}

impl Batch for Branches {
    fn run(&mut self, ops: u64) -> u64 {
        let (mut state, mut sum) = (self.state, self.sum);
        for _ in 0..ops {
            state = state.wrapping_mul(FACTOR).wrapping_add(ADDEND);
            if state >> 63 == 1 {
                // What may not be executed on the other side, so that this stays a branch.
                black_box(());
                sum = sum.wrapping_add(state);
            }
        }
        (self.state, self.sum) = (state, sum);
        self.made += ops;
        sum
    }
}

impl Kernel for Branches {
    fn is_right(&mut self) -> bool {
        let (mut state, mut sum) = (self.start, 0_u64);
        for _ in 0..self.made {
            state = state.wrapping_mul(FACTOR).wrapping_add(ADDEND);
            sum = sum.wrapping_add(state & (state >> 63).wrapping_neg());
        }
        self.made > 0 && self.sum == sum && self.state == generated(self.start, self.made)
    }
}

/// Multiplications by one and additions, one after the other: the sum says how many there were.
pub(super) struct FloatChain {
    pub(super) sum: f64,
    pub(super) made: u64,
}

impl FloatChain {
    pub(super) fn new() -> Self {
        Self { sum: 0.0, made: 0 }
    }
}

impl Batch for FloatChain {
    fn run(&mut self, ops: u64) -> u64 {
        let (factor, step) = black_box((1.0_f64, STEP));
        let mut sum = self.sum;
        for _ in 0..ops {
            sum = sum * factor + step;
        }
        self.sum = sum;
        self.made += ops;
        sum.to_bits()
    }
}

impl Kernel for FloatChain {
    fn is_right(&mut self) -> bool {
        self.made > 0 && is_exactly(self.sum, self.made)
    }
}

/// The same for several sums at once.
pub(super) struct FloatSums {
    pub(super) sums: [f64; SUMS],
    /// Steps of all sums together.
    pub(super) made: u64,
}

impl FloatSums {
    pub(super) fn new() -> Self {
        Self { sums: [0.0; SUMS], made: 0 }
    }
}

impl Batch for FloatSums {
    fn run(&mut self, ops: u64) -> u64 {
        let (factor, step) = black_box((1.0_f64, STEP));
        let mut sums = self.sums;
        let first = self.made % TURN;
        // To the end of a turn, whole turns, and what is left.
        let before = ((TURN - first) % TURN).min(ops);
        let turns = (ops - before) / TURN;
        let after = (ops - before) % TURN;
        for sum in sums.iter_mut().skip(to_usize(first)).take(to_usize(before)) {
            *sum = *sum * factor + step;
        }
        for _ in 0..turns {
            for sum in &mut sums {
                *sum = *sum * factor + step;
            }
        }
        for sum in sums.iter_mut().take(to_usize(after)) {
            *sum = *sum * factor + step;
        }
        self.sums = sums;
        self.made += ops;
        sums.iter().fold(0, |all, sum| all ^ sum.to_bits())
    }
}

impl Kernel for FloatSums {
    fn is_right(&mut self) -> bool {
        let each = |nth: u64| self.made / TURN + u64::from(nth < self.made % TURN);
        self.made > 0 && (0..TURN).zip(self.sums).all(|(nth, sum)| is_exactly(sum, each(nth)))
    }
}

/// Whether a sum is that of so many steps, to the last bit.
fn is_exactly(sum: f64, steps: u64) -> bool {
    sum.to_bits() == (steps as f64 * STEP).to_bits()
}

/// Instructions of the byte code, on four registers and 64 words of memory. Only the last two follow each
/// other otherwise than in order.
#[derive(Clone, Copy)]
enum Code {
    /// State times factor.
    Multiply,
    /// State plus addend.
    Add,
    /// Scratch is the state.
    Take,
    /// Scratch moved right by 58: an index of a word.
    Shift,
    /// Scratch is the word of that index.
    Load,
    /// The word of the state's index is the sum.
    Store,
    /// Sum plus scratch.
    Sum,
    /// Sum with scratch, bit by bit.
    Mix,
    /// One pass more is counted.
    Count,
    /// The next three are left out where the highest bit of the state is set.
    Skip,
    /// The next three are left out.
    Jump,
}

/// One pass: the word of the state's index is added to the sum, or mixed into it; the sum takes its place.
const PROGRAM: [Code; 17] = [
    Code::Multiply,
    Code::Add,
    Code::Take,
    Code::Shift,
    Code::Load,
    Code::Skip,
    Code::Sum,
    Code::Count,
    Code::Jump,
    Code::Mix,
    Code::Count,
    Code::Count,
    Code::Store,
    Code::Take,
    Code::Sum,
    Code::Shift,
    Code::Count,
];
/// Instructions of a pass: of both sides of the branch three are executed.
const PASS: u64 = 14;
const WORDS: usize = 64;

/// What the program works on.
#[derive(Clone, PartialEq)]
struct Registers {
    state: u64,
    scratch: u64,
    sum: u64,
    counted: u64,
    words: [u64; WORDS],
}

/// Executes one instruction after the other.
pub(super) struct Interpreter {
    code: Vec<Code>,
    at: usize,
    start: u64,
    registers: Registers,
    pub(super) made: u64,
}

impl Registers {
    fn new(state: u64) -> Self {
        Self { state, scratch: 0, sum: 0, counted: 0, words: [0; WORDS] }
    }

    fn place(&self) -> usize {
        to_usize(self.state >> 58)
    }

    /// What a pass does, without its byte code.
    fn pass(&mut self) {
        self.state = self.state.wrapping_mul(FACTOR).wrapping_add(ADDEND);
        let (word, is_set) = (self.words[self.place()], self.state >> 63);
        let sum = [self.sum.wrapping_add(word), self.sum ^ word][to_usize(is_set)];
        self.words[self.place()] = sum;
        self.sum = sum.wrapping_add(self.state);
        self.scratch = self.state >> 58;
        self.counted += 2 + is_set;
    }
}

impl Interpreter {
    pub(super) fn new(start: u64) -> Self {
        Self { code: black_box(PROGRAM.to_vec()), at: 0, start, registers: Registers::new(start), made: 0 }
    }
}

impl Batch for Interpreter {
    fn run(&mut self, ops: u64) -> u64 {
        let (code, mut at, registers) = (self.code.as_slice(), self.at, &mut self.registers);
        let Registers { mut state, mut scratch, mut sum, mut counted, .. } = *registers;
        let words = &mut registers.words;
        for _ in 0..ops {
            let instruction = code[at];
            at += 1;
            match instruction {
                Code::Multiply => state = state.wrapping_mul(FACTOR),
                Code::Add => state = state.wrapping_add(ADDEND),
                Code::Take => scratch = state,
                Code::Shift => scratch >>= 58,
                Code::Load => scratch = words[to_usize(scratch) % WORDS],
                Code::Store => words[to_usize(state >> 58)] = sum,
                Code::Sum => sum = sum.wrapping_add(scratch),
                Code::Mix => sum ^= scratch,
                Code::Count => counted += 1,
                Code::Skip => at += 3 * to_usize(state >> 63),
                Code::Jump => at += 3,
            }
            if at >= code.len() {
                at = 0;
            }
        }
        (registers.state, registers.scratch) = (state, scratch);
        (registers.sum, registers.counted) = (sum, counted);
        self.at = at;
        self.made += ops;
        sum
    }
}

impl Kernel for Interpreter {
    fn is_right(&mut self) -> bool {
        let made = self.made;
        // To the end of a pass.
        self.run((PASS - made % PASS) % PASS);
        let mut known = Registers::new(self.start);
        for _ in 0..self.made / PASS {
            known.pass();
        }
        made > 0 && self.at == 0 && self.registers == known
    }
}
