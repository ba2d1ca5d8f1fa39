//! What names and files stand for, put in their place.

use super::error::{SpecError, SpecProblem};
use super::json::MOST_DEPTH;
use super::place::Place;
use super::{Host, Object, Part, Piece, Spec};

type Result<T> = std::result::Result<T, SpecError>;

impl Spec {
    /// The same without names and files: what the host has for them stands there.
    ///
    /// # Errors
    /// [`SpecError`]: what the host does not have.
    pub fn resolved(&self, host: &dyn Host) -> Result<Self> {
        self.resolved_at(&Place::ROOT, Some(host), MOST_DEPTH)
    }

    /// Returns the same with the data of compiled specs in the place of their objects, by which specs compare.
    pub(super) fn data(&self) -> Self {
        // Without a host nothing is looked up, and what is nested too deep stays as it is.
        self.resolved_at(&Place::ROOT, None, MOST_DEPTH).unwrap_or_else(|_| self.clone())
    }

    fn resolved_at(&self, place: &Place<'_>, host: Option<&dyn Host>, deeper: usize) -> Result<Self> {
        let at = place.field(self.kind());
        let Some(deeper) = deeper.checked_sub(1) else {
            return Err(SpecError::new(place, SpecProblem::TooDeep { most: MOST_DEPTH }));
        };
        let resolved = |piece: &Piece, place: &Place<'_>| match piece {
            Piece::Text(_) => Ok(piece.clone()),
            Piece::Spec(spec) => spec.resolved_at(place, host, deeper).map(Piece::Spec),
        };
        let pieces = |pieces: &[Piece]| -> Result<Vec<Piece>> {
            pieces.iter().enumerate().map(|(index, piece)| resolved(piece, &at.item(index))).collect()
        };
        Ok(match self {
            Self::Object(Object::Compiled(compiled)) if host.is_none() => compiled.spec().data(),
            // One text for one content: a host may have kept the text as it was given.
            Self::JsonSchema(schema) if host.is_none() => {
                let mut schema = schema.clone();
                if let Ok(content) = serde_json::from_str::<serde_json::Value>(&schema.schema) {
                    schema.schema = content.to_string().into();
                }
                Self::JsonSchema(schema)
            }
            Self::Name(_) => {
                let Some(host) = host else { return Ok(self.clone()) };
                let (spec, deeper) = self.named(place, host, deeper)?;
                spec.resolved_at(place, Some(host), deeper)?
            }
            Self::Set(name) => {
                let Some(host) = host else { return Ok(self.clone()) };
                let set = host.set(name).map_err(|problem| SpecError::new(&at, problem))?;
                let none = || SpecProblem::NotGiven(format!("there is no saved set {name:?} here"));
                Self::Object(Object::Set(set.ok_or_else(|| SpecError::new(&at, none()))?))
            }
            Self::OneOf(all) => Self::OneOf(pieces(all)?),
            Self::Then(all) => Self::Then(pieces(all)?),
            Self::Repeat(repeat) => {
                let mut repeat = repeat.clone();
                repeat.rule = resolved(&repeat.rule, &at.field("rule"))?;
                Self::Repeat(repeat)
            }
            Self::Sequence(parts) => {
                let part = |(index, part): (usize, &Self)| part.resolved_at(&at.item(index), host, deeper);
                Self::Sequence(parts.iter().enumerate().map(part).collect::<Result<_>>()?)
            }
            Self::Form(parts) => {
                let part = |(index, part): (usize, &Part)| {
                    let mut part = part.clone();
                    let place = at.item(index);
                    match &mut part {
                        Part::Literal(_) | Part::Text { pattern: None, .. } => {}
                        Part::Slot { value, .. } => *value = value.resolved_at(&place.field("value"), host, deeper)?,
                        Part::Text { pattern: Some(pattern), .. } => {
                            *pattern = pattern.resolved_at(&place.field("pattern"), host, deeper)?;
                        }
                    }
                    Ok(part)
                };
                Self::Form(parts.iter().enumerate().map(part).collect::<Result<_>>()?)
            }
            Self::Think(think) => {
                let mut think = think.clone();
                think.then = think.then.resolved_at(&at.field("then"), host, deeper)?;
                Self::Think(think)
            }
            Self::Reply(reply) => {
                let mut reply = reply.clone();
                reply.template = reply.template.or_else(|| host.and_then(Host::template));
                Self::Reply(reply)
            }
            other => other.clone(),
        })
    }
}
