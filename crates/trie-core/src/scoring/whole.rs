//! Every value of every prompt, as one tree.

use super::choice::{Choice, ChooseStats};
use super::decoder::TreeDecoder;
use super::error::ChooseError;
use super::rows::read_rows;
use super::scores::Scores;
use super::tree::TokenTree;
use super::values::{At, Values};
use crate::set::ids::TokenId;
use std::collections::HashMap;
use std::time::Instant;

/// A node whose row is wanted.
struct Wanted {
    /// The number of its prompt.
    prompt: usize,
    at: At,
    /// Known once its parent's row was read. The same position may be reached on several paths, so it belongs to the
    /// node.
    logprob: f64,
}

/// Scores every value after each of these prompts. None may be empty.
pub(super) fn score_all<D: TreeDecoder + ?Sized>(
    decoder: &mut D,
    prompts: &[&[TokenId]],
    values: &Values,
) -> Result<Vec<Choice>, ChooseError<D::Error>> {
    let started = Instant::now();
    let mut stats = ChooseStats::default();
    let common = common_prefix(prompts);
    let mut token_tree = TokenTree::new();
    let mut nodes: Vec<Option<Wanted>> = Vec::new();
    let mut below: HashMap<(usize, TokenId), usize> = HashMap::new();
    let mut scores: Vec<Scores<'_>> = Vec::new();
    for (number, prompt) in prompts.iter().enumerate() {
        let tail = &prompt[common..];
        for (depth, &token) in tail.iter().enumerate() {
            let last = depth + 1 == tail.len();
            token_tree.push(depth, token, last);
            nodes.push(last.then(|| Wanted { prompt: number, at: values.rules.start(), logprob: 0.0 }));
        }
        for (token, at) in values.positions() {
            let node = token_tree.push(tail.len() + at.depth() - 1, token, true);
            below.extend(token_tree.nodes()[node].parent.map(|parent| ((parent, token), node)));
            nodes.push(Some(Wanted { prompt: number, at, logprob: f64::NEG_INFINITY }));
        }
        scores.push(Scores::new(values, 0));
    }
    let held = prompts.first().map_or(&[][..], |prompt| &prompt[..common]);
    read_rows(decoder, held, &token_tree, &mut stats, |node, row| {
        let Some((node, &Wanted { prompt, at, logprob })) = node.and_then(|node| Some((node, nodes[node].as_ref()?)))
        else {
            return Ok(());
        };
        scores[prompt].expand(at, logprob, row, |token, _, logprob| {
            if let Some(child) = below.get(&(node, token)).and_then(|&child| nodes[child].as_mut()) {
                child.logprob = logprob;
            }
        })
    })?;
    stats.n_threads = decoder.n_threads();
    stats.seconds = started.elapsed().as_secs_f64();
    Ok(scores.into_iter().map(|scores| scores.into_choice(usize::MAX, &[], true, stats)).collect())
}

/// How many tokens all prompts begin with; the last token of each stays out, because its row is wanted.
fn common_prefix(prompts: &[&[TokenId]]) -> usize {
    let Some((first, others)) = prompts.split_first() else { return 0 };
    let mut common = first.len();
    for prompt in others {
        common = first.iter().zip(*prompt).take(common).take_while(|(a, b)| a == b).count();
    }
    let shortest = prompts.iter().map(|prompt| prompt.len()).min().unwrap_or(0);
    common.min(shortest.saturating_sub(1))
}
