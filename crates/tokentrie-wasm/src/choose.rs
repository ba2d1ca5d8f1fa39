//! Choices whose rows the host computes when it can: it is told which rows are wanted, and gives one after the other.

use crate::host::put_result;
use crate::vocab::{put_tokens, tokens_of};
use serde_json::Value;
use std::convert::Infallible;
use std::ffi::c_char;
use std::sync::Arc;
use tokentrie::call::ChoiceResult;
use tokentrie::constraint::{AfterPrompt, DataOnly, Over, Spec};
use tokentrie_c::abi::{tokentrie_constraint, tokentrie_trie, tokentrie_vocab};
use tokentrie_c::more::{
    Buffer, Error, Kind, Result, Table, done, guarded, insert_constraint, json_bytes, values_of, vocab_of,
};
use tokentrie_c::status::*;
use tokentrie_c::{In, Out};
use trie_core::{ChooseError, ChooseOptions, DecodeCost, Host, Job, Scoring, ScoringError, Special, TokenId};
use trie_text::{HealingError, Prompt, ValueSet, ValueSets};

static SCORINGS: Table<PendingChoice> = Table::new(Kind::Scoring);

/// A choice, and the rows that are to come.
struct PendingChoice {
    scoring: Option<Scoring>,
    n_vocab: usize,
    /// The nodes whose rows were asked for, the next one last.
    waits: Vec<Option<usize>>,
    tokens: usize,
    /// Its values in their order.
    set: ValueSet,
    /// Their spec, if they have one.
    spec: Option<Spec>,
    result: Option<ChoiceResult>,
}

impl PendingChoice {
    /// Goes on until it wants rows, or is over.
    fn advance(&mut self) -> Result<()> {
        let Some(scoring) = &mut self.scoring else { return Ok(()) };
        if !scoring.advance().map_err(row_error)? {
            let choice = self.scoring.take().and_then(|scoring| scoring.finish(1).pop());
            self.result = choice.map(|choice| ChoiceResult { choice, set: self.set.clone() });
            return Ok(());
        }
        let want = scoring.want();
        let nodes = want.tree.nodes();
        self.tokens = want.prompt.len() + nodes.len();
        let wanted = (0..nodes.len()).rev().filter(|&node| nodes[node].wanted).map(Some);
        self.waits = wanted.chain(want.tree.wants_root().then_some(None)).collect();
        Ok(())
    }
}

fn row_error(error: ScoringError) -> Error {
    Error::new(TOKENTRIE_ERROR_ROW, ChooseError::<Infallible>::from(error).to_string())
}

fn number(options: &Value, name: &str) -> Result<Option<usize>> {
    match options.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_u64().filter(|&number| number > 0) {
            Some(number) => Ok(Some(number as usize)),
            None => Err(Error::argument(format!("{name} is {value}: a number from 1 is needed"))),
        },
    }
}

/// Begins to score values after a prompt. `options` are `{"end_tokens": [], "top": 5, "max_rows": 100, "beam": 20,
/// "rows_at_once": 16, "room": 2048}`, all of which may be left out.
fn begin_scoring(
    set: ValueSet,
    spec: Option<Spec>,
    prompt: &[TokenId],
    n_vocab: usize,
    options: &Value,
) -> Result<u64> {
    let ends = options.get("end_tokens").and_then(Value::as_array);
    let id = |id: &Value| TokenId::try_from(id.as_i64().unwrap_or(-1) as i32).map_err(Error::from);
    let ends = ends.map(|ends| ends.iter().map(id).collect::<Result<Vec<_>>>()).transpose()?;
    let mut asked = ChooseOptions::new().with_top(number(options, "top")?);
    asked = asked.with_max_rows(number(options, "max_rows")?);
    asked = asked.with_beam(number(options, "beam")?);
    asked.end_tokens = ends.as_deref();
    let room = number(options, "room")?.unwrap_or(usize::MAX);
    let rows_at_once = number(options, "rows_at_once")?.unwrap_or(128);
    let host = Host { n_vocab, room, rows_at_once };
    let scoring = Scoring::new::<Infallible>(host, &[prompt], &set.trie().clone().into(), &asked);
    let scoring = Some(scoring.map_err(|error| Error::argument(error.to_string()))?);
    let mut asked = PendingChoice { scoring, n_vocab, waits: Vec::new(), tokens: 0, set, spec, result: None };
    asked.advance()?;
    SCORINGS.insert(asked)
}

fn options_of(json: &In<c_char>, length: usize) -> Result<Value> {
    serde_json::from_slice(json_bytes(json, length)?).map_err(|error| Error::argument(format!("options: {error}")))
}

/// Begins to score the leaves of a trie, or the values of a constraint, after a prompt of tokens.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_choice_new(
    values: tokentrie_trie,
    n_vocab: usize,
    prompt: In<i32>,
    n_prompt: usize,
    options: In<c_char>,
    length: usize,
    choice: Out<u64>,
) -> tokentrie_status {
    done(|| {
        choice.check("choice")?;
        let ((values, spec), options) = (values_of(values)?, options_of(&options, length)?);
        let is_list = matches!(spec, Some(Spec::Choice(_)));
        let set = if is_list { ValueSet::as_given(values) } else { values.into() };
        let ids = prompt.slice(n_prompt, "prompt")?.iter().map(|&id| Ok(TokenId::try_from(id)?));
        choice.put(begin_scoring(set, spec, &ids.collect::<Result<Vec<_>>>()?, n_vocab, &options)?);
        Ok(())
    })
}

