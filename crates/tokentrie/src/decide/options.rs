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
    /// The text of the option.
    #[default]
    Text,
    /// A short label that stands for it in the prompt.
    Label,
}

/// Order of the options that a prompt lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ListOrder {
    /// As they were given, or in the orders of [`Decide::permute`].
    #[default]
    Given,
    /// None: each option stands at the same place of the prompt, and sees no other.
    Independent,
    /// Balanced orders, until more of them would hardly change which option wins ([`Decide::order_confidence`]).
    Balanced,
}

impl ListOrder {
    /// Returns the name of the order in requests and answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Given => "given",
            Self::Independent => "independent",
            Self::Balanced => "balanced",
        }
    }
}

/// The end of an option in a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// The option ends with its word: any token that does not continue the word may follow.
    #[default]
    Optional,
    /// The turn ends after the option.
    Required,
}

impl End {
    /// Returns the name of the end in requests and answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Optional => "optional",
            Self::Required => "required",
        }
    }
}

/// A state whose answers are shown to the model as turns before the state that it is asked about.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SolvedExample {
    /// The state: a text, JSON, or the last turn of a conversation.
    pub state: Value,
    /// Right answers by the names of their questions. The example is shown with these questions.
    pub answers: serde_json::Map<String, Value>,
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
#[allow(clippy::struct_excessive_bools, reason = "options that do not depend on each other")]
pub struct Decide {
    /// Instructions for all questions, text or JSON.
    pub instructions: Option<Value>,
    /// Text of the system message; `None`: there is none.
    pub system: Option<String>,
    /// Layout of the user's message.
    pub prompt: Layout,
    /// Text with which the assistant's turn begins, before the option. `None` is [`PREFIX`](Self::PREFIX), or nothing
    /// for a model that was trained to decide ([`LAYOUT_KEY`](Self::LAYOUT_KEY)).
    pub prefix: Option<String>,
    /// Solved examples, shown before the state in this order.
    pub examples: Vec<SolvedExample>,
    /// Readout of an option.
    pub readout: Readout,
    /// End of an option.
    pub end: End,
    /// Counts an option in other cases, and after a space, as the option.
    pub spellings: bool,
    /// Adds to each choice the option that none of the others is meant.
    pub none_of_these: bool,
    /// Lists the options in the prompt.
    pub list_options: bool,
    /// Number of orders in which options are listed; the answer is the mean over the orders. With
    /// [`ListOrder::Balanced`] the largest number, and 1 stands for a whole design.
    pub permute: u32,
    /// Order of the listed options.
    pub order: ListOrder,
    /// Probability with which the option that wins in balanced orders wins in all of their design; 1 asks on until no
    /// other can win.
    #[serde(deserialize_with = "certainty")]
    pub order_confidence: f64,
    /// Prior to divide out.
    pub prior: Prior,
    /// Lowest probability of an answer: below it there is none.
    #[serde(deserialize_with = "share")]
    pub threshold: Option<f64>,
    /// Accuracy below which there is no answer: the threshold is the one that reaches it on the examples of the
    /// calibration.
    #[serde(deserialize_with = "share")]
    pub target_accuracy: Option<f64>,
    /// Probability with which a prediction set has the right option, by the examples of the calibration.
    #[serde(deserialize_with = "share")]
    pub coverage: Option<f64>,
    /// Says of each answer how likely it is that the state has nothing to do with the question.
    pub out_of_scope: bool,
    /// Close calls may think first: of one state, questions whose two best options are less apart than this; of several
    /// states, at most this share of them for each question, the closest ones.
    #[serde(deserialize_with = "share")]
    pub escalate: Option<f64>,
    /// The most tokens of a thought.
    #[serde(deserialize_with = "top")]
    pub think_tokens: u32,
    /// True if `escalate` is a share of several states.
    #[serde(skip)]
    pub(super) escalates_share: bool,
    /// Number of best options that are scored, in a question with too many options to score each.
    #[serde(deserialize_with = "top")]
    pub top: u32,
    /// Most rows of logits that are read for such a question. If they are too few, [`Answer::bound`](super::Answer)
    /// says what is certain.
    #[serde(deserialize_with = "top")]
    pub max_rows: u32,
    /// Lists options without meanings in one line, which models prefer that were not trained to decide.
    #[serde(skip)]
    pub(super) is_inline: bool,
}

