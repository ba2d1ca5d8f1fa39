//! What makes probabilities honest: for each question a temperature and a bias of every option, found on examples whose
//! answers are known.

mod fit;
mod identity;
mod measures;

pub use fit::{Example, FitError};
pub use identity::model_fingerprint;
pub use measures::{Bin, Measures};

use super::options::Decide;
use super::question::Question;
use super::shares::{IMPOSSIBLE, softmax};
use crate::constraint::{SpecError, SpecProblem};
use crate::json::fields::{Fields, array, number, shown, text, wrong_type};
use crate::json::parse;
use crate::json::place::Place;
use serde_json::{Map, Value, json};
use std::path::Path;
use trie_core::ErrorKind;

type Result<T> = std::result::Result<T, SpecError>;

/// The calibrations of some questions, for one model.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Calibration {
    /// By which the model is known: [`model_fingerprint`].
    pub model: String,
    /// One for each question.
    pub questions: Vec<Fitted>,
}

/// The calibration of a question.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Fitted {
    /// Its name.
    pub name: String,
    /// By which what is asked is known.
    pub question: String,
    /// What logarithms of probabilities are divided by.
    pub temperature: f64,
    /// What is added to them then, for each option.
    pub bias: Vec<f64>,
    /// On how many examples it was found.
    pub examples: usize,
    /// How good the answers were without it.
    pub before: Measures,
    /// How good they are with it, each example by a fit that has not seen it.
    pub after: Measures,
}

/// The version of the form that is written.
const VERSION: u64 = 1;

impl Fitted {
    /// Calibrated probabilities.
    pub(super) fn apply(&self, probabilities: &[f64]) -> Vec<f64> {
        let logs = probabilities.iter().map(|share| share.ln().max(IMPOSSIBLE));
        softmax(logs.zip(&self.bias).map(|(log, bias)| log / self.temperature + bias))
    }

    fn read(place: &Place<'_>, name: &str, value: &Value) -> Result<Self> {
        let known = ["question", "temperature", "bias", "examples", "before", "after"];
        let fields = Fields::of(place, value, &known)?;
        let temperature = fields.need("temperature", number)?;
        if temperature <= 0.0 {
            let reason = format!("it is {temperature}: it must be above 0");
            return Err(SpecError::new(&place.field("temperature"), SpecProblem::Value(reason)));
        }
        let numbers = |place: &Place<'_>, value: &Value| {
            array(place, value)?.iter().enumerate().map(|(at, value)| number(&place.item(at), value)).collect()
        };
        Ok(Self {
            name: name.to_owned(),
            question: fields.need("question", |place, value| text(place, value).map(str::to_owned))?,
            temperature,
            bias: fields.need("bias", numbers)?,
            examples: fields.count("examples")?.unwrap_or(0) as usize,
            before: fields.need("before", Measures::read)?,
            after: fields.need("after", Measures::read)?,
        })
    }

    fn json(&self) -> Value {
        json!({
            "question": self.question,
            "temperature": self.temperature,
            "bias": self.bias,
            "examples": self.examples,
            "before": self.before.json(),
            "after": self.after.json(),
        })
    }
}

impl Calibration {
    /// Reads what [`Calibration::to_json`] writes.
    ///
    /// # Errors
    /// [`SpecError`] with the place.
    pub(super) fn read(place: &Place<'_>, value: &Value) -> Result<Self> {
        let fields = Fields::of(place, value, &["version", "model", "questions"])?;
        let version = fields
            .need("version", |place, value| value.as_u64().ok_or_else(|| wrong_type(place, "an integer", value)))?;
        if version != VERSION {
            let reason = format!("it is {version}: this release reads version {VERSION}");
            return Err(SpecError::new(&place.field("version"), SpecProblem::Value(reason)));
        }
        let model = fields.need("model", |place, value| text(place, value).map(str::to_owned))?;
        let questions = fields.need("questions", |place, value| {
            let all = value.as_object().ok_or_else(|| wrong_type(place, "an object of calibrations", value))?;
            all.iter().map(|(name, fitted)| Fitted::read(&place.field(name), name, fitted)).collect()
        })?;
        Ok(Self { model, questions })
    }

    /// `{"version": 1, "model": "...", "questions": {"name": {"temperature": 1.6, "bias": [0.1, -0.1], ...}}}`.
    #[must_use]
    pub fn to_json(&self) -> String {
        let questions: Map<String, Value> =
            self.questions.iter().map(|fitted| (fitted.name.clone(), fitted.json())).collect();
        json!({"version": VERSION, "model": self.model, "questions": questions}).to_string()
    }
}

