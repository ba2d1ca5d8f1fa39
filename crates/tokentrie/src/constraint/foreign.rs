//! Objects that are not specs but have a likely meaning: JSON Schemas, and the kinds of other libraries.

use serde_json::{Map, Value};

/// Keywords that no spec has and that say what a document is.
const KEYWORDS: [&str; 20] = [
    "$schema",
    "$ref",
    "$defs",
    "definitions",
    "type",
    "properties",
    "patternProperties",
    "additionalProperties",
    "propertyNames",
    "required",
    "items",
    "prefixItems",
    "enum",
    "const",
    "anyOf",
    "oneOf",
    "allOf",
    "not",
    "if",
    "dependentSchemas",
];

/// Types of JSON Schema.
const TYPES: [&str; 7] = ["null", "boolean", "object", "array", "number", "string", "integer"];

/// Names of kinds in other libraries, and in other parts of this one.
const ALIASES: [(&str, &str); 24] = [
    ("json", "json_schema"),
    ("schema", "json_schema"),
    ("guided_json", "json_schema"),
    ("json_object", "json_schema"),
    ("pattern", "regex"),
    ("guided_regex", "regex"),
    ("choices", "choice"),
    ("options", "choice"),
    ("values", "choice"),
    ("guided_choice", "choice"),
    ("ebnf", "gbnf"),
    ("guided_grammar", "gbnf"),
    ("int", "integer"),
    ("float", "number"),
    ("str", "string"),
    ("datetime", "date_time"),
    ("any_of", "one_of"),
    ("union", "one_of"),
    ("or", "one_of"),
    ("concat", "then"),
    ("list", "repeat"),
    ("many", "repeat"),
    ("thinking", "think"),
    ("tools", "reply"),
];

/// Returns whether an object without the name of a kind is a JSON Schema and cannot be anything else.
pub(crate) fn is_schema(object: &Map<String, Value>) -> bool {
    let known_type = |value: &Value| value.as_str().is_some_and(|name| TYPES.contains(&name));
    let sound_type = object.get("type").is_none_or(|value| match value {
        Value::Array(several) => several.iter().all(known_type),
        one => known_type(one),
    });
    sound_type && KEYWORDS.iter().any(|keyword| object.contains_key(*keyword))
}

/// Returns the kind that an object without a kind probably means: a field or its `"type"` is similar to the name of a
/// kind, or is the name in another library.
pub(crate) fn meant_kind(object: &Map<String, Value>, kinds: &[String]) -> Option<String> {
    let of_type = object.get("type").and_then(Value::as_str);
    let names: Vec<String> = object.keys().map(String::as_str).chain(of_type).map(str::to_lowercase).collect();
    let alias = |name: &String| ALIASES.iter().find(|(alias, _)| alias == name).map(|(_, kind)| (*kind).to_owned());
    let same = |name: &String| kinds.contains(name).then(|| name.clone());
    let nearest = || names.iter().filter_map(|name| nearest(name, kinds)).min_by_key(|(distance, _)| *distance);
    let found = names.iter().find_map(|name| same(name).or_else(|| alias(name)));
    found.or_else(|| nearest().map(|(_, kind)| kind.clone()))
}

/// Returns the name that was meant by one that is none of these, where one is near.
pub(crate) fn near_name(name: &str, known: &[String]) -> Option<String> {
    nearest(&name.to_lowercase(), known).map(|(_, known)| known.clone())
}

fn nearest<'k>(name: &str, known: &'k [String]) -> Option<(usize, &'k String)> {
    let distances = known.iter().map(|known| (distance(name, known), known));
    distances.filter(|(distance, known)| distance * 3 <= known.len()).min_by_key(|(distance, _)| *distance)
}

