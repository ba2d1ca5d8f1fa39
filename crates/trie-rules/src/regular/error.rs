use crate::automaton::AutomatonError;
use crate::automaton::regex::RegexError;
use trie_core::work::LimitExceeded;

/// Error returned when a rule is invalid or not supported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegularError {
    /// No number is in the range.
    #[error("no integer is at least {low} and at most {high}: give the smaller one first")]
    EmptyRange {
        /// Smallest value that is allowed.
        low: i128,
        /// Largest value that is allowed.
        high: i128,
    },
    /// A bound of days or times that is none.
    #[error("invalid {what} {given:?}: expected one as in {example}")]
    NoMoment {
        /// Description of the expected value.
        what: &'static str,
        /// Text that was given.
        given: String,
        /// One that is written as it must be.
        example: String,
    },
    /// A format of days and times that is none.
    #[error("invalid format {format:?}: {reason}")]
    Format {
        /// Format that was given.
        format: String,
        /// Description of the defect.
        reason: String,
    },
    /// No day or time is in the range.
    #[error("no {what} is {}: give the earlier one first", range(.low.as_deref(), .high.as_deref()))]
    NoMoments {
        /// Description of the expected value.
        what: &'static str,
        /// First moment of the range.
        low: Option<String>,
        /// Last moment of the range.
        high: Option<String>,
    },
    /// A bound that is not a number.
    #[error("invalid bound {given:?}: expected a number as in -0.25 or 1e3")]
    NoNumber {
        /// Text that was given.
        given: String,
    },
    /// No number is in the range.
    #[error(
        "no number with at most {fraction_digits} digits after the point is {}: give the smaller bound first, or allow \
         more digits", range(.low.as_deref(), .high.as_deref())
    )]
    NoNumbers {
        /// Lower bound of the range.
        low: Option<String>,
        /// Upper bound of the range.
        high: Option<String>,
        /// The most digits after the point.
        fraction_digits: u32,
    },
    /// A range of numbers with exponents.
    #[error("numbers of a range are written without exponents: leave exponent_digits out, or give 0")]
    Exponents,
    /// Multiples that no automaton counts.
    #[error("multiples of a number need one above 0 whose digits are at most 10000, wherever its point is")]
    Step,
    /// A number without digits before the point.
    #[error("integer_digits is 0: a JSON number has one digit before the point at least")]
    NoDigits,
    /// No string is so long and so short.
    #[error("no string has at least {min_chars} characters and at most {max_chars}")]
    NoLength {
        /// Minimum number of characters.
        min_chars: usize,
        /// Maximum number of characters.
        max_chars: usize,
    },
    /// No count is so large and so small.
    #[error("nothing is repeated at least {min} and at most {max} times: give the smaller count first")]
    NoTimes {
        /// Minimum number of items.
        min: usize,
        /// Maximum number of items.
        max: usize,
    },
    /// A choice without texts.
    #[error("one of no rules and no texts: nothing could be written")]
    NoTexts,
    /// Choices or repetitions in each other.
    #[error(
        "more than {most} choices or repetitions stand in each other: give what may come side by side, in one choice"
    )]
    TooDeep {
        /// Limit on nested choices.
        most: usize,
    },
    /// A list that 32 bits do not number.
    #[error("{texts} texts with {bytes} bytes are too many for one list: the most are 2^31 texts and 4 GiB")]
    ListTooLong {
        /// Number of texts given.
        texts: usize,
        /// Total size in bytes.
        bytes: usize,
    },
    /// Error of the automaton.
    #[error(transparent)]
    Automaton(#[from] AutomatonError),
    /// It takes more work than it may.
    #[error(transparent)]
    TooMuch(#[from] LimitExceeded),
    /// Error of a pattern.
    #[error(transparent)]
    Regex(#[from] RegexError),
}

trie_core::error_kind!(RegularError, Rule);

fn range(low: Option<&str>, high: Option<&str>) -> String {
    let said = [("at least ", low), ("at most ", high)].map(|(words, bound)| Some(format!("{words}{}", bound?)));
    said.into_iter().flatten().collect::<Vec<_>>().join(" and ")
}
