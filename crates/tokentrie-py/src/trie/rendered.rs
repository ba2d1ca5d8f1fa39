//! Text made of a trie: what its leaves say, and a drawing.

use crate::errors::{Class, Result};
use std::collections::HashSet;
use trie_core::{TokenId, Trie};
use trie_formats::{BoxKind, DrawnBox, OutlineLimits, OutlineNode, TextGrammar, TrieOutline as _};
use trie_text::Vocab;

/// The set of the leaves' texts.
pub(crate) fn grammar(trie: &Trie, vocab: Option<&Vocab>) -> Result<TextGrammar> {
    Ok(TextGrammar::new(texts(trie, vocab)?)?)
}

/// The leaves' texts in order, each once.
pub(crate) fn distinct(trie: &Trie, vocab: Option<&Vocab>) -> Result<Vec<String>> {
    let mut texts = texts(trie, vocab)?;
    let mut seen: HashSet<&str> = HashSet::with_capacity(texts.len());
    let first: Vec<bool> = texts.iter().map(|text| seen.insert(text)).collect();
    let mut first = first.into_iter();
    texts.retain(|_| first.next().unwrap_or_default());
    Ok(texts)
}

/// Returns the text that the tokens of each leaf spell, or its name without a vocabulary.
///
/// # Errors
/// Neither names nor a vocabulary, tokens outside it, a leaf that is not text.
fn texts(trie: &Trie, vocab: Option<&Vocab>) -> Result<Vec<String>> {
    if let Some(vocab) = vocab {
        inside(trie, vocab)?;
    }
    let mut texts = Vec::with_capacity(trie.len());
    let mut walk = trie.in_order();
    while let Some(leaf) = walk.advance() {
        let text = if let Some(vocab) = vocab {
            String::from_utf8(vocab.join(walk.tokens())?).map_err(|error| {
                let (leaf, bytes) = (leaf.index(), error.as_bytes().escape_ascii());
                Class::Trie.error(format!("leaf {leaf} spells b\"{bytes}\", which is not UTF-8"))
            })?
        } else {
            let unnamed =
                || Class::Trie.error("the leaves have no names: give a vocab, which says what their tokens spell");
            trie.name(leaf).ok_or_else(unnamed)?.into_owned()
        };
        texts.push(text);
    }
    Ok(texts)
}

fn inside(trie: &Trie, vocab: &Vocab) -> Result<()> {
    let (largest, size) = (trie.max_token(), vocab.len());
    if largest.index() < size {
        return Ok(());
    }
    Err(Class::Vocabulary.error(format!("token id {largest} of the trie is outside the vocabulary of {size} tokens")))
}

/// A picture from left to right.
pub(crate) fn svg(trie: &Trie, vocab: Option<&Vocab>, limits: OutlineLimits) -> Result<String> {
    let drawn = boxes(trie, vocab, limits)?;
    // Parents are counted without the boxes that stand for what is hidden, and those come last in a picture.
    let nodes: Vec<usize> = (0..drawn.len()).filter(|&number| !drawn[number].hidden).collect();
    let parent = |one: &Drawn| one.parent.and_then(|parent| nodes.get(parent).copied());
    let mut below: Vec<Vec<usize>> = vec![Vec::new(); drawn.len()];
    for hidden in [true, false] {
        // Last first, so that the first is taken from the stack next.
        for number in (0..drawn.len()).rev().filter(|&number| drawn[number].hidden == hidden) {
            if let Some(parent) = parent(&drawn[number]) {
                below[parent].push(number);
            }
        }
    }
    let (mut boxed, mut open) = (Vec::with_capacity(drawn.len()), vec![(0, None)]);
    while let Some((number, parent)) = open.pop() {
        let one = &drawn[number];
        open.extend(below[number].iter().map(|&child| (child, Some(boxed.len()))));
        let kind = match (one.terminal, one.hidden) {
            (true, _) => BoxKind::Leaf,
            (false, true) => BoxKind::Hidden,
            (false, false) => BoxKind::Inner,
        };
        boxed.push(DrawnBox { parent, label: one.label.clone(), kind });
    }
    let title = format!("{}, {} nodes", leaves(trie.len()), trie.nodes());
    Ok(trie_formats::svg(&title, &boxed))
}

/// One box of a drawing.
struct Drawn {
    parent: Option<usize>,
    label: String,
    terminal: bool,
    /// True for a box of hidden nodes.
    hidden: bool,
}

fn boxes(trie: &Trie, vocab: Option<&Vocab>, limits: OutlineLimits) -> Result<Vec<Drawn>> {
    if let Some(vocab) = vocab {
        inside(trie, vocab)?;
    }
    let mut boxes = Vec::new();
    for (number, node) in trie.outline(limits)?.iter().enumerate() {
        boxes.push(Drawn {
            parent: node.parent,
            label: label(trie, vocab, node),
            terminal: node.leaf.is_some(),
            hidden: false,
        });
        if node.hidden_children > 0 {
            let label = format!("… {} more ({})", node.hidden_children, leaves(node.hidden_leaves));
            boxes.push(Drawn { parent: Some(number), label, terminal: false, hidden: true });
        }
    }
    Ok(boxes)
}

/// Tokens, the value that ends here, and the leaves below where there is more than one.
fn label(trie: &Trie, vocab: Option<&Vocab>, node: &OutlineNode) -> String {
    let tokens: Vec<String> = node.run.iter().map(|&token| shown(token, vocab)).collect();
    let mut parts = vec![tokens.join(" ")];
    if let Some(leaf) = node.leaf {
        parts.push(format!("→ {}", trie.name(leaf).map_or("(no name)".to_owned(), |name| printable(&name))));
    }
    if node.leaves > 1 || node.run.is_empty() {
        parts.push(format!("({})", leaves(node.leaves)));
    }
    parts.retain(|part| !part.is_empty());
    parts.join(" ")
}

fn leaves(count: usize) -> String {
    format!("{count} {}", if count == 1 { "leaf" } else { "leaves" })
}

/// A token's text in quotes, or its number.
fn shown(token: TokenId, vocab: Option<&Vocab>) -> String {
    match vocab.and_then(|vocab| vocab.piece(token)) {
        Some(piece) => match std::str::from_utf8(piece) {
            Ok(text) => format!("{text:?}"),
            Err(_) => format!("\"{}\"", piece.escape_ascii()),
        },
        None => token.to_string(),
    }
}

/// The text with control characters as escapes.
fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, '"' | '\'' | '\\') { out.push(character) } else { out.extend(character.escape_debug()) }
    }
    out
}