/// Computes the edit distance of two names, with transpositions; names of any length cost no more than the longest
/// kind.
fn distance(one: &str, other: &str) -> usize {
    const LONGEST: usize = 24;
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().take(LONGEST).collect(), other.chars().collect());
    let mut rows = vec![vec![0; other.len() + 1]; one.len() + 1];
    rows[0] = (0..=other.len()).collect();
    for (row, a) in one.iter().enumerate() {
        rows[row + 1][0] = row + 1;
        for (column, b) in other.iter().enumerate() {
            let replaced = rows[row][column] + usize::from(a != b);
            let mut least = replaced.min(rows[row][column + 1] + 1).min(rows[row + 1][column] + 1);
            if row > 0 && column > 0 && *a == other[column - 1] && one[row - 1] == *b {
                least = least.min(rows[row - 1][column - 1] + 1);
            }
            rows[row + 1][column + 1] = least;
        }
    }
    rows[one.len()][other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::constraint::{Spec, SpecProblem};
    use serde_json::json;

    /// The smallest distance by trying all edits, to a depth.
    fn is_within_edits(one: &[char], other: &[char], most: usize) -> bool {
        if one.first() == other.first() && !one.is_empty() && is_within_edits(&one[1..], &other[1..], most) {
            return true;
        }
        if one.is_empty() || other.is_empty() {
            return one.len().max(other.len()) <= most;
        }
        let swapped = one.len() > 1 && other.len() > 1 && one[0] == other[1] && one[1] == other[0];
        most > 0
            && (is_within_edits(&one[1..], other, most - 1)
                || is_within_edits(one, &other[1..], most - 1)
                || is_within_edits(&one[1..], &other[1..], most - 1)
                || (swapped && is_within_edits(&one[2..], &other[2..], most - 1)))
    }

    #[test]
    fn a_distance_is_the_fewest_edits() {
        for (one, other) in [("regx", "regex"), ("rgeex", "regex"), ("chioce", "choice"), ("", "set"), ("dat", "date")]
        {
            let (a, b): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
            let found = distance(one, other);
            assert!(
                is_within_edits(&a, &b, found) && (found == 0 || !is_within_edits(&a, &b, found - 1)),
                "{one} {other} {found}"
            );
        }
    }

    #[test]
    fn every_kind_with_a_slip_is_refused_with_the_kind() {
        let error = Spec::from_json(b"{}").unwrap_err();
        let SpecProblem::NoKind { known: kinds, .. } = error.problem() else { panic!("{error}") };
        assert!(kinds.len() > 20);
        for kind in kinds {
            let chars: Vec<char> = kind.chars().collect();
            for at in 0..chars.len() {
                let mut slips = vec![chars.clone(), chars.clone(), chars.clone()];
                slips[0].remove(at);
                slips[1].insert(at, 'q');
                if at + 1 < chars.len() {
                    slips[2].swap(at, at + 1);
                }
                for slip in slips.into_iter().map(String::from_iter) {
                    // Of three letters two are too few to tell.
                    if kinds.contains(&slip) || kind.len() <= 3 {
                        continue;
                    }
                    let error = Spec::from_json(json!({&slip: {}}).to_string().as_bytes()).unwrap_err();
                    let SpecProblem::NoKind { meant: Some(meant), .. } = error.problem() else {
                        panic!("{slip}: {error}");
                    };
                    let alias = ALIASES.iter().any(|(alias, of)| *alias == slip && of == meant);
                    assert!(alias || distance(&slip, meant) <= distance(&slip, kind), "{slip}: {meant}");
                }
            }
        }
    }

    #[test]
    fn schemas_are_taken_and_what_is_nearly_one_is_not() {
        for schema in [
            json!({"type": "object", "properties": {"a": {}}}),
            json!({"type": ["string", "null"]}),
            json!({"anyOf": [{"type": "integer"}]}),
            json!({"enum": ["a", 1]}),
            json!({"$ref": "#/$defs/a", "$defs": {"a": {}}}),
            json!({"title": "Row", "properties": {}}),
        ] {
            let read = Spec::from_json(schema.to_string().as_bytes()).unwrap();
            let Spec::JsonSchema(read) = read else { panic!("{schema}") };
            assert_eq!(serde_json::from_str::<Value>(&read.schema).unwrap(), schema);
        }
        for (other, meant) in [
            (json!({"type": "regex", "pattern": "a"}), Some("regex")),
            (json!({"type": "json_schema", "strict": true}), Some("json_schema")),
            (json!({"pattern": "a"}), Some("regex")),
            (json!({"foo": 1}), None),
            (json!({}), None),
        ] {
            let error = Spec::from_json(other.to_string().as_bytes()).unwrap_err();
            let SpecProblem::NoKind { meant: found, .. } = error.problem() else { panic!("{other}: {error}") };
            assert_eq!(found.as_deref(), meant, "{other}");
        }
    }
}
