//! Resolution of names and files in specs.

use super::error::{SpecError, SpecProblem};
use super::{Host, Object, Part, Piece, Spec};
use crate::json::MOST_DEPTH;
use crate::json::place::Place;

type Result<T> = std::result::Result<T, SpecError>;

impl Spec {
    /// Returns the spec with its names and files replaced by what the host has for them.
    ///
    /// # Errors
    /// [`SpecError`] for a name or a file that the host does not have.
    pub fn resolve(&self, host: &dyn Host) -> Result<Self> {
        self.resolved_at(&Place::ROOT, Some(host), MOST_DEPTH)
    }

    /// Returns the same with the data of compiled specs in the place of their objects, by which specs compare.
    pub(super) fn data(&self) -> Self {
        // Without a host nothing is looked up, and what is nested too deep stays as it is.
        self.resolved_at(&Place::ROOT, None, MOST_DEPTH).unwrap_or_else(|_| self.clone())
    }

    fn resolved_at(&self, place: &Place<'_>, host: Option<&dyn Host>, deeper: usize) -> Result<Self> {
        let Some(deeper) = deeper.checked_sub(1) else {
            return Err(SpecError::new(place, SpecProblem::TooDeep { most: MOST_DEPTH }));
        };
        let mut resolved = match (self, host) {
            (Self::Object(Object::Compiled(compiled)), None) => return Ok(compiled.spec().data()),
            (Self::Name(_), Some(host)) => {
                let (spec, deeper) = self.resolve_name(place, host, deeper)?;
                return spec.resolved_at(place, Some(host), deeper);
            }
            (Self::Set(name), Some(host)) => {
                let at = place.field("set");
                let set = host.set(name).map_err(|problem| SpecError::new(&at, problem))?;
                let none = || SpecProblem::NotGiven(format!("there is no saved set {name:?} here"));
                return Ok(Self::Object(Object::Set(set.ok_or_else(|| SpecError::new(&at, none()))?)));
            }
            _ => self.clone(),
        };
        match &mut resolved {
            // One text for one content: a host may have kept the text as it was given.
            Self::JsonSchema(schema) if host.is_none() => {
                if let Ok(content) = serde_json::from_str::<serde_json::Value>(&schema.schema) {
                    schema.schema = content.to_string().into();
                }
            }
            Self::Reply(reply) => reply.template = reply.template.take().or_else(|| host.and_then(Host::template)),
            _ => {}
        }
        resolved.for_each_inside(place, &mut |place, inside| {
            *inside = inside.resolved_at(place, host, deeper)?;
            Ok(())
        })?;
        Ok(resolved)
    }

    /// Does something with each of the constraints that it is put together of.
    ///
    /// # Errors
    /// The first of what is done.
    pub(super) fn for_each_inside(
        &mut self,
        place: &Place<'_>,
        each: &mut dyn FnMut(&Place<'_>, &mut Self) -> Result<()>,
    ) -> Result<()> {
        let kind = self.kind().to_owned();
        let at = place.field(&kind);
        match self {
            Self::OneOf(pieces) | Self::Then(pieces) => pieces.iter_mut().enumerate().try_for_each(|(index, piece)| {
                if let Piece::Spec(spec) = piece { each(&at.item(index), spec) } else { Ok(()) }
            }),
            Self::Repeat(repeat) => match &mut repeat.rule {
                Piece::Spec(spec) => each(&at.field("rule"), spec),
                Piece::Text(_) => Ok(()),
            },
            Self::Sequence(parts) => {
                parts.iter_mut().enumerate().try_for_each(|(index, part)| each(&at.item(index), part))
            }
            Self::Form(parts) => parts.iter_mut().enumerate().try_for_each(|(index, part)| match part {
                Part::Literal(_) | Part::Text { pattern: None, .. } => Ok(()),
                Part::Slot { value, .. } => each(&at.item(index).field("value"), value),
                Part::Text { pattern: Some(pattern), .. } => each(&at.item(index).field("pattern"), pattern),
            }),
            Self::Think(think) => each(&at.field("then"), &mut think.then),
            _ => Ok(()),
        }
    }
}
