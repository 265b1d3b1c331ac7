//! Names of microarchitectures, where they are certain.
//!
//! A hypervisor may show any family and model. A name is given only if no feature of the CPU contradicts it
//! (a "Rocket Lake" with AMX is none) and, in a guest, if the model name is a product's or a feature that
//! came with that generation is there. Sources: the vendors' model tables as in Linux's `intel-family.h`,
//! AMD's processor programming references, and Arm's MIDR part numbers.

/// A generation of x86 CPUs.
struct Generation {
    name: &'static str,
    /// Features of which one shows this generation or a later one.
    shown_by: &'static [&'static str],
    /// Features that no such CPU has.
    never: &'static [&'static str],
}

const INTEL: &str = "GenuineIntel";
const AMD: &str = "AuthenticAMD";

fn generation(vendor: &str, family: u32, model: u32, stepping: u32) -> Option<Generation> {
    // What came with or after Ice Lake's successors.
    const NO_AMX: &[&str] = &["amx_tile", "avx512_fp16"];
    const NO_AVX512: &[&str] = &["avx512f", "amx_tile"];
    const NO_AVX2: &[&str] = &["avx2"];
    let (name, shown_by, never): (_, &'static [&str], _) = match (vendor, family, model, stepping) {
        (INTEL, 6, 0x2a | 0x2d, _) => ("Sandy Bridge", &[], NO_AVX2),
        (INTEL, 6, 0x3a | 0x3e, _) => ("Ivy Bridge", &[], NO_AVX2),
        (INTEL, 6, 0x3c | 0x3f | 0x45 | 0x46, _) => ("Haswell", &[], NO_AVX512),
        (INTEL, 6, 0x3d | 0x47 | 0x4f | 0x56, _) => ("Broadwell", &[], NO_AVX512),
        (INTEL, 6, 0x4e | 0x5e, _) => ("Skylake", &[], NO_AVX512),
        (INTEL, 6, 0x55, 0..=4) => ("Skylake-SP", &[], NO_AMX),
        (INTEL, 6, 0x55, 5..=7) => ("Cascade Lake", &[], NO_AMX),
        (INTEL, 6, 0x55, 10..=15) => ("Cooper Lake", &[], NO_AMX),
        (INTEL, 6, 0x8e | 0x9e, 0..=8) => ("Kaby Lake", &[], NO_AVX512),
        (INTEL, 6, 0x9e, 10..=15) => ("Coffee Lake", &[], NO_AVX512),
        (INTEL, 6, 0xa5 | 0xa6, _) => ("Comet Lake", &[], NO_AVX512),
        (INTEL, 6, 0x6a | 0x6c | 0x7d | 0x7e, _) => ("Ice Lake", &[], NO_AMX),
        (INTEL, 6, 0x8c | 0x8d, _) => ("Tiger Lake", &["avx512_vp2intersect"], NO_AMX),
        (INTEL, 6, 0xa7, _) => ("Rocket Lake", &[], &["amx_tile", "avx512_fp16", "avx_vnni", "movdir64b"]),
        (INTEL, 6, 0x97 | 0x9a, _) => ("Alder Lake", &[], NO_AVX512),
        (INTEL, 6, 0xbe, _) => ("Gracemont", &[], NO_AVX512),
        (INTEL, 6, 0xb7 | 0xba | 0xbf, _) => ("Raptor Lake", &[], NO_AVX512),
        (INTEL, 6, 0x8f, _) => ("Sapphire Rapids", &["amx_tile", "avx512_fp16"], &[]),
        (INTEL, 6, 0xcf, _) => ("Emerald Rapids", &[], &[]),
        (INTEL, 6, 0xad | 0xae, _) => ("Granite Rapids", &[], &[]),
        (INTEL, 6, 0xaf, _) => ("Sierra Forest", &[], NO_AVX512),
        (INTEL, 6, 0xaa | 0xac, _) => ("Meteor Lake", &[], NO_AVX512),
        (INTEL, 6, 0xbd, _) => ("Lunar Lake", &[], NO_AVX512),
        (INTEL, 6, 0xb5 | 0xc5 | 0xc6, _) => ("Arrow Lake", &[], NO_AVX512),
        (AMD, 0x17, 0x00..=0x07 | 0x10..=0x17 | 0x20..=0x27, _) => ("Zen", &[], NO_AVX512),
        (AMD, 0x17, 0x08..=0x0f | 0x18..=0x1f, _) => ("Zen+", &[], NO_AVX512),
        (AMD, 0x17, 0x30..=0xaf, _) => ("Zen 2", &[], NO_AVX512),
        (AMD, 0x19, 0x00..=0x0f | 0x20..=0x5f, _) => ("Zen 3", &[], NO_AVX512),
        (AMD, 0x19, 0x10..=0x1f | 0x60..=0xaf, _) => {
            ("Zen 4", &["avx512f"], &["avx512_vp2intersect", "avx_vnni"])
        }
        (AMD, 0x1a, 0x00..=0x4f | 0x60..=0x7f, _) => {
            ("Zen 5", &["avx512_vp2intersect", "avx_vnni"], &["amx_tile"])
        }
        _ => return None,
    };
    Some(Generation { name, shown_by, never })
}

