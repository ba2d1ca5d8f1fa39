//! Few values: all of a goal, where there are not many.

use super::possible::Search;
use super::{Engine, Goal};
use crate::json::Json;
use crate::machine::Place;
use std::collections::VecDeque;
use std::sync::Arc;
use trie_core::work::spend;
use trie_rules::{NumberMachine, TextMachine};

/// Places that are looked at: where more are met, there are many values.
const MOST_PLACES: usize = 20_000;

impl Engine {
    /// All values of a goal, if they are fewer than `enough`.
    pub(super) fn few_values(&self, goal: &Arc<Goal>, enough: usize, search: &mut Search) -> Option<Vec<Json>> {
        if !self.is_possible(goal, search) {
            return Some(Vec::new());
        }
        if self.has_many(goal, 0, search) {
            return None;
        }
        let mut found: Vec<Json> = Vec::new();
        let mut open = VecDeque::from([(Vec::new(), Place::of_value(goal))]);
        let mut turns = 0;
        while let Some((text, place)) = open.pop_front() {
            turns += 1;
            if turns > MOST_PLACES || spend(16).is_err() {
                return None;
            }
            if self.may_end(&place) {
                let value = std::str::from_utf8(&text).ok().and_then(Json::read);
                found.extend(value.filter(|value| !found.contains(value)));
                if found.len() >= enough {
                    return None;
                }
            }
            // Escapes only say again what is said without them.
            for byte in 0..=255u8 {
                // Blanks say nothing.
                if let Some(next) = self.step(&place, byte).filter(|next| !next.is_blank() && *next != place) {
                    let mut text = text.clone();
                    text.push(byte);
                    open.push_back((text, next));
                }
            }
        }
        Some(found)
    }
}

impl Engine {
    /// A quick look whether a goal has values without end, or more than anybody asks for; `false` where that is not
    /// clear.
    fn has_many(&self, goal: &Arc<Goal>, deep: usize, search: &mut Search) -> bool {
        const DEEPEST: usize = 4;
        const FREE: u32 = 8;
        let Ok(shapes) = self.shapes(goal) else { return false };
        // Numbers far from each other: between them are many.
        let digits = |machine: &NumberMachine| {
            ["123456789", "487654321", "987654321"].iter().all(|text| {
                let end = text.bytes().try_fold(machine.start(), |state, byte| machine.step(&state, byte));
                end.is_some()
            })
        };
        shapes.texts.iter().any(|text| text.machine.free_chars(text.machine.start()) > FREE)
            || shapes.numbers.iter().any(|machine| digits(machine))
            || shapes.arrays.iter().any(|shape| {
                shape.is_endless() && self.is_possible(&shape.rest, search) && self.array_begins(shape, search)
            })
            || shapes.objects.iter().any(|shape| {
                self.object_begins(shape, search)
                    && shape.is_plain()
                    && (shape.classes.iter().any(|class| class.is_all && self.is_possible(&class.goal, search))
                        || deep < DEEPEST
                            && shape.names.iter().any(|named| self.has_many(&named.goal, deep + 1, search)))
            })
    }
}

/// How many texts an automaton has, up to some.
pub(super) fn count_texts(machine: &TextMachine, enough: usize) -> usize {
    if enough == 0 {
        return 0;
    }
    let mut open = VecDeque::from([machine.start()]);
    let (mut count, mut turns) = (0, 0);
    while let Some(state) = open.pop_front() {
        turns += 1;
        count += usize::from(machine.is_end(state));
        if count >= enough || turns > MOST_PLACES || spend(4).is_err() {
            return enough;
        }
        open.extend((0..=255).filter_map(|byte| machine.step(state, byte)));
    }
    count
}
