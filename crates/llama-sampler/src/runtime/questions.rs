//! Choices after several prompts, each with values of its own.

use super::error::RuntimeError;
use super::scoring::{Scorer, heal_prompt};
use super::watch::Watch;
use std::ops::Range;
use std::sync::Arc;
use trie_core::{AnyConstraint, Choice, ChooseOptions, ScoringRequest, TokenId, Trie};
use trie_text::ValueSet;

/// A prompt, and the values after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Tokens of the prompt.
    pub prompt: Vec<TokenId>,
    /// Ranges of them that do not see each other: see [`ScoringRequest::branches`]. Mostly there are none.
    pub branches: Vec<Range<usize>>,
    /// Values that are scored after the prompt.
    pub set: ValueSet,
}

/// Choices for a stream of questions: those before the first bad question, in order, and then the error of that one.
#[derive(Debug)]
#[non_exhaustive]
pub struct Answers {
    /// A choice for each question before the bad one.
    pub choices: Vec<Choice>,
    /// Error of the question after them, by its number in the stream; `None` if all are answered.
    pub refused: Option<RuntimeError>,
}

impl Question {
    /// Number of questions read ahead of a stream: those decoded together share their forward passes.
    pub const GROUP: usize = 32;

    /// Returns a question whose prompt has no branches.
    #[must_use]
    pub fn new(prompt: Vec<TokenId>, set: ValueSet) -> Self {
        Self { prompt, branches: Vec::new(), set }
    }

    /// Reads the next [`Question::GROUP`] of a stream, or those before the first that fails.
    ///
    /// ```
    /// use llama_sampler::Question;
    /// let stream = [Err("no prompt")];
    /// let (questions, failed): (Vec<Question>, _) = Question::read_group(stream);
    /// assert_eq!((questions.len(), failed), (0, Some("no prompt")));
    /// ```
    pub fn read_group<E>(stream: impl IntoIterator<Item = Result<Self, E>>) -> (Vec<Self>, Option<E>) {
        let mut questions = Vec::new();
        for question in stream.into_iter().take(Self::GROUP) {
            match question {
                Ok(question) => questions.push(question),
                Err(error) => return (questions, Some(error)),
            }
        }
        (questions, None)
    }
}

/// The sets of some questions, each once, and which of them each question has.
fn sets_of(questions: &[Question]) -> (Vec<AnyConstraint>, Vec<usize>) {
    let mut distinct: Vec<&Trie> = Vec::new();
    let mut numbers = Vec::with_capacity(questions.len());
    for set in questions.iter().map(|question| question.set.trie()) {
        let known = distinct.iter().position(|&known| known == set);
        numbers.push(known.unwrap_or(distinct.len()));
        if known.is_none() {
            distinct.push(set);
        }
    }
    (distinct.into_iter().map(|set| set.clone().into()).collect(), numbers)
}

/// Choices for many questions.
pub trait QuestionScorer: Scorer {
    /// A choice for each question, in order. The beginning that all prompts share is decoded once, the rest in common
    /// forward passes.
    ///
    /// # Errors
    /// As [`Scorer::choose_many`]; [`RuntimeError::Prompt`] has the number among these questions. Then no question gets
    /// a choice.
    fn choose_each(
        &mut self,
        questions: &[Question],
        options: &ChooseOptions<'_>,
        watch: &mut dyn Watch,
    ) -> Result<Vec<Choice>, RuntimeError> {
        self.choose_each_by(questions, |scorer, asked| scorer.score(asked, options, watch))
    }

    /// The same as [`QuestionScorer::choose_each`]. If [`Scorer::is_apart`], each choice has the same bits as if its
    /// question were alone.
    ///
    /// # Errors
    /// As [`QuestionScorer::choose_each`].
    fn choose_each_apart(
        &mut self,
        questions: &[Question],
        options: &ChooseOptions<'_>,
        watch: &mut dyn Watch,
    ) -> Result<Vec<Choice>, RuntimeError> {
        self.choose_each_by(questions, |scorer, asked| scorer.score_apart(asked, options, watch))
    }