/// What is known of an x86 CPU.
pub(crate) struct Identity<'a> {
    pub(crate) vendor: &'a str,
    pub(crate) family: u32,
    pub(crate) model: u32,
    pub(crate) stepping: u32,
    pub(crate) model_name: &'a str,
    pub(crate) features: &'a [String],
    /// `Some(false)` only if it is certain that no hypervisor stands between.
    pub(crate) guest: Option<bool>,
}

/// The microarchitecture's name, or why there is none.
pub(crate) fn x86(identity: &Identity) -> Result<&'static str, String> {
    let Identity { vendor, family, model, stepping, model_name, features, guest } = identity;
    let Some(entry) = generation(vendor, *family, *model, *stepping) else {
        return Err(format!(
            "family {family} model {model} stepping {stepping} of {vendor} is not in this tool's table"
        ));
    };
    let has = |feature: &&&str| features.iter().any(|known| known == **feature);
    if let Some(alien) = entry.never.iter().find(has) {
        return Err(format!(
            "family {family} model {model} is {}, which has no {alien}, but this CPU has: a hypervisor \
                changed one of them",
            entry.name
        ));
    }
    if *guest == Some(false)
        || names_a_product(model_name)
        || entry.shown_by.iter().any(|feature| has(&feature))
    {
        Ok(entry.name)
    } else {
        Err(format!(
            "family {family} model {model} would be {}, but a hypervisor may show any, and nothing confirms \
                it",
            entry.name
        ))
    }
}

/// "AMD EPYC 9R14" and "Xeon(R) Platinum 8488C" name a product; "Xeon(R) Processor" and "AMD EPYC" do not,
/// nor do QEMU's "EPYC-Milan Processor" and "Xeon Processor (Skylake, IBRS)". A product's number has three
/// digits or more.
fn names_a_product(model_name: &str) -> bool {
    let name = model_name.split('@').next().unwrap_or_default();
    name.as_bytes().windows(3).any(|three| three.iter().all(u8::is_ascii_digit))
        || name
            .split_whitespace()
            .any(|word| word.len() >= 4 && word.bytes().filter(u8::is_ascii_digit).count() >= 3)
}

