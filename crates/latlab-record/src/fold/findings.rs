//! The findings of a point's rounds become those of its figure.

use serde_json::Value;

/// Findings of the same form have the median of each measured number. Whatever else differs (counts, CPUs, words, lengths) is that of the round whose figure
/// is nearest to the folded one, so that what is told together belongs together.
pub(super) fn merged(rounds: &[&Value], nearest: usize) -> Value {
    let own = rounds[nearest];
    if rounds.iter().all(|other| *other == own) {
        return own.clone();
    }
    match own {
        Value::Object(fields) => {
            let of_form = |other: &&Value| {
                other.as_object().is_some_and(|other| {
                    other.len() == fields.len() && fields.keys().all(|key| other.contains_key(key))
                })
            };
            if !rounds.iter().all(of_form) {
                return own.clone();
            }
            fields
                .keys()
                .map(|key| {
                    let values: Vec<&Value> = rounds.iter().map(|round| &round[key]).collect();
                    (key.clone(), merged(&values, nearest))
                })
                .collect()
        }
        Value::Array(items) => {
            let lists: Vec<&Vec<Value>> = rounds.iter().filter_map(|round| round.as_array()).collect();
            if lists.len() < rounds.len() || !lists.iter().all(|list| alike(list, items)) {
                return own.clone();
            }
            (0..items.len())
                .map(|place| {
                    let values: Vec<&Value> = lists.iter().map(|list| &list[place]).collect();
                    merged(&values, nearest)
                })
                .collect()
        }
        Value::Number(_) => median(rounds).unwrap_or_else(|| own.clone()),
        _ => own.clone(),
    }
}

/// Whether two lists are about the same things: as long, and of the same labels (words and whole numbers) throughout.
fn alike(one: &[Value], other: &[Value]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same_label(one, other))
}

fn same_label(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Array(one), Value::Array(other)) => alike(one, other),
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .all(|(key, value)| other.get(key).is_some_and(|other| same_label(value, other)))
        }
        (Value::Number(a), Value::Number(b)) => a == b || (a.is_f64() && b.is_f64()),
        _ => one == other,
    }
}

/// Of measured numbers. A whole number may be a name: CPU 0 and CPU 1 have no CPU 0.5 between them.
fn median(rounds: &[&Value]) -> Option<Value> {
    let measured = rounds.iter().map(|round| match round {
        Value::Number(number) if number.is_f64() => number.as_f64(),
        _ => None,
    });
    let mut numbers: Vec<f64> = measured.collect::<Option<_>>()?;
    numbers.sort_by(f64::total_cmp);
    serde_json::Number::from_f64(latlab_stats::quantile(&numbers, 0.5)).map(Value::Number)
}
