//! What feeds this computer: on battery, many lower their clocks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::notes::Notes;
use crate::root::Root;

/// Power source.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum PowerSource {
    /// The mains, or a charger.
    Mains,
    /// A battery.
    Battery,
    /// Not told.
    #[default]
    Unknown,
}

/// Linux: `/sys/class/power_supply`.
pub(crate) fn read(root: &Root, notes: &mut Notes) -> PowerSource {
    const FOLDER: &str = "/sys/class/power_supply";
    let word = |supply: &str, file: &str| root.line(&format!("{FOLDER}/{supply}/{file}")).unwrap_or_default();
    let mut source = PowerSource::Unknown;
    for supply in root.names(FOLDER) {
        // Batteries of mice and headsets have scope "Device".
        if word(&supply, "scope") == "Device" {
            continue;
        }
        match word(&supply, "type").as_str() {
            "Mains" | "USB" | "Wireless" if word(&supply, "online") == "1" => return PowerSource::Mains,
            "Battery" if word(&supply, "status") == "Discharging" => source = PowerSource::Battery,
            _ => {}
        }
    }
    if source == PowerSource::Unknown {
        notes.say(
            "cpu.power_source",
            format!(
                "{FOLDER} lists no charger and no battery in use (usual on \
            servers, desktops and virtual machines)"
            ),
        );
    }
    source
}

/// macOS: the first line of `pmset -g batt`.
pub(crate) fn from_pmset(text: &str) -> PowerSource {
    match text.lines().next() {
        Some(line) if line.contains("'AC Power'") => PowerSource::Mains,
        Some(line) if line.contains("'Battery Power'") => PowerSource::Battery,
        _ => PowerSource::Unknown,
    }
}

/// Windows: `Win32_Battery.BatteryStatus`; 1 is discharging, 4 and 5 are low and critical, the others have
/// mains.
pub(crate) fn from_battery_status(status: u16) -> PowerSource {
    match status {
        1 | 4 | 5 => PowerSource::Battery,
        2 | 3 | 6..=9 => PowerSource::Mains,
        _ => PowerSource::Unknown,
    }
}
