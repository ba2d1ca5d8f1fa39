//! A request, as data.

use super::calibration::Calibration;
use super::options::{Decide, Prior};
use super::question::{Question, UnnamedQuestion};
use crate::call::CallOptions;
use crate::constraint::foreign::near_name;
use crate::constraint::{SpecError, SpecProblem};
use crate::json::place::Place;
use crate::json::with::named;
use crate::json::{ReadParts, parse, type_error, value_error};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

type Result<T, E = SpecError> = std::result::Result<T, E>;

/// States, and the questions about each.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Request {
    /// States, at least one: a text, JSON, or a conversation, which is an array of objects with roles.
    pub states: Vec<Value>,
    /// Questions, at least one.
    pub questions: Vec<Question>,
    /// Options of the decision.
    pub options: Decide,
    /// Calibration of the probabilities, if any.
    pub calibration: Option<Calibration>,
    /// Time limit and priority.
    pub call: CallOptions,
}

impl Request {
    /// Reads `{"state": ..., "questions": {"name": {"type": "choice", "options": [...]}}, ...}`, or several states with
    /// `"states": [...]`: docs/decisions.md.
    ///
    /// # Errors
    /// [`SpecError`] with the place.
    pub fn from_json(json: &[u8]) -> Result<Self> {
        #[derive(Deserialize)]
        struct OwnFields {
            #[serde(default, deserialize_with = "maybe_state")]
            state: Option<Value>,
            #[serde(default, deserialize_with = "states")]
            states: Option<Vec<Value>>,
            #[serde(with = "named")]
            questions: Vec<(String, UnnamedQuestion)>,
            calibration: Option<Calibration>,
        }

        let (own, mut options, call): (OwnFields, Decide, _) = ReadParts::read_parts(&parse(json)?)?;
        let OwnFields { state, states, questions, calibration } = own;
        let refused = |name: &str, problem| Err(SpecError::new(&Place::ROOT.field(name), problem));
        options.escalates_share = states.is_some();
        let states = match (state, states) {
            (Some(state), None) => vec![state],
            (None, Some(states)) => states,
            (None, None) => return Err(SpecError::new(&Place::ROOT, SpecProblem::Missing { name: "state" })),
            (Some(_), Some(_)) => {
                return refused("state", SpecProblem::Value("one state and several: give one of both".to_owned()));
            }
        };
        if questions.is_empty() {
            return refused("questions", SpecProblem::Value("there is no question".to_owned()));
        }
        let at = Place::ROOT.field("questions");
        let named = |(name, asked): (String, UnnamedQuestion)| {
            let place = at.field(&name);
            Question::with_name(name.clone(), asked).map_err(|problem| SpecError::new(&place, problem))
        };
        let mut questions: Vec<Question> = questions.into_iter().map(named).collect::<Result<_>>()?;
        if options.none_of_these {
            for question in &mut questions {
                question.add_none().map_err(|problem| SpecError::new(&Place::ROOT.field("none_of_these"), problem))?;
            }
        }
        check_examples(&questions, &options)?;
        if options.prior == Prior::Batch && states.len() == 1 {
            let reason = "\"batch\" is the mean over several states, and this is one".to_owned();
            return refused("prior", SpecProblem::Value(reason));
        }
        let unfitted = [("target_accuracy", options.target_accuracy), ("coverage", options.coverage)];
        if let Some((name, _)) = unfitted.iter().find(|(_, wish)| wish.is_some() && calibration.is_none()) {
            let reason = "it needs a calibration, whose examples say how often answers are right".to_owned();
            return refused(name, SpecProblem::Value(reason));
        }
        if options.escalate.is_some() && calibration.is_some() {
            let reason = "there is a calibration, which does not hold after a thought: give one of both".to_owned();
            return refused("escalate", SpecProblem::Value(reason));
        }
        if let Some(calibration) = &calibration {
            calibration.check(&Place::ROOT.field("calibration").field("questions"), &questions, &options)?;
        }
        Ok(Self { states, questions, options, calibration, call })
    }
}

/// Checks that the answers of the examples are answers to the questions.
fn check_examples(questions: &[Question], options: &Decide) -> Result<()> {
    let place = Place::ROOT.field("examples");
    for (number, example) in options.examples.iter().enumerate() {
        let place = place.item(number);
        let place = place.field("answers");
        for (name, answer) in &example.answers {
            let wrong = |problem| Err(SpecError::new(&place.field(name), problem));
            let Some(question) = questions.iter().find(|question| question.name == *name) else {
                let known: Vec<String> = questions.iter().map(|question| question.name.clone()).collect();
                return wrong(SpecProblem::Unknown { meant: near_name(name, &known), known });
            };
            if let Err(problem) = question.right_option(answer) {
                return wrong(problem);
            }
        }
    }
    Ok(())
}

/// A text, JSON, or a conversation.
struct State(Value);

impl<'de> Deserialize<'de> for State {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match Value::deserialize(from)? {
            state @ (Value::String(_) | Value::Object(_) | Value::Array(_)) => Ok(Self(state)),
            other => Err(type_error("a text, an object or an array", &other)),
        }
    }
}

fn maybe_state<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Ok(Some(State::deserialize(from)?.0))
}

fn states<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<Value>>, D::Error> {
    let states = Vec::<State>::deserialize(from)?;
    if states.is_empty() {
        return Err(value_error(SpecProblem::Value("there is no state".to_owned())));
    }
    Ok(Some(states.into_iter().map(|State(state)| state).collect()))
}
