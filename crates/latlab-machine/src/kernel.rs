//! Kernel build settings and clock source.

use std::io::Read;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::boot::Boot;
use crate::notes::Notes;
use crate::os::Os;
use crate::root::Root;
use crate::text;

/// Kernel settings that change timings.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
pub struct Kernel {
    /// Timer ticks a second (`CONFIG_HZ`).
    pub tick_hz: Option<u32>,
    /// When the kernel lets another thread run while it works for one.
    pub preemption: Preemption,
}

/// Kernel preemption.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
pub struct Preemption {
    /// `none`, `voluntary`, `full`, `lazy` or `rt`.
    pub model: Option<String>,
    /// Whether it can be changed at boot and while running (`PREEMPT_DYNAMIC`).
    pub dynamic: Option<bool>,
    /// Where `model` was read.
    pub source: Option<String>,
}

/// What the kernel's clocks are made of.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq, Eq)]
pub struct ClockSource {
    /// In use.
    pub current: Option<String>,
    /// Could be used.
    pub available: Vec<String>,
}

pub(crate) fn clock_source(root: &Root, notes: &mut Notes) -> ClockSource {
    const FOLDER: &str = "/sys/devices/system/clocksource/clocksource0";
    let available = root.line(&format!("{FOLDER}/available_clocksource")).unwrap_or_default();
    ClockSource {
        current: notes.or("clock_source.current", root.line(&format!("{FOLDER}/current_clocksource"))),
        available: available.split_whitespace().map(str::to_owned).collect(),
    }
}

pub(crate) fn read(root: &Root, os: &Os, boot: &Boot, notes: &mut Notes) -> Kernel {
    let config = config(root, os.kernel_release.as_deref());
    let tick_hz = config.as_deref().and_then(|config| option(config, "CONFIG_HZ")?.parse().ok());
    let why = "no kernel configuration is readable (/proc/config.gz, /boot/config-*, /lib/modules/*/config)";
    let chosen_now = root.text("/sys/kernel/debug/sched/preempt").ok();
    let preemption = preemption(
        chosen_now.as_deref(),
        os.kernel_version.as_deref().unwrap_or_default(),
        boot,
        config.as_deref(),
    );
    if preemption.model.is_none() {
        notes.say(
            "kernel.preemption.model",
            "the kernel's build line does not report it, and its configuration is not readable",
        );
    }
    Kernel { tick_hz: notes.must("kernel.tick_hz", tick_hz, why), preemption }
}

fn config(root: &Root, release: Option<&str>) -> Option<String> {
    // A configuration has about 300 kB; a damaged archive must not fill the memory.
    const MOST_BYTES: u64 = 4 << 20;
    if let Ok(packed) = root.bytes("/proc/config.gz") {
        let mut text = String::new();
        if flate2::read::GzDecoder::new(packed.as_slice()).take(MOST_BYTES).read_to_string(&mut text).is_ok()
        {
            return Some(text);
        }
    }
    let release = release.filter(|release| !release.contains('/'))?;
    [format!("/boot/config-{release}"), format!("/lib/modules/{release}/config")]
        .iter()
        .find_map(|path| root.text(path).ok())
}

fn option<'a>(config: &'a str, name: &str) -> Option<&'a str> {
    config.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
}

/// The model in force: as debugfs shows it, else by the build line, the boot option and the configuration's
/// default.
pub(crate) fn preemption(
    now: Option<&str>,
    build_line: &str,
    boot: &Boot,
    config: Option<&str>,
) -> Preemption {
    let built = |name: &str| config.is_some_and(|config| option(config, name) == Some("y"));
    let has = |word: &str| build_line.split_whitespace().any(|part| part == word);
    let dynamic = has("PREEMPT_DYNAMIC") || built("CONFIG_PREEMPT_DYNAMIC");
    let known = !build_line.is_empty() || config.is_some();
    let reported = |model: &str, source: &str| Preemption {
        model: Some(model.to_owned()),
        dynamic: Some(dynamic),
        source: Some(source.to_owned()),
    };
    if let Some(model) = now.and_then(text::chosen) {
        return Preemption { dynamic: Some(true), ..reported(&model, "/sys/kernel/debug/sched/preempt") };
    }
    if has("PREEMPT_RT") {
        return reported("rt", "the kernel's build line");
    }
    if dynamic
        && let Some(model) =
            boot.options.iter().rev().find(|o| o.name == "preempt").and_then(|o| o.value.clone())
    {
        return reported(&model, "the boot option preempt");
    }
    let default = [
        ("CONFIG_PREEMPT_RT", "rt"),
        ("CONFIG_PREEMPT_LAZY", "lazy"),
        ("CONFIG_PREEMPT", "full"),
        ("CONFIG_PREEMPT_VOLUNTARY", "voluntary"),
        ("CONFIG_PREEMPT_NONE", "none"),
    ];
    if let Some((_, model)) = default.iter().find(|(name, _)| built(name)) {
        return reported(model, "the kernel's configuration");
    }
    if has("PREEMPT") {
        return reported("full", "the kernel's build line");
    }
    Preemption { model: None, dynamic: known.then_some(dynamic), source: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::BootOption;

    fn model(now: Option<&str>, line: &str, boot: &Boot, config: Option<&str>) -> Option<String> {
        preemption(now, line, boot, config).model
    }

    #[test]
    fn a_dynamic_kernel_does_not_tell_its_model_by_its_build_line() {
        let line = "#1 SMP PREEMPT_DYNAMIC Debian 6.1";
        assert_eq!(
            preemption(None, line, &Boot::default(), None),
            Preemption { model: None, dynamic: Some(true), source: None }
        );
        let config = "CONFIG_PREEMPT_BUILD=y\nCONFIG_PREEMPT_NONE=y\nCONFIG_PREEMPT_DYNAMIC=y\n";
        assert_eq!(model(None, line, &Boot::default(), Some(config)).as_deref(), Some("none"));
        let boot = Boot {
            options: vec![BootOption { name: "preempt".into(), value: Some("full".into()) }],
            ..Boot::default()
        };
        assert_eq!(model(None, line, &boot, Some(config)).as_deref(), Some("full"));
        assert_eq!(
            model(Some("none (voluntary) full"), line, &boot, Some(config)).as_deref(),
            Some("voluntary")
        );
    }

    #[test]
    fn static_models_are_in_the_build_line() {
        assert_eq!(model(None, "#1 SMP PREEMPT_RT Debian", &Boot::default(), None).as_deref(), Some("rt"));
        assert_eq!(model(None, "#1 SMP PREEMPT Mon", &Boot::default(), None).as_deref(), Some("full"));
        assert_eq!(model(None, "#1 SMP Mon", &Boot::default(), None), None);
    }

    #[test]
    fn hz_is_the_number_and_not_one_of_the_choices() {
        assert_eq!(option("CONFIG_HZ_250=y\nCONFIG_HZ=250\n", "CONFIG_HZ"), Some("250"));
    }
}