/// Why questions cannot be calibrated.
#[derive(Debug, thiserror::Error)]
pub enum CalibrateError {
    /// The examples.
    #[error(transparent)]
    Examples(#[from] SpecError),
    /// Those of a question.
    #[error("the question {question:?}: {error}")]
    Fit {
        /// Its name.
        question: String,
        /// What is wrong.
        error: FitError,
    },
    /// The file of the model.
    #[error("the file of the model: {0}")]
    Model(#[from] std::io::Error),
}

impl CalibrateError {
    /// Returns what kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Examples(error) => error.kind(),
            Self::Fit { .. } => ErrorKind::Argument,
            Self::Model(_) => ErrorKind::File,
        }
    }
}

impl Calibration {
    /// Of the questions that have examples: `{"name": [{"probabilities": [...], "gold": ...}]}`, with what
    /// was answered without a calibration.
    ///
    /// # Errors
    /// [`CalibrateError`].
    pub fn fit(
        asked: &[Question],
        options: &Decide,
        model: &Path,
        examples: &[u8],
    ) -> std::result::Result<Self, CalibrateError> {
        let (value, place) = (parse(examples)?, Place::ROOT);
        let names: Vec<&str> = asked.iter().map(|question| &question.name[..]).collect();
        let fields = Fields::of(&place, &value, &names)?;
        let mut questions = Vec::new();
        for question in asked {
            let Some(given) = fields.get(&question.name) else { continue };
            let place = place.field(&question.name);
            let identity = identity::of_question(question, options);
            let identity = identity.map_err(|error| SpecError::new(&place, error))?;
            let example = |(at, value): (usize, &Value)| example(&place.item(at), question, value);
            let examples: Vec<Example> =
                array(&place, given)?.iter().enumerate().map(example).collect::<Result<_>>()?;
            let found = fit::found(&examples);
            let found = found.map_err(|error| CalibrateError::Fit { question: question.name.clone(), error })?;
            questions.push(Fitted {
                name: question.name.clone(),
                question: identity,
                temperature: found.temperature,
                bias: found.bias,
                examples: examples.len(),
                before: found.before,
                after: found.after,
            });
        }
        Ok(Self { model: model_fingerprint(model)?, questions })
    }

    /// That it is of all these questions, as they are asked.
    pub(super) fn check(&self, place: &Place<'_>, questions: &[Question], options: &Decide) -> Result<()> {
        for question in questions {
            let place = place.field(&question.name);
            let wrong = |reason: String| Err(SpecError::new(&place, SpecProblem::Value(reason)));
            let Some(fitted) = self.questions.iter().find(|fitted| fitted.name == question.name) else {
                return wrong("the calibration does not have this question".to_owned());
            };
            let asked = identity::of_question(question, options).map_err(|error| SpecError::new(&place, error))?;
            if fitted.question != asked {
                return wrong(
                    "it was made for another question of this name: its options, what is asked and how it is read must \
                     be the same"
                        .to_owned(),
                );
            }
            let (given, expected) = (fitted.bias.len(), question.kind.texts().len());
            if given != expected {
                return wrong(format!("it has {given} biases for {expected} options"));
            }
        }
        Ok(())
    }

    pub(super) fn check_model(&self, model: &Path) -> std::result::Result<(), String> {
        let found = model_fingerprint(model).map_err(|error| format!("{}: {error}", model.display()))?;
        if found == self.model {
            return Ok(());
        }
        Err(format!("it was made for another model than {}: calibrate again for this one", model.display()))
    }
}

fn example(place: &Place<'_>, question: &Question, value: &Value) -> Result<Example> {
    let fields = Fields::of(place, value, &["probabilities", "gold"])?;
    let share = |(at, value): (usize, &Value)| {
        // What was not scored has none.
        if value.is_null() { Ok(f64::NAN) } else { number(&place.field("probabilities").item(at), value) }
    };
    let probabilities = fields.need("probabilities", |place, value| {
        array(place, value)?.iter().enumerate().map(share).collect::<Result<Vec<f64>>>()
    })?;
    let gold = fields.need("gold", |place, value| {
        let known = question.index_of(value);
        known.ok_or_else(|| {
            let reason = format!("{} is no answer to the question {:?}", shown(value), question.name);
            SpecError::new(place, SpecProblem::Value(reason))
        })
    })?;
    Ok(Example { probabilities, gold })
}