/// Begins to score the values of a spec after a prompt that is text, whose end is tokenised together with them.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_choice_after(
    spec: In<c_char>,
    n_spec: usize,
    vocab: tokentrie_vocab,
    prompt: In<c_char>,
    n_prompt: usize,
    options: In<c_char>,
    length: usize,
    choice: Out<u64>,
) -> tokentrie_status {
    done(|| {
        choice.check("choice")?;
        let (vocab, options) = (tokens_of(vocab)?, options_of(&options, length)?);
        let spec = Spec::from_json(json_bytes(&spec, n_spec)?)?;
        let values = spec.list_values(&Over::vocab(&vocab), &DataOnly)?;
        let prompt = Prompt::Text(prompt.text(n_prompt, "prompt")?.to_owned());
        let placed = ValueSets::new(Arc::clone(&vocab)).place(prompt, &values);
        let (prompt, set) = placed.map_err(|error| Error::new(TOKENTRIE_ERROR_VOCAB, error.to_string()))?;
        let left = vocab.before_set(&prompt, set.trie()).map_err(healing)?;
        let n_vocab = number(&options, "n_vocab")?.unwrap_or(vocab.len());
        choice.put(begin_scoring(set, Some(spec), left, n_vocab, &options)?);
        Ok(())
    })
}

/// A constraint where it stands after a prompt that is text: tokens may cross from one into the other. The tokens of
/// the prompt, without those that come again, are an array in JSON.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_constraint_after(
    spec: In<c_char>,
    n_spec: usize,
    vocab: tokentrie_vocab,
    prompt: In<c_char>,
    n_prompt: usize,
    constraint: Out<tokentrie_constraint>,
) -> tokentrie_status {
    done(|| {
        constraint.check("constraint")?;
        let (kept, tokens) = (vocab_of(vocab)?, tokens_of(vocab)?);
        let spec = Spec::from_json(json_bytes(&spec, n_spec)?)?;
        let built = spec.build(&Over::vocab(&tokens), &DataOnly)?;
        let prompt = Prompt::Text(prompt.text(n_prompt, "prompt")?.to_owned());
        let after = built.after_prompt(prompt, &ValueSets::new(Arc::clone(&tokens)));
        let AfterPrompt { prompt, spans, .. } = after.map_err(|problem| Error::of_spec(&problem, &problem))?;
        let first = spans.first().and_then(|(_, constraint)| constraint.first_set());
        let left = first.map_or(Ok(&prompt[..]), |set| tokens.before_set(&prompt, set)).map_err(healing)?;
        put_tokens(left);
        constraint.put(insert_constraint(spec, spans, kept)?);
        Ok(())
    })
}

#[allow(clippy::needless_pass_by_value, reason = "given to map_err")]
fn healing(error: HealingError) -> Error {
    Error::new(TOKENTRIE_ERROR_VOCAB, error.to_string())
}

/// Writes the batch that the choice needs next: the number of tokens of the prompt, these, whether the row after it is
/// wanted, and then for every node of a tree its token, the number of the node before it or -1, and whether its row is
/// wanted. `TOKENTRIE_NONE` when it is over.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_choice_want(
    choice: u64,
    ints: Out<i32>,
    capacity: usize,
    count: Out<usize>,
) -> tokentrie_status {
    guarded(|| {
        let buffer = Buffer::new(&ints, capacity, &count, "ints")?;
        SCORINGS.with(choice, |asked| {
            let Some(scoring) = &asked.scoring else { return buffer.fill(&[]).map(|()| TOKENTRIE_NONE) };
            let want = scoring.want();
            let mut wanted = vec![want.prompt.len() as i32];
            wanted.extend(want.prompt.iter().map(|token| token.as_i32()));
            wanted.push(want.tree.wants_root().into());
            for node in want.tree.nodes() {
                let parent = node.parent.map_or(-1, |parent| parent as i32);
                wanted.extend([node.token.as_i32(), parent, node.wanted.into()]);
            }
            buffer.fill(&wanted).map(|()| TOKENTRIE_OK)
        })
    })
}

/// Takes the next row that is wanted: that after the prompt first, then those after nodes in their order. After the
/// last it goes on.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_choice_take(choice: u64, row: In<f32>, length: usize) -> tokentrie_status {
    done(|| {
        let row = row.slice(length, "row")?;
        SCORINGS.with(choice, |asked| {
            let n_vocab = asked.n_vocab;
            let row = row.get(..n_vocab).ok_or_else(|| {
                let message = format!("a row has {length} logits, the vocabulary {n_vocab} tokens");
                Error::new(TOKENTRIE_ERROR_ROW, message)
            })?;
            let nothing = || Error::new(TOKENTRIE_ERROR_NOT_ALLOWED, "no row is wanted");
            let scoring = asked.scoring.as_mut().ok_or_else(nothing)?;
            let node = asked.waits.pop().ok_or_else(nothing)?;
            scoring.take(node, row).map_err(row_error)?;
            if asked.waits.is_empty() {
                scoring.finish_batch(DecodeCost { forward_passes: 1, tokens: asked.tokens, gathered_rows: 0 });
                asked.advance()?;
            }
            Ok(())
        })
    })
}

/// The choice when it is over, as JSON; numbers that are none are null there. `TOKENTRIE_NONE` before.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_choice_result(choice: u64) -> tokentrie_status {
    guarded(|| {
        SCORINGS.with(choice, |asked| {
            let Some(choice) = &asked.result else { return Ok(TOKENTRIE_NONE) };
            put_result(&choice.json(asked.spec.as_ref(), &DataOnly, &[])?);
            Ok(TOKENTRIE_OK)
        })
    })
}

/// Frees the handle of a choice.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_choice_free(choice: u64) -> tokentrie_status {
    done(|| SCORINGS.free(choice))
}
