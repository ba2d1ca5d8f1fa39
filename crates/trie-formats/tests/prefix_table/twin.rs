//! The naive twin: every path from the start is expanded by looking its key up as text.

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use trie_core::Trie;
use trie_formats::{PrefixTable, PrefixTableError, Strictness};

const START: u32 = 1;
const WEIGHTS: [f32; 4] = [0.0, 0.5, -1.25, 3.0];

/// Token and weight; tokens above the largest id are written as they are and cannot be used.
type List = Vec<(i64, usize)>;

#[derive(Debug, Clone)]
struct Table {
    /// By path, the start included.
    keys: BTreeMap<Vec<u32>, List>,
    end: u32,
    sep: &'static str,
    weighted: bool,
    order: Vec<usize>,
}

impl Table {
    fn key(&self, path: &[u32]) -> String {
        path.iter().map(u32::to_string).collect::<Vec<_>>().join(self.sep)
    }

    fn json(&self) -> String {
        let weighted = |token: i64, weight: usize| json!(format!("{token}:{}", WEIGHTS[weight]));
        let item = |&(token, weight): &(i64, usize)| if self.weighted { weighted(token, weight) } else { json!(token) };
        // `Map` would sort the keys, and the order must not matter.
        let mut keys: Vec<String> = Vec::new();
        for (path, list) in &self.keys {
            let list = Value::Array(list.iter().map(item).collect());
            keys.push(format!("{}: {list}", json!(self.key(path))));
        }
        let mut shuffled: Vec<String> = Vec::new();
        for (at, key) in keys.into_iter().enumerate() {
            let place = self.order.get(at).map_or(0, |place| place % (shuffled.len() + 1));
            shuffled.insert(place, key);
        }
        let name = if self.weighted { "prefix_weight_dict" } else { "prefix_dict" };
        let dict = format!("\"{name}\": {{{}}}", shuffled.join(", "));
        let mut rest = Map::new();
        rest.insert("start_token_id".into(), json!(START));
        rest.insert("end_token_id".into(), json!(self.end));
        rest.insert("sep".into(), json!(self.sep));
        let rest = Value::Object(rest).to_string();
        let rest = &rest[1..rest.len() - 1];
        let first = self.order.first().is_some_and(|first| first % 2 == 0);
        if first { format!("{{{dict}, \"other\": [{{}}], {rest}}}") } else { format!("{{{rest}, {dict}}}") }
    }
}

fn is_id(token: i64) -> bool {
    (0..1 << 31).contains(&token)
}

/// What the table means, found the slow way.
#[derive(Debug, Default)]
struct Naive {
    /// Paths with the weights along them, and of their end.
    values: BTreeMap<Vec<u32>, (Vec<f32>, f32)>,
    used: BTreeSet<Vec<u32>>,
    strange: bool,
}

impl Naive {
    fn of(table: &Table) -> Self {
        let mut naive = Self::default();
        let usable = |list: &List| list.iter().all(|&(token, _)| is_id(token));
        naive.strange |= !table.keys.values().all(usable);
        naive.strange |= !table.keys.contains_key(&vec![START]);
        naive.expand(table, &mut vec![START], &mut Vec::new());
        naive
    }

    fn expand(&mut self, table: &Table, path: &mut Vec<u32>, weights: &mut Vec<f32>) {
        let derived = || {
            let keys = table.keys.keys().filter(|key| key.len() == 2 && key[0] == START && key[1] != table.end);
            keys.map(|key| (i64::from(key[1]), 0)).collect::<List>()
        };
        let list = table.keys.get(path).cloned().or_else(|| (path.len() == 1).then(derived));
        if let Some(list) = &list {
            self.used.insert(path.clone());
            self.strange |= path.len() == 1 && list.iter().any(|&(token, _)| token == i64::from(table.end));
        }
        let list = list.unwrap_or_default();
        let end = list.iter().find(|&&(token, _)| token == i64::from(table.end));
        if path.len() > 1 && (list.is_empty() || end.is_some()) {
            let end = end.map_or(0.0, |&(_, weight)| WEIGHTS[weight]);
            self.values.insert(path[1..].to_vec(), (weights.clone(), end));
        }
        if list.is_empty() || end.is_some() {
            // A key of what follows the end says nothing new, or cannot be reached.
            path.push(table.end);
            if let Some(list) = table.keys.get(path) {
                let usable: List = list.iter().copied().filter(|&(token, _)| is_id(token)).collect();
                let only_end = usable.iter().all(|&(token, _)| token == i64::from(table.end));
                if only_end && usable.is_empty() == list.is_empty() {
                    self.used.insert(path.clone());
                }
            }
            path.pop();
        }
        for &(token, weight) in list.iter().filter(|&&(token, _)| is_id(token)) {
            if token != i64::from(table.end) {
                path.push(token as u32);
                weights.push(WEIGHTS[weight]);
                self.expand(table, path, weights);
                path.pop();
                weights.pop();
            }
        }
    }
}

