//! Options of a decision.

use super::layout::Layout;
use crate::constraint::SpecProblem;
use crate::json::refused_at;
use crate::json::with::{from_one, share};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Readout of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Readout {
    /// Its own text, and the end of the turn after it.
    #[default]
    Text,
    /// A short label that stands for it in the prompt, and the end of the turn.
    Label,
}

/// Prior to divide out of the probabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Prior {
    /// No prior at all.
    #[default]
    #[serde(rename = "none")]
    Nothing,
    /// Answer of the model to a state without content.
    ContentFree,
    /// Average of its answers to the states of the request.
    Batch,
}

/// Options of a decision.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(remote = "Self", default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Decide {
    /// Instructions for all questions, text or JSON.
    pub instructions: Option<Value>,
    /// Text of the system message; `None`: there is none.
    pub system: Option<String>,
    /// Layout of the user's message.
    pub prompt: Layout,
    /// Readout of an option.
    pub readout: Readout,
    /// Lists the options in the prompt.
    pub list_options: bool,
    /// Number of orders in which options are listed; the answer is the mean over the orders.
    pub permute: u32,
    /// Prior to divide out.
    pub prior: Prior,
    /// Lowest probability of an answer: below it there is none.
    #[serde(deserialize_with = "share")]
    pub threshold: Option<f64>,
    /// Number of best options that are scored, in a question with too many options to score each.
    #[serde(deserialize_with = "top")]
    pub top: u32,
}

impl Default for Decide {
    fn default() -> Self {
        Self {
            instructions: None,
            system: None,
            prompt: Layout::default(),
            readout: Readout::Text,
            list_options: true,
            permute: 1,
            prior: Prior::Nothing,
            threshold: None,
            top: 10,
        }
    }
}

impl Decide {
    /// Maximum number of orders.
    pub const MOST_ORDERS: u32 = 64;
}

fn top<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    Ok(from_one(from)?.unwrap_or_default())
}

impl<'de> Deserialize<'de> for Decide {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let read = Self::deserialize(from)?;
        let refused = |name, reason: String| Err(refused_at(name, SpecProblem::Value(reason)));
        if read.permute == 0 || read.permute > Self::MOST_ORDERS {
            return refused("permute", format!("it is {}: it must be from 1 to {}", read.permute, Self::MOST_ORDERS));
        }
        if read.readout == Readout::Label && !read.list_options {
            return refused("list_options", "it is false: labels mean nothing where options are not listed".to_owned());
        }
        Ok(read)
    }
}
