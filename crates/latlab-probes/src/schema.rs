//! The JSON Schema of run files, with what the findings of each probe hold.

use latlab_harness::Schemas;
use serde_json::{Value, json};

use crate::REGISTRY;

/// The JSON Schema of run files, as committed in `schema/run.v2.json`.
///
/// # Panics
/// Never: the schema is plain data.
pub fn schema_json() -> String {
    let mut document = latlab_record::schema();
    document["$defs"]["Record"]["allOf"] = REGISTRY
        .iter()
        .flat_map(|entry| {
            let spec = entry.probe.spec();
            let Schemas { details, findings } = entry.probe.schemas();
            let derived = json!({ "const": "derived" });
            // What was not measured says why in another form.
            let measured = json!({ "enum": ["per_op", "batch_mean"] });
            [(details, measured), (findings, derived)]
                .into_iter()
                .filter_map(|(schema, kind)| Some(of_records(spec.id, spec.method_version, &kind, &schema?)))
        })
        .collect();
    let mut text = serde_json::to_string_pretty(&document).expect("a schema serialises");
    text.push('\n');
    text
}

/// What records of this probe, method and kind hold as findings, where they have any.
fn of_records(probe: &str, method: u32, kind: &Value, findings: &Value) -> Value {
    json!({
        "if": {
            "properties": { "probe": { "const": probe }, "method": { "const": method }, "kind": kind },
            "required": ["probe", "method", "kind"],
        },
        "then": { "properties": { "findings": { "anyOf": [findings, { "type": "null" }] } } },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_is_the_committed_one() {
        assert_eq!(schema_json(), include_str!("../../../schema/run.v2.json"), "make generate");
    }

    #[test]
    fn findings_of_a_probe_with_types_are_in_it() {
        let document: Value = serde_json::from_str(&schema_json()).expect("JSON");
        let all = document["$defs"]["Record"]["allOf"].as_array().expect("a list");
        let of = |kind: &Value| {
            let is = |each: &&Value| {
                let fields = &each["if"]["properties"];
                fields["probe"]["const"] == "memory.false_sharing" && fields["kind"] == *kind
            };
            all.iter().find(is).expect("it has them")["then"]["properties"]["findings"]["anyOf"][0].clone()
        };
        let derived = json!({ "const": "derived" });
        assert_eq!(of(&derived)["required"], json!(["operations"]));
        assert_eq!(of(&json!({ "enum": ["per_op", "batch_mean"] }))["required"], json!(["cpus", "threads"]));
    }
}
