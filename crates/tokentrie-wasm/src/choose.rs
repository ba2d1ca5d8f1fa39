//! Choices whose rows the host computes when it can: it is told which rows are wanted, and gives one after the other.

use crate::host::put;
use serde_json::{Value, json};
use std::convert::Infallible;
use tokentrie_c::abi::tokentrie_trie;
use tokentrie_c::more::{Buffer, Error, Kind, Result, Table, done, guarded, json_bytes, trie_of};
use tokentrie_c::status::*;
use tokentrie_c::{In, Out};
use trie_core::{Choice, ChooseError, ChooseOptions, Decoded, Host, Job, Scoring, ScoringError, TokenId};

static SCORINGS: Table<Asked> = Table::new(Kind::Scoring);

/// A choice, and the rows that are to come.
struct Asked {
    scoring: Option<Scoring>,
    n_vocab: usize,
    /// The nodes whose rows were asked for, the next one last.
    waits: Vec<Option<usize>>,
    tokens: usize,
    choice: Option<Choice>,
}

impl Asked {
    /// Goes on until it wants rows, or is over.
    fn advance(&mut self) -> Result<()> {
        let Some(scoring) = &mut self.scoring else { return Ok(()) };
        if !scoring.advance().map_err(failed)? {
            self.choice = self.scoring.take().and_then(|scoring| scoring.finish(1).pop());
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

fn failed(error: ScoringError) -> Error {
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

/// Begins to score the leaves of a trie after a prompt of tokens: `options` are `{"end_tokens": [], "top": 5,
/// "max_rows": 100, "rows_at_once": 16, "room": 2048}`, all of which may be left out.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_choice_new(
    trie: tokentrie_trie,
    n_vocab: usize,
    prompt: In<i32>,
    n_prompt: usize,
    options: In<std::ffi::c_char>,
    length: usize,
    choice: Out<u64>,
) -> tokentrie_status {
    done(|| {
        choice.check("choice")?;
        let trie = trie_of(trie)?;
        let ids = |ids: &[i32]| ids.iter().map(|&id| Ok(TokenId::try_from(id)?)).collect::<Result<Vec<_>>>();
        let prompt = ids(prompt.slice(n_prompt, "prompt")?)?;
        let given: Value = serde_json::from_slice(json_bytes(&options, length)?)
            .map_err(|error| Error::argument(format!("options: {error}")))?;
        let ends = given.get("end_tokens").and_then(Value::as_array);
        let ends = ends.map(|ends| ends.iter().map(|id| id.as_i64().unwrap_or(-1) as i32).collect::<Vec<_>>());
        let ends = ends.map(|ends| ids(&ends)).transpose()?;
        let mut options = ChooseOptions::new().with_top(number(&given, "top")?);
        options = options.with_max_rows(number(&given, "max_rows")?);
        options.end_tokens = ends.as_deref();
        let room = number(&given, "room")?.unwrap_or(usize::MAX);
        let rows_at_once = number(&given, "rows_at_once")?.unwrap_or(128);
        let host = Host { n_vocab, room, rows_at_once };
        let scoring = Scoring::new::<Infallible>(host, &[&prompt], &trie.into(), &options);
        let scoring = Some(scoring.map_err(|error| Error::argument(error.to_string()))?);
        let mut asked = Asked { scoring, n_vocab, waits: Vec::new(), tokens: 0, choice: None };
        asked.advance()?;
        choice.put(SCORINGS.insert(asked)?);
        Ok(())
    })
}

/// What it wants: the number of tokens of the prompt, these, whether the row after it is wanted, and then of every node
/// of a tree its token, the number of the node before it or -1, and whether its row is wanted. TOKENTRIE_NONE when it
/// is over.
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
            scoring.take(node, row).map_err(failed)?;
            if asked.waits.is_empty() {
                scoring.took(Decoded { forward_passes: 1, tokens: asked.tokens });
                asked.advance()?;
            }
            Ok(())
        })
    })
}

/// The choice when it is over, as JSON; numbers that are none are null there. TOKENTRIE_NONE before.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_choice_result(choice: u64) -> tokentrie_status {
    guarded(|| {
        SCORINGS.with(choice, |asked| {
            let Some(choice) = &asked.choice else { return Ok(TOKENTRIE_NONE) };
            put(&json!({
                "logprobs": choice.logprobs,
                "logprobs_high": choice.logprobs_high,
                "probabilities": choice.probabilities(),
                "ranking": choice.ranking.iter().map(|leaf| leaf.get()).collect::<Vec<_>>(),
                "is_certain": choice.is_certain,
                "mass_low": choice.mass_low,
                "mass_high": choice.mass_high,
                "rows": choice.stats.rows,
            }));
            Ok(TOKENTRIE_OK)
        })
    })
}

/// Ends the handle.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_choice_free(choice: u64) -> tokentrie_status {
    done(|| SCORINGS.free(choice))
}
