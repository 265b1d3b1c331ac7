//! A machine that another version of latlab or another system described.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::machine::Machine;

/// No machine has a longer list; further entries of one that cannot be read are not looked at.
const LONGEST_LIST: usize = 1_000;

/// What is missing or of a form that this version does not know counts as unknown, in a list without its
/// entry; further fields are ignored. Errors: it is no JSON.
pub fn as_far_as_known<'de, D: Deserializer<'de>>(from: D) -> Result<Machine, D::Error> {
    let given = Value::deserialize(from)?;
    if let Ok(machine) = Machine::deserialize(&given) {
        return Ok(machine);
    }
    let unknown = serde_json::to_value(Machine::default()).map_err(serde::de::Error::custom)?;
    let mut known = unknown.clone();
    take(&mut known, &unknown, "", given);
    Machine::deserialize(known).map_err(serde::de::Error::custom)
}

/// Puts into `known` what can be read of a part, which is tried in a machine of which nothing else is known.
fn take(known: &mut Value, unknown: &Value, at: &str, part: Value) {
    let read = |part: &Value| {
        let mut machine = unknown.clone();
        *machine.pointer_mut(at)? = part.clone();
        Machine::deserialize(machine).is_ok().then_some(())
    };
    let Some(place) = known.pointer_mut(at) else { return };
    if read(&part).is_some() {
        *place = part;
        return;
    }
    match (place, part) {
        (Value::Object(fields), Value::Object(mut parts)) => {
            for name in fields.keys().cloned().collect::<Vec<_>>() {
                if let Some(part) = parts.remove(&name) {
                    take(known, unknown, &format!("{at}/{name}"), part);
                }
            }
        }
        (Value::Array(list), Value::Array(entries)) => {
            let entries = entries.into_iter().take(LONGEST_LIST);
            list.extend(entries.filter(|entry| read(&Value::Array(vec![entry.clone()])).is_some()));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(given: Value) -> Machine {
        as_far_as_known(given).expect("JSON")
    }

    #[test]
    fn what_is_missing_or_unknown_of_a_machine_leaves_the_rest_of_it() {
        let mut whole = Machine::default();
        whole.cpu.model_name = Some("a CPU".to_owned());
        whole.memory.page_bytes = Some(4096);
        let cache = |level: u8| {
            json!({
                "level": level, "kind": "unified", "size_bytes": 1 << 20, "shared_cpus": [], "cpus": [], "source": "sysfs"
            })
        };
        whole.caches = serde_json::from_value(json!([cache(1), cache(2)])).expect("two caches");
        let given = serde_json::to_value(&whole).expect("a machine");
        assert_eq!(read(given.clone()), whole);

        let mut newer = given.clone();
        newer["cpu"]["stepping_of_next_year"] = json!(7);
        assert_eq!(read(newer), whole, "a further field");

        let mut other = given;
        other.as_object_mut().expect("fields").remove("limits");
        other["memory"].as_object_mut().expect("fields").remove("huge_pools");
        other["clock_source"] = json!(["another", "form"]);
        other["caches"][0]["kind"] = json!("trace");
        let read = read(other);
        assert_eq!(read.caches, whole.caches[1..]);
        assert_eq!(Machine { caches: whole.caches.clone(), ..read }, whole);
    }

    #[test]
    fn what_is_no_machine_is_one_of_which_nothing_is_known() {
        for given in [json!(null), json!([1]), json!({}), json!({"cpu": "many", "caches": 3})] {
            assert_eq!(read(given), Machine::default());
        }
    }
}
