//! Choices after several prompts, each with values of its own.

use super::error::RuntimeError;
use super::scoring::Scorer;
use super::watch::Watch;
use trie_core::{Choice, ChooseOptions, TokenId};
use trie_text::ValueSet;

/// A prompt, and the values after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The prompt.
    pub prompt: Vec<TokenId>,
    /// The values.
    pub set: ValueSet,
}

/// Choices for a stream of questions: those before the first bad one, in order, and then what is wrong with that.
#[derive(Debug)]
#[non_exhaustive]
pub struct Answers {
    /// A choice for each question before the bad one.
    pub choices: Vec<Choice>,
    /// What is wrong with the question after them, by its number in the stream; `None` where all are answered.
    pub refused: Option<RuntimeError>,
}

impl Question {
    /// How many to read ahead of a stream: what is decoded together shares its forward passes.
    pub const GROUP: usize = 32;

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

/// The numbers of the questions that have equal sets, in the order of their first ones.
fn by_set(questions: &[Question]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (number, question) in questions.iter().enumerate() {
        let same = |group: &&mut Vec<usize>| questions[group[0]].set.trie() == question.set.trie();
        match groups.iter_mut().find(same) {
            Some(group) => group.push(number),
            None => groups.push(vec![number]),
        }
    }
    groups
}

/// Choices for many questions.
pub trait QuestionScorer: Scorer {
    /// A choice for each question, in order. Those with equal sets are decoded together.
    ///
    /// # Errors
    /// As [`Scorer::choose_many`]; [`RuntimeError::Prompt`] has the number among these questions. Nothing is given
    /// for any of them then.
    fn choose_each(
        &mut self,
        questions: &[Question],
        options: &ChooseOptions<'_>,
        watch: &mut dyn Watch,
    ) -> Result<Vec<Choice>, RuntimeError> {
        let mut chosen: Vec<(usize, Choice)> = Vec::with_capacity(questions.len());
        for numbers in by_set(questions) {
            let prompts: Vec<&[TokenId]> = numbers.iter().map(|&number| questions[number].prompt.as_slice()).collect();
            let choices = self.choose_many(&prompts, questions[numbers[0]].set.trie().clone(), options, watch);
            let choices = choices.map_err(|error| match error {
                RuntimeError::Prompt { number, error } => RuntimeError::Prompt { number: numbers[number], error },
                error => error,
            })?;
            chosen.extend(numbers.into_iter().zip(choices));
        }
        chosen.sort_unstable_by_key(|&(number, _)| number);
        Ok(chosen.into_iter().map(|(_, choice)| choice).collect())
    }

    /// [`QuestionScorer::choose_each`] for a part of a stream: a bad prompt does not take the answers before it away.
    /// `first` is the number of the first question in the stream.
    ///
    /// # Errors
    /// As [`QuestionScorer::choose_each`], where it is not one prompt that is wrong.
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

    /// [`QuestionScorer::choose_each`] with an answer for every question: a bad prompt takes no other answer away.
    ///
    /// # Errors
    /// As [`QuestionScorer::choose_each`], where it is not one prompt that is wrong.
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
    use trie_core::Trie;

    fn question(token: u32) -> Question {
        let mut builder = Trie::builder();
        builder.push(None, &[TokenId::new(token).unwrap()]);
        Question { prompt: vec![TokenId::default()], set: builder.build().unwrap().into() }
    }

    #[test]
    fn equal_sets_go_together_whatever_stands_between_them() {
        let questions: Vec<Question> = [1, 2, 1, 3, 2].map(question).to_vec();
        assert_eq!(by_set(&questions), [vec![0, 2], vec![1, 4], vec![3]]);
        assert!(by_set(&[]).is_empty());
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