/// Implementer and name of an Arm core by its MIDR implementer and part number.
pub(crate) fn arm(implementer: u32, part: u32) -> (Option<&'static str>, Option<&'static str>) {
    let vendor = match implementer {
        0x41 => "Arm",
        0x42 => "Broadcom",
        0x43 => "Cavium",
        0x46 => "Fujitsu",
        0x48 => "HiSilicon",
        0x4e => "NVIDIA",
        0x50 => "Ampere (APM)",
        0x51 => "Qualcomm",
        0x53 => "Samsung",
        0x61 => "Apple",
        0x6d => "Microsoft",
        0xc0 => "Ampere",
        _ => return (None, None),
    };
    let core = match (implementer, part) {
        (0x41, 0xd03) => "Cortex-A53",
        (0x41, 0xd04) => "Cortex-A35",
        (0x41, 0xd05) => "Cortex-A55",
        (0x41, 0xd07) => "Cortex-A57",
        (0x41, 0xd08) => "Cortex-A72",
        (0x41, 0xd09) => "Cortex-A73",
        (0x41, 0xd0a) => "Cortex-A75",
        (0x41, 0xd0b) => "Cortex-A76",
        (0x41, 0xd0c) => "Neoverse N1",
        (0x41, 0xd0d) => "Cortex-A77",
        (0x41, 0xd40) => "Neoverse V1",
        (0x41, 0xd41) => "Cortex-A78",
        (0x41, 0xd44) => "Cortex-X1",
        (0x41, 0xd46) => "Cortex-A510",
        (0x41, 0xd47) => "Cortex-A710",
        (0x41, 0xd48) => "Cortex-X2",
        (0x41, 0xd49) => "Neoverse N2",
        (0x41, 0xd4a) => "Neoverse E1",
        (0x41, 0xd4d) => "Cortex-A715",
        (0x41, 0xd4e) => "Cortex-X3",
        (0x41, 0xd4f) => "Neoverse V2",
        (0x41, 0xd80) => "Cortex-A520",
        (0x41, 0xd81) => "Cortex-A720",
        (0x41, 0xd82) => "Cortex-X4",
        (0x41, 0xd84) => "Neoverse V3",
        (0x41, 0xd8e) => "Neoverse N3",
        (0x43, 0xaf) => "ThunderX2",
        (0x46, 0x001) => "A64FX",
        (0x48, 0xd01) => "TaiShan v110",
        (0xc0, 0xac3) => "Ampere-1",
        (0xc0, 0xac4) => "Ampere-1a",
        _ => return (Some(vendor), None),
    };
    (Some(vendor), Some(core))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(
        vendor: &str,
        (family, model, stepping): (u32, u32, u32),
        model_name: &str,
        features: &[&str],
        guest: Option<bool>,
    ) -> Result<&'static str, String> {
        let features: Vec<String> = features.iter().map(|f| (*f).to_owned()).collect();
        x86(&Identity { vendor, family, model, stepping, model_name, features: &features, guest })
    }

    #[test]
    fn a_bare_cpu_is_named_by_its_numbers() {
        assert_eq!(name(INTEL, (6, 0x55, 7), "", &[], Some(false)), Ok("Cascade Lake"));
        assert_eq!(name(AMD, (0x1a, 0x44, 0), "", &[], Some(false)), Ok("Zen 5"));
    }

    #[test]
    fn a_feature_that_it_cannot_have_takes_the_name_away() {
        let why =
            name(INTEL, (6, 167, 1), "Intel(R) Xeon(R) Processor", &["avx512f", "amx_tile"], Some(true));
        assert!(why.is_err_and(|why| why.contains("Rocket Lake") && why.contains("amx_tile")));
    }

    #[test]
    fn a_guest_needs_a_product_name_or_a_telling_feature() {
        assert!(name(AMD, (0x1a, 2, 1), "AMD EPYC", &["avx512f"], Some(true)).is_err());
        assert_eq!(name(AMD, (0x1a, 2, 1), "AMD EPYC", &["avx_vnni"], Some(true)), Ok("Zen 5"));
        assert_eq!(name(AMD, (0x19, 1, 1), "AMD EPYC 7R13 Processor", &[], Some(true)), Ok("Zen 3"));
        assert!(name(INTEL, (6, 0x55, 4), "Intel Xeon Processor (Skylake, IBRS)", &[], None).is_err());
    }

    #[test]
    fn model_numbers_make_a_product_and_clock_rates_do_not() {
        for product in [
            "AMD EPYC 9R14",
            "Intel(R) Xeon(R) Platinum 8488C",
            "AMD EPYC 7R13 Processor",
            "Intel(R) Core(TM) i7-1185G7 @ 3.00GHz",
        ] {
            assert!(names_a_product(product), "{product}");
        }
        for none in ["Intel(R) Xeon(R) CPU @ 2.20GHz", "AMD EPYC", "QEMU Virtual CPU version 2.5+", "EPYC-v4"]
        {
            assert!(!names_a_product(none), "{none}");
        }
    }

    #[test]
    fn arm_cores_are_known_by_part_number() {
        assert_eq!(arm(0x41, 0xd0c), (Some("Arm"), Some("Neoverse N1")));
        assert_eq!(arm(0x41, 0xfff), (Some("Arm"), None));
        assert_eq!(arm(0x99, 1), (None, None));
    }
}
