//! Every probe's proof in the library as the core has it, where no test is beside the work that the optimiser
//! looks at.

use latlab_probes::{REGISTRY, run_child};

latlab_probes_testing::as_a_child!(run_child);

#[test]
fn every_probe_proves_its_work_at_its_smallest_points_on_one_cpu_and_on_all() {
    for entry in REGISTRY {
        latlab_probes_testing::assert_proved_at_its_smallest_points(entry.probe);
    }
}
