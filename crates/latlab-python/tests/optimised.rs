//! Every probe's proof in the library as the core has it, where no test is beside the work that the optimiser looks at.

use latlab_probes::{REGISTRY, run_child};

#[path = "../../latlab-probes/src/testing/proofs.rs"]
mod proofs;
