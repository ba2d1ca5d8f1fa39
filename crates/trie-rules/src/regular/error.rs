use crate::automaton::AutomatonError;
use crate::automaton::regex::RegexError;

/// What makes no rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegularError {
    /// No number is in the range.
    #[error("no integer is at least {low} and at most {high}: give the smaller one first")]
    EmptyRange {
        /// The smallest.
        low: i128,
        /// The largest.
        high: i128,
    },
    /// A bound of days that is none.
    #[error("{given:?} is no day: a day is written as in 2024-02-29")]
    NoDay {
        /// What was given.
        given: String,
    },
    /// No day is in the range.
    #[error("no day is at least {low} and at most {high}: give the earlier one first")]
    NoDays {
        /// The first.
        low: String,
        /// The last.
        high: String,
    },
    /// Multiples that no automaton counts.
    #[error("multiples of a number need one above 0 whose digits are at most 10000, wherever its point is")]
    Step,
    /// A number without digits before the point.
    #[error("integer_digits is 0: a JSON number has one digit before the point at least")]
    NoDigits,
    /// No string is so long and so short.
    #[error("no string has at least {min_chars} characters and at most {max_chars}")]
    NoLength {
        /// The fewest.
        min_chars: usize,
        /// The most.
        max_chars: usize,
    },
    /// One of nothing.
    #[error("one of no rules and no texts: nothing could be written")]
    NoTexts,
    /// A list that 32 bits do not number.
    #[error("{texts} texts with {bytes} bytes are too many for one list: the most are 2^31 texts and 4 GiB")]
    ListTooLong {
        /// How many.
        texts: usize,
        /// Of all together.
        bytes: usize,
    },
    /// The automaton.
    #[error(transparent)]
    Automaton(#[from] AutomatonError),
    /// A pattern.
    #[error(transparent)]
    Regex(#[from] RegexError),
}
