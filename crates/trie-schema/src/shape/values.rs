//! List of all values of a goal, if there are few.

use super::possible::Search;
use super::{Engine, Goal};
use crate::json::Json;
use crate::machine::Place;
use std::collections::BTreeSet;
use std::sync::Arc;
use trie_core::work::spend;

/// Places that are met at most, beside some for each value: where there are more, there are many values.
const MOST_PLACES: usize = 20_000;
/// Bytes that a value has, about.
const LONG: usize = 64;

impl Engine {
    /// All values of a goal, if they are fewer than `enough`. Each way is followed to its end, and every beginning has
    /// one: so few places are looked at where there are few values, however long these are.
    pub(super) fn few_values(&self, goal: &Arc<Goal>, enough: usize, search: &mut Search) -> Option<Vec<Json>> {
        if !self.is_possible(goal, search) {
            return Some(Vec::new());
        }
        if self.has_many(goal, enough, 0, search) {
            return None;
        }
        let mut found: BTreeSet<Json> = BTreeSet::new();
        let mut text: Vec<u8> = Vec::new();
        // Each place with the number of bytes before its last one. What is pushed last is looked at first, so that
        // these are in `text`.
        let mut open = vec![(0, None, Place::of_value(goal))];
        let mut met = 0;
        while let Some((before, byte, place)) = open.pop() {
            text.truncate(before);
            text.extend(byte);
            if spend(16).is_err() {
                return None;
            }
            if self.may_end(&place) {
                found.extend(std::str::from_utf8(&text).ok().and_then(Json::read));
                if found.len() >= enough {
                    return None;
                }
            }
            let mut bytes = Vec::new();
            self.bytes_from(&place, &mut |byte| bytes.push(byte));
            // What is pushed last is looked at first: what ends something.
            bytes.sort_unstable_by_key(|byte| (b"\"}]".contains(byte), *byte));
            bytes.dedup();
            for byte in bytes {
                // Blanks say nothing.
                if let Some(next) = self.step(&place, byte).filter(|next| !next.is_blank() && *next != place) {
                    // Those that wait count, too: of an endless text each has hundreds.
                    met += 1;
                    if met > MOST_PLACES + LONG * enough {
                        return None;
                    }
                    open.push((text.len(), Some(byte), next));
                }
            }
        }
        Some(found.into_iter().collect())
    }
}

impl Engine {
    /// Returns whether a quick check shows that a goal has at least `enough` values; `false` if the check is
    /// inconclusive.
    pub(super) fn has_many(&self, goal: &Arc<Goal>, enough: usize, deep: usize, search: &mut Search) -> bool {
        const DEEPEST: usize = 4;
        let Ok(shapes) = self.shapes(goal) else { return false };
        shapes.texts.iter().any(|text| text.machine.count(enough) >= enough)
            || shapes.arrays.iter().any(|shape| {
                shape.is_endless() && self.is_possible(&shape.rest, search) && self.array_begins(shape, search)
                    || deep < DEEPEST
                        && shape.items_alike().is_some_and(|items| {
                            // One item is any of them, and the others are others.
                            self.has_many(&shape.rest, enough.saturating_add(items), deep + 1, search)
                        })
            })
            || shapes.objects.iter().any(|shape| {
                self.object_begins(shape, search)
                    && shape.is_plain()
                    && (shape.classes.iter().any(|class| class.is_all && self.is_possible(&class.goal, search))
                        || deep < DEEPEST
                            && shape.names.iter().any(|named| self.has_many(&named.goal, enough, deep + 1, search)))
            })
    }
}