fn weights_along(trie: &Trie, tokens: &[u32]) -> (Vec<f32>, f32) {
    let mut at = trie.root();
    let mut weights = Vec::new();
    for &token in tokens {
        let nth = trie.children(at).iter().position(|child| child.get() == token).unwrap();
        weights.push(trie.weights(at)[nth]);
        at = trie.step(at, trie.children(at)[nth]).unwrap();
    }
    (weights, trie.end_weight(at))
}

fn check(table: &Table) -> Result<(), TestCaseError> {
    let (json, naive) = (table.json(), Naive::of(table));
    let repaired = PrefixTable::from_json(json.as_bytes(), Strictness::Repair);
    if naive.values.is_empty() {
        prop_assert!(matches!(repaired, Err(PrefixTableError::NoValues { .. })), "{repaired:?} of {json}");
        prop_assert!(PrefixTable::from_json(json.as_bytes(), Strictness::Strict).is_err());
        return Ok(());
    }
    let PrefixTable { trie, report } = repaired.unwrap();
    let leaves: Vec<Vec<u32>> = trie.leaves().map(|leaf| leaf.tokens.iter().map(|t| t.get()).collect()).collect();
    prop_assert_eq!(&leaves, &naive.values.keys().cloned().collect::<Vec<_>>(), "{}", json);
    prop_assert_eq!(trie.end_tokens().iter().map(|token| token.get()).collect::<Vec<_>>(), vec![table.end]);
    prop_assert_eq!(trie.is_weighted(), table.weighted);
    if table.weighted {
        for (tokens, weights) in &naive.values {
            prop_assert_eq!(&weights_along(&trie, tokens), weights, "{:?} in {}", tokens, json);
        }
    }
    let unused = table.keys.keys().filter(|key| !naive.used.contains(*key)).count();
    prop_assert_eq!(report.unreachable, unused, "{}: {:?}", json, report);
    prop_assert_eq!(report.keys, table.keys.len());
    prop_assert_eq!(report.derived_root, !table.keys.contains_key(&vec![START]));
    let read = PrefixTable::read(json.as_bytes(), Strictness::Repair).unwrap();
    prop_assert!(read.trie == trie && read.report == report);
    let strict = PrefixTable::from_json(json.as_bytes(), Strictness::Strict);
    match strict {
        Ok(strict) => prop_assert!(strict.trie == trie && !naive.strange && unused == 0, "{json}"),
        Err(error) => prop_assert!(naive.strange || unused > 0, "{error} of {json}"),
    }
    Ok(())
}

fn tables() -> impl Strategy<Value = Table> {
    let path = vec(0u32..4, 0..4);
    // Mostly ids that lead somewhere, now and then one that leads nowhere.
    let token = prop_oneof![40 => 0i64..4, 1 => Just(-1i64), 1 => Just(1i64 << 31)];
    let list = vec((token, 0..WEIGHTS.len()), 0..4);
    let keys = btree_map(path, list, 0..24);
    let sep = prop::sample::select(vec!["_", ":", "--", " ", "é"]);
    (keys, 0u32..5, sep, any::<bool>(), vec(any::<usize>(), 24), prop::bool::weighted(0.8)).prop_map(
        |(keys, end, sep, weighted, order, rooted)| {
            let start = |path: Vec<u32>| [&[START], &path[..]].concat();
            let mut keys: BTreeMap<Vec<u32>, List> = keys.into_iter().map(|(path, list)| (start(path), list)).collect();
            for list in keys.values_mut() {
                // One weight a token: two are another test.
                list.sort_unstable();
                list.dedup_by_key(|&mut (token, _)| token);
            }
            if rooted {
                keys.entry(vec![START]).or_insert_with(|| vec![(0, 1), (3, 2)]);
            }
            let weighted = weighted && !keys.is_empty();
            Table { keys, end, sep, weighted, order }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(test_budget::cases(4000)))]

    #[test]
    fn equals_the_expansion_of_every_path(table in tables()) {
        check(&table)?;
    }
}
