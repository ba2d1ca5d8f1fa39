//! Cache of steps: each place has a number, and its next place by a byte is looked up.

use super::Place;
use super::place::PlaceHash;
use crate::shape::{Engine, lock};
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use trie_core::work::spend;

/// Bytes of places, and of ways between them, from which on all are forgotten, about.
const MOST_BYTES: usize = 4 << 20;
/// Bytes that a step between two places takes.
const WAY: usize = 24;
/// No document goes on so.
const DEAD: u32 = u32::MAX;

/// Returns the number of a table of places that nobody has yet.
pub(super) fn new_table() -> u32 {
    static TABLES: AtomicU32 = AtomicU32::new(1);
    TABLES.fetch_add(1, Ordering::Relaxed)
}

/// Places of one schema that were met, and the ways between them.
#[derive(Default)]
pub(crate) struct Steps(Mutex<StepTable>);

struct StepTable {
    table: u32,
    places: Vec<Place>,
    numbers: HashMap<Place, u32, PlaceHash>,
    /// By the number of a place, and a byte.
    next: HashMap<u64, u32, PlaceHash>,
    nbytes: usize,
}

impl Default for StepTable {
    fn default() -> Self {
        let (places, numbers, next) = (Vec::new(), HashMap::default(), HashMap::default());
        Self { table: new_table(), places, numbers, next, nbytes: 0 }
    }
}

impl StepTable {
    fn number(&mut self, place: &Place) -> u32 {
        if let Some(number) = place.number().of(self.table) {
            return number;
        }
        let number = if let Some(&number) = self.numbers.get(place) {
            number
        } else {
            if self.nbytes > MOST_BYTES {
                *self = Self::default();
            }
            let number = self.places.len() as u32;
            self.nbytes += place.nbytes() + 2 * size_of::<Place>();
            self.places.push(place.clone());
            self.numbers.insert(place.clone(), number);
            number
        };
        place.number().set(self.table, number);
        number
    }

    fn set(&mut self, from: &Place, byte: u8, to: Option<&Place>) {
        let before = self.number(from);
        let after = to.map_or(DEAD, |to| self.number(to));
        // What was forgotten between the two is numbered anew.
        let from = if from.number().of(self.table) == Some(before) { before } else { self.number(from) };
        self.nbytes += WAY;
        self.next.insert(u64::from(from) << 8 | u64::from(byte), after);
    }
}

impl Engine {
    /// After some bytes more; `None` if no document goes on so.
    pub(crate) fn steps(&self, place: &Place, bytes: &[u8]) -> Option<Place> {
        spend(bytes.len()).ok()?;
        let mut place = place.clone();
        let mut rest = bytes.iter();
        while let Some(&byte) = rest.as_slice().first() {
            {
                let known = &mut *lock(&self.steps.0);
                let mut at = known.number(&place);
                let begun = at;
                while let Some(&byte) = rest.as_slice().first() {
                    match known.next.get(&(u64::from(at) << 8 | u64::from(byte))) {
                        Some(&DEAD) => return None,
                        Some(&next) => at = next,
                        None => break,
                    }
                    rest.next();
                }
                if at != begun {
                    place = known.places[at as usize].clone();
                }
                if rest.as_slice().is_empty() {
                    return Some(place);
                }
            }
            let byte = rest.next().copied().unwrap_or(byte);
            let next = self.step(&place, byte);
            // What failed is asked again.
            if next.is_none() && (self.is_failing() || trie_core::work::over().is_some()) {
                return None;
            }
            let known = &mut *lock(&self.steps.0);
            known.set(&place, byte, next.as_ref());
            let next = next?;
            let number = known.number(&next);
            place = known.places[number as usize].clone();
        }
        Some(place)
    }
}