impl Default for Decide {
    fn default() -> Self {
        Self {
            instructions: None,
            system: None,
            prompt: Layout::default(),
            prefix: None,
            examples: Vec::new(),
            readout: Readout::Text,
            end: End::Optional,
            spellings: true,
            none_of_these: false,
            list_options: true,
            permute: 1,
            order: ListOrder::Given,
            order_confidence: 0.95,
            prior: Prior::Nothing,
            threshold: None,
            target_accuracy: None,
            coverage: None,
            out_of_scope: false,
            escalate: None,
            think_tokens: 64,
            escalates_share: false,
            top: 10,
            max_rows: Self::MAX_ROWS,
            is_inline: false,
        }
    }
}

impl Decide {
    /// Default of [`Decide::max_rows`], which a question is read in within seconds.
    pub const MAX_ROWS: u32 = 2048;
    /// Maximum number of orders.
    pub const MOST_ORDERS: u32 = 64;
    /// Text with which the assistant's turn begins where the model was not trained to decide.
    pub const PREFIX: &str = "Answer:";
    /// Key of a GGUF file whose model was trained to decide. Its value is the layout that the model knows: `"list"`,
    /// each option in a line of its own and nothing before the answer.
    pub const LAYOUT_KEY: &str = "tokentrie.decision.layout";

    /// Takes the layout that a model knows, of [`LAYOUT_KEY`](Self::LAYOUT_KEY).
    pub(super) fn take_layout(&mut self, known: Option<&str>) {
        self.is_inline = known != Some("list");
        if self.prefix.is_none() {
            self.prefix = Some(if self.is_inline { Self::PREFIX.to_owned() } else { String::new() });
        }
    }

    /// Text with which the assistant's turn begins.
    pub(super) fn prefix(&self) -> &str {
        self.prefix.as_deref().unwrap_or_default()
    }
}

fn top<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    Ok(from_one(from)?.unwrap_or_default())
}

fn certainty<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(share(from)?.unwrap_or(Decide::default().order_confidence))
}

impl<'de> Deserialize<'de> for Decide {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let read = Self::deserialize(from)?;
        let refused = |name, reason: String| Err(refused_at(name, SpecProblem::Value(reason)));
        if read.permute == 0 || read.permute > Self::MOST_ORDERS {
            return refused("permute", format!("it is {}: it must be from 1 to {}", read.permute, Self::MOST_ORDERS));
        }
        if read.order == ListOrder::Independent {
            if read.readout == Readout::Label {
                let reason =
                    "it is \"independent\": labels say the place of an option, so the readout must be \"text\"";
                return refused("order", reason.to_owned());
            }
            if let Err(reason) = read.prompt.options_line() {
                return refused("prompt", format!("{reason} where the order is \"independent\""));
            }
        }
        if read.threshold.is_some() && read.target_accuracy.is_some() {
            return refused("target_accuracy", "there is a threshold already: give one of both".to_owned());
        }
        if read.escalate.is_some() && read.prior != Prior::Nothing {
            let reason = "there is a prior, which is not known after a thought: say prior \"none\"".to_owned();
            return refused("escalate", reason);
        }
        if read.escalate.is_some() && read.order == ListOrder::Independent {
            let reason =
                "it is not supported: a thought reads the options in an order, which is \"independent\"".to_owned();
            return refused("escalate", reason);
        }
        if read.readout == Readout::Label && !read.list_options {
            return refused("list_options", "it is false: labels mean nothing where options are not listed".to_owned());
        }
        Ok(read)
    }
}
