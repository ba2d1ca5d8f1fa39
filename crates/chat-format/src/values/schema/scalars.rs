//! Numbers and strings.

use super::Compiler;
use super::objects::count;
use super::pattern::{Held, held};
use super::place::Place;
use crate::values::shapes::bounded::{Bounds, Unbounded};
use crate::values::shapes::numbers::NumberShape;
use crate::values::shapes::strings::{TextShape, format_pattern};
use crate::values::shapes::{Alternative, ShapeError};
use serde_json::{Map, Value};
use std::sync::Arc;
use trie_rules::{AutomatonError, NumberBound, RegularError};

impl Compiler<'_> {
    pub(super) fn number(
        &mut self,
        map: &Map<String, Value>,
        integer: bool,
        place: &Place,
    ) -> Result<Option<Alternative>, ShapeError> {
        let bound = |keyword: &str, without: bool| match map.get(keyword) {
            Some(Value::Number(number)) => Ok(Some(NumberBound::new(&number.to_string(), without))),
            // As it was written in draft 4: `exclusiveMinimum` says how to read `minimum`.
            None | Some(Value::Bool(_)) => Ok(None),
            Some(other) => Err(place.error(&format!("{keyword} is a number, not {other}"))),
        };
        let says = |keyword: &str| map.get(keyword) == Some(&Value::Bool(true));
        let low = tighter(bound("minimum", says("exclusiveMinimum"))?, bound("exclusiveMinimum", true)?, true);
        let high = tighter(bound("maximum", says("exclusiveMaximum"))?, bound("exclusiveMaximum", true)?, false);
        let number = NumberShape { low, high, ..NumberShape::free(integer) };
        if !number.is_possible() {
            self.nothing_satisfies(place);
            return Ok(None);
        }
        let number = self.multiples(number, map, place)?;
        Ok(number.map(|number| Alternative::Number(self.shapes.numbers.add(number))))
    }

    /// Those that `multipleOf` leaves.
    fn multiples(
        &mut self,
        number: NumberShape,
        map: &Map<String, Value>,
        place: &Place,
    ) -> Result<Option<NumberShape>, ShapeError> {
        let every = match map.get("multipleOf") {
            None => return Ok(Some(number)),
            Some(Value::Number(every)) if every.as_f64().is_some_and(|every| every > 0.0) => every,
            Some(other) => return Err(place.error(&format!("multipleOf is a number above 0, not {other}"))),
        };
        let multiple_of = Some(NumberBound::new(&every.to_string(), false));
        let (low, high) = (number.low.clone(), number.high.clone());
        let multiples = NumberShape { low, high, multiple_of, ..NumberShape::free(number.integer) };
        match multiples.regular() {
            Ok(_) => Ok(Some(multiples)),
            Err(RegularError::Automaton(AutomatonError::Nothing)) => {
                self.nothing_satisfies(place);
                Ok(None)
            }
            Err(_) => {
                self.warn(place, "multipleOf", "it has too many digits");
                Ok(Some(number))
            }
        }
    }

    pub(super) fn string(
        &mut self,
        map: &Map<String, Value>,
        place: &Place,
    ) -> Result<Option<Alternative>, ShapeError> {
        let min = count(map, "minLength", place)?.unwrap_or(0);
        let max = count(map, "maxLength", place)?;
        if max.is_some_and(|max| max < min) {
            self.nothing_satisfies(place);
            return Ok(None);
        }
        let mut text = TextShape { min, max, ..TextShape::free() };
        match map.get("pattern") {
            None => {}
            Some(Value::String(pattern)) => match held(pattern) {
                Held::By(pattern, automaton) => {
                    text.pattern = Some(pattern);
                    let _ = text.automaton.set(automaton);
                }
                Held::Nothing => {
                    self.nothing_satisfies(place);
                    return Ok(None);
                }
                Held::Not(problem) => self.warn(place, "pattern", &problem),
            },
            Some(other) => return Err(place.error(&format!("pattern is a regular expression, not {other}"))),
        }
        if let Some(format) = map.get("format").and_then(Value::as_str) {
            match format_pattern(format) {
                Some(_) if text.pattern.is_some() => self.warn(place, "format", "the pattern holds"),
                Some(pattern) => text.pattern = Some(pattern),
                None => self.warn(place, "format", "any string may come"),
            }
        }
        if text.pattern.is_some() {
            let ends = self.shapes.limits.ends();
            match bounds(&text, &ends) {
                Ok(bounds) => text.bounds = bounds,
                Err(Unbounded::Nothing) if min > 0 || max.is_some() => {
                    self.unwritable(place, "no text of this pattern or format has this length that can be written");
                    return Ok(None);
                }
                Err(Unbounded::Nothing) => {
                    self.unwritable(place, "the format can write no text of this pattern: all hold what ends a value");
                    return Ok(None);
                }
                Err(Unbounded::TooLarge) => {
                    let keyword = if min > 0 { "minLength" } else { "maxLength" };
                    self.warn(place, keyword, "with the pattern or format there is too much");
                    (text.min, text.max) = (0, None);
                    text.bounds = bounds(&text, &ends).unwrap_or_default();
                }
            }
        }
        Ok(Some(Alternative::Text(self.shapes.texts.add(text))))
    }
}

/// What holds besides the pattern. A format holds nothing that ends a value.
fn bounds(text: &TextShape, ends: &[Vec<u8>]) -> Result<Option<Arc<Bounds>>, Unbounded> {
    let is_plain = text.min == 0 && text.max.is_none() && (ends.is_empty() || text.automaton.get().is_none());
    if is_plain {
        return Ok(None);
    }
    Bounds::of(text.automaton(), text.min, text.max, ends).map(|bounds| bounds.map(Arc::new))
}

/// Of two bounds the one that leaves less.
fn tighter(one: Option<NumberBound>, other: Option<NumberBound>, low: bool) -> Option<NumberBound> {
    match (one, other) {
        (Some(one), Some(other)) => {
            let order = other.compare(&one);
            let other_is_tighter = if low { order.is_ge() } else { order.is_le() };
            Some(if other_is_tighter { other } else { one })
        }
        (one, other) => one.or(other),
    }
}
