//! Calibration of probabilities: for each question a temperature and a bias of every option, fitted on examples whose
//! answers are known.

mod fit;
mod held_out;
mod identity;
mod measures;

pub use fit::{Example, FitError};
pub use held_out::{CutPoint, HeldOut};
pub use identity::model_fingerprint;
pub use measures::{Bin, Measures};

use super::options::Decide;
use super::question::Question;
use super::shares::{IMPOSSIBLE, softmax};
use crate::constraint::foreign::near_name;
use crate::constraint::{SpecError, SpecProblem};
use crate::json::place::Place;
use crate::json::with::named;
use crate::json::{parse, read, value_error};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::path::Path;
use trie_core::ErrorKind;

type Result<T> = std::result::Result<T, SpecError>;

/// The calibrations of some questions, for one model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Calibration {
    #[serde(deserialize_with = "version")]
    version: u64,
    /// Fingerprint of the model: [`model_fingerprint`].
    pub model: String,
    /// Calibration of each question, by its name.
    #[serde(with = "named")]
    pub questions: Vec<(String, QuestionCalibration)>,
}

/// The calibration of a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct QuestionCalibration {
    /// Fingerprint of the question and its options.
    pub question: String,
    /// Divisor of the logarithms of probabilities.
    #[serde(deserialize_with = "temperature")]
    pub temperature: f64,
    /// Bias of each option, added after the division.
    pub bias: Vec<f64>,
    /// Number of examples that it was fitted on.
    #[serde(default)]
    pub examples: usize,
    /// Quality of the answers without the calibration.
    pub before: Measures,
    /// Quality of the answers with a calibration that was fitted without the example that is measured
    /// (cross-validation).
    pub after: Measures,
    /// Thresholds for accuracies of 80, 90, 95 and 99 %, of those that are reached.
    pub cuts: Vec<CutPoint>,
    /// Answers of those fits.
    pub held_out: HeldOut,
}

/// The version of the form that is written.
const VERSION: u64 = 2;

impl QuestionCalibration {
    /// Returns the calibrated probabilities.
    pub(super) fn apply(&self, probabilities: &[f64]) -> Vec<f64> {
        let logs = probabilities.iter().map(|share| share.ln().max(IMPOSSIBLE));
        softmax(logs.zip(&self.bias).map(|(log, bias)| log / self.temperature + bias))
    }
}

fn temperature<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<f64, D::Error> {
    let temperature = f64::deserialize(from)?;
    if temperature <= 0.0 {
        return Err(value_error(SpecProblem::Value(format!("it is {temperature}: it must be above 0"))));
    }
    Ok(temperature)
}

fn version<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<u64, D::Error> {
    let version = u64::deserialize(from)?;
    if version != VERSION {
        let reason = format!("it is {version}: this release reads version {VERSION}");
        return Err(value_error(SpecProblem::Value(reason)));
    }
    Ok(version)
}

impl Calibration {
    /// `{"version": 2, "model": "...", "questions": {"name": {"temperature": 1.6, "bias": [0.1, -0.1], ...}}}`.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Reason why questions cannot be calibrated.
#[derive(Debug, thiserror::Error)]
pub enum CalibrateError {
    /// Error in the examples.
    #[error(transparent)]
    Examples(#[from] SpecError),
    /// Error of a question's examples.
    #[error("the question {question:?}: {error}")]
    Fit {
        /// Name of the question.
        question: String,
        /// Error of the fit.
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
    /// Fits a calibration to the examples of questions: `{"name": [{"probabilities": [...], "gold": ...}]}`, with the
    /// answers without a calibration.
    ///
    /// # Errors
    /// [`CalibrateError`].
    pub fn fit(
        asked: &[Question],
        options: &Decide,
        model: &Path,
        examples: &[u8],
    ) -> std::result::Result<Self, CalibrateError> {
        let value = parse(examples)?;
        let given: Vec<(String, Vec<GoldAnswer>)> = read::<NamedEntries<_>>(&Place::ROOT, &value)?.0;
        if let Some((name, _)) = given.iter().find(|(name, _)| asked.iter().all(|question| question.name != *name)) {
            let known: Vec<String> = asked.iter().map(|question| question.name.clone()).collect();
            let problem = SpecProblem::Unknown { meant: near_name(name, &known), known };
            return Err(SpecError::new(&Place::ROOT.field(name), problem).into());
        }
        let mut questions = Vec::new();
        for question in asked {
            let Some((_, answered)) = given.iter().find(|(name, _)| *name == question.name) else { continue };
            let place = Place::ROOT.field(&question.name);
            let identity = identity::of_question(question, options);
            let identity = identity.map_err(|error| SpecError::new(&place, error))?;
            let example = |(at, answered): (usize, &GoldAnswer)| answered.example(&place.item(at), question);
            let examples: Vec<Example> = answered.iter().enumerate().map(example).collect::<Result<_>>()?;
            let found = fit::fit_question(&examples);
            let found = found.map_err(|error| CalibrateError::Fit { question: question.name.clone(), error })?;
            let fitted = QuestionCalibration {
                question: identity,
                temperature: found.temperature,
                bias: found.bias,
                examples: examples.len(),
                before: found.before,
                after: found.after,
                cuts: found.held_out.usual_cuts(),
                held_out: found.held_out,
            };
            questions.push((question.name.clone(), fitted));
        }
        Ok(Self { version: VERSION, model: model_fingerprint(model)?, questions })
    }

    /// Checks that it was fitted to all these questions, with the same options.
    pub(super) fn check(&self, place: &Place<'_>, questions: &[Question], options: &Decide) -> Result<()> {
        for question in questions {
            let place = place.field(&question.name);
            let wrong = |reason: String| Err(SpecError::new(&place, SpecProblem::Value(reason)));
            let Some((_, fitted)) = self.questions.iter().find(|(name, _)| *name == question.name) else {
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

/// A question that was answered, and what is right.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GoldAnswer {
    /// Probabilities of the options; `None` for those that were not scored.
    probabilities: Vec<Option<f64>>,
    gold: Value,
}

#[derive(Deserialize)]
#[serde(bound = "T: Deserialize<'de>")]
struct NamedEntries<T>(#[serde(with = "named")] Vec<(String, T)>);

impl GoldAnswer {
    fn example(&self, place: &Place<'_>, question: &Question) -> Result<Example> {
        let gold = question.right_option(&self.gold);
        let gold = gold.map_err(|problem| SpecError::new(&place.field("gold"), problem))?;
        let probabilities = self.probabilities.iter().map(|share| share.unwrap_or(f64::NAN)).collect();
        Ok(Example { probabilities, gold })
    }
}
