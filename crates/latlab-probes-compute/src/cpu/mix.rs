//! `cpu.mix`: what a step costs of five small programs that wait for nothing but the core.

mod kernels;

use latlab_probes_shared::prelude::*;

use self::kernels::{Branches, FloatChain, FloatSums, IntegerChain, Interpreter, Kernel};
use crate::no_memory;

/// The probe.
pub struct Mix;

/// One of the kernels.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Which {
    operation: Operation,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Operation {
    IntegerChain,
    UnpredictableBranch,
    FloatChain,
    FloatSums,
    Interpreter,
}

const OPERATIONS: [Operation; 5] = [
    Operation::IntegerChain,
    Operation::UnpredictableBranch,
    Operation::Interpreter,
    Operation::FloatChain,
    Operation::FloatSums,
];

impl Probe for Mix {
    type Point = Which;
    type Evidence = Compared;
    type Details = Nothing;
    type Findings = Nothing;
    type Session<'env> = Computing;

    const SPEC: Spec = Spec {
        id: "cpu.mix",
        tier: Tier::Cpu,
        title: "a mix of computing kernels",
        question: "How fast does one core compute, in kinds of code that gain differently from a faster \
            core?",
        method: "Five loops on one thread, which keep all they need in registers and a few lines of the \
            first-level cache. No single one predicts a program; programs that compute lie between them, so \
that the lowest and the highest ratio of two machines bracket what a faster core is worth.

`integer-chain`: a multiplication and an addition of 64 bits, each of which needs the result before: \
latency. \
`unpredictable-branch`: a branch on the highest bit of a generator (the same multiplication and addition), \
so that no history of branches predicts it; half of them are taken, and a barrier on one side keeps the \
compiler from replacing the branch by a conditional move. \
`interpreter`: one instruction of a byte code, fetched and dispatched to one of eleven places; each pass of \
its program executes 14 and has one branch on a bit of the generator. \
`float-chain`: a multiplication and an addition in double precision, each needing the one before. \
`float-sums`: the same for sixteen sums that do not wait for each other: throughput. \
Multiplication and addition are two instructions, and a register holds at most two numbers, as in programs \
that are compiled for every CPU of an architecture: no fused instructions, no wide vectors.

A value is the mean over a window of about 20 µs. The factors are hidden from the compiler, which could \
otherwise merge several steps into one. After each block the result is compared with what is \
known of it by other means: the state of the generator by its closed form, the sums by their number of \
steps, the sums behind branches and the interpreter's registers by a loop without branches and without byte \
code.",
        convention: "one step of the loop",
        touches: &["one CPU, busy; memory: one page"],
        ..USUAL
    };

    fn plan(&self, env: &Env) -> Plan<Which> {
        if let Some(reason) = no_memory(env, true, "") {
            return Plan::no(reason);
        }
        // In each round of every profile: any run may be asked what a program takes there, and 10 ms are its
        // whole price.
        let planned = |operation| Planned {
            rank: Rank::Headline,
            setup_s: 10e-6,
            block_s: 1.6e-3,
            cache_scope: CacheScope::First,
            ..Planned::new(Which { operation })
        };
        Plan::of(OPERATIONS.map(planned).to_vec())
    }

    fn open<'env>(&'env self, env: &'env Env, _group: &[Which]) -> Result<Computing> {
        Ok(Computing { seed: env.seed(37), blocks: 0 })
    }
}

/// Blocks of any kernel, each with another start.
pub struct Computing {
    seed: u64,
    blocks: u64,
}

impl Computing {
    fn measure(block: &mut Block, evidence: &mut Compared, kernel: &mut (impl Batch + Kernel)) {
        block.batches(kernel);
        evidence.one(kernel.is_right());
    }
}

impl Session<Mix> for Computing {
    fn block(&mut self, point: &Which, evidence: &mut Compared, block: &mut Block) -> Result<()> {
        self.blocks += 1;
        let seed = self.seed.wrapping_add(self.blocks);
        match point.operation {
            Operation::IntegerChain => Self::measure(block, evidence, &mut IntegerChain::new(seed)),
            Operation::UnpredictableBranch => Self::measure(block, evidence, &mut Branches::new(seed)),
            Operation::FloatChain => Self::measure(block, evidence, &mut FloatChain::new()),
            Operation::FloatSums => Self::measure(block, evidence, &mut FloatSums::new()),
            Operation::Interpreter => Self::measure(block, evidence, &mut Interpreter::new(seed)),
        }
        Ok(())
    }

    fn proof(&mut self, _point: &Which, evidence: &Compared) -> Proof<Nothing> {
        Proof::of(vec![evidence.check("result", "what ", "blocks computed is what is known by other means")])
    }
}

#[cfg(test)]
mod tests;