    #[doc(hidden)]
    fn choose_each_by(
        &mut self,
        questions: &[Question],
        score: impl FnOnce(&mut Self, &[ScoringRequest<'_>]) -> Result<Vec<Choice>, RuntimeError>,
    ) -> Result<Vec<Choice>, RuntimeError> {
        let (vocab, (sets, numbers)) = (Arc::clone(self.vocab()), sets_of(questions));
        let asked = questions.iter().zip(numbers).enumerate().map(|(number, (question, set))| {
            let prompt = heal_prompt(&vocab, &question.prompt, &sets[set]).map_err(|error| error.of_prompt(number))?;
            Ok(ScoringRequest { prompt, branches: &question.branches, constraint: &sets[set] })
        });
        let asked: Vec<ScoringRequest<'_>> = asked.collect::<Result<_, RuntimeError>>()?;
        score(self, &asked)
    }

    /// The same as [`QuestionScorer::choose_each`] for a part of a stream: the choices before a bad prompt are kept.
    /// `first` is the number of the first question in the stream.
    ///
    /// # Errors
    /// As [`QuestionScorer::choose_each`], except errors of a single prompt.
    fn choose_until_bad(
        &mut self,
        questions: &[Question],
        first: usize,
        options: &ChooseOptions<'_>,
        watch: &mut dyn Watch,
    ) -> Result<Answers, RuntimeError> {
        let (mut good, mut refused) = (questions.len(), None);
        loop {
            match self.choose_each(&questions[..good], options, watch) {
                Ok(choices) => return Ok(Answers { choices, refused }),
                Err(RuntimeError::Prompt { number, error }) if number < good => {
                    good = number;
                    refused = Some(RuntimeError::Prompt { number: first + number, error });
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The same as [`QuestionScorer::choose_each`] with an answer for every question: a bad prompt affects no other
    /// answer.
    ///
    /// # Errors
    /// As [`QuestionScorer::choose_each`], except errors of a single prompt.
    fn choose_or_refuse(
        &mut self,
        mut questions: Vec<Question>,
        options: &ChooseOptions<'_>,
        watch: &mut dyn Watch,
    ) -> Result<Vec<Result<Choice, RuntimeError>>, RuntimeError> {
        let mut numbers: Vec<usize> = (0..questions.len()).collect();
        let mut answers = Vec::with_capacity(questions.len());
        let choices = loop {
            match self.choose_each(&questions, options, watch) {
                Ok(choices) => break choices,
                Err(RuntimeError::Prompt { number, error }) if number < questions.len() => {
                    questions.remove(number);
                    answers.push((numbers.remove(number), Err(*error)));
                }
                Err(error) => return Err(error),
            }
        };
        answers.extend(numbers.into_iter().zip(choices.into_iter().map(Ok)));
        answers.sort_unstable_by_key(|&(number, _)| number);
        Ok(answers.into_iter().map(|(_, answer)| answer).collect())
    }
}

impl<S: Scorer> QuestionScorer for S {}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(token: u32) -> Question {
        let mut builder = Trie::builder();
        builder.push(None, &[TokenId::new(token).unwrap()]);
        Question::new(vec![TokenId::default()], builder.build().unwrap().into())
    }

    #[test]
    fn equal_sets_are_made_once_whatever_stands_between_them() {
        let questions: Vec<Question> = [1, 2, 1, 3, 2].map(question).to_vec();
        let (sets, numbers) = sets_of(&questions);
        assert_eq!((sets.len(), numbers), (3, vec![0, 1, 0, 2, 1]));
        assert!(sets_of(&[]).0.is_empty());
    }

    #[test]
    fn a_stream_is_read_in_groups_up_to_what_fails() {
        let mut stream = (0..40).map(|token| if token < 35 { Ok(question(token)) } else { Err(token) });
        let (questions, failed) = Question::read_group(stream.by_ref());
        assert_eq!((questions.len(), failed), (32, None));
        let (questions, failed) = Question::read_group(stream.by_ref());
        assert_eq!((questions.len(), failed), (3, Some(35)));
        assert_eq!(stream.next(), Some(Err(36)), "nothing is read beyond it");
    }
}
