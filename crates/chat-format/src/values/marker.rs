//! Texts to look for, and texts that must come.

use crate::values::CONTROL;

/// Computes how much of `mark` remains begun after `byte`, if `held` bytes of it were read as possible text: the number
/// of bytes kept, and whether `byte` continues them. The other bytes are text.
pub(crate) fn fall_back(mark: &[u8], held: usize, byte: u8) -> (usize, bool) {
    let kept = (0..=held).rev().find(|&kept| mark[held - kept..held] == mark[..kept] && mark[kept] == byte);
    kept.map_or((0, false), |kept| (kept, true))
}

/// Texts of which one must come.
#[derive(Debug, Clone)]
pub(crate) struct Choices {
    texts: Vec<Box<[u8]>>,
}

/// Progress in reading [`Choices`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Chosen {
    read: u16,
    /// A bit for each text that no longer matches.
    out: u16,
    /// True if a control token began right here.
    control: bool,
}

/// Result of a byte read by [`Choices`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Chooses {
    More(Chosen),
    /// This text is complete with the byte.
    Is(usize),
    /// This text was complete before the byte, and before the bytes of a longer text that were read after it.
    Was(usize),
    No,
}

impl Chosen {
    /// Returns the number of bytes read.
    pub(crate) fn len(self) -> usize {
        usize::from(self.read)
    }
}

impl Choices {
    pub(crate) fn new(texts: impl IntoIterator<Item = Vec<u8>>) -> Self {
        Self { texts: texts.into_iter().map(Into::into).collect() }
    }

    /// Returns whether this text is any.
    pub(crate) fn has(&self, text: usize) -> bool {
        !self.texts[text].is_empty()
    }

    fn is_in(&self, chosen: Chosen, text: usize) -> bool {
        chosen.out >> text & 1 == 0 && !self.texts[text].is_empty()
    }

    /// Reads a byte. `may`: which of the texts may come here.
    pub(crate) fn step(&self, chosen: Chosen, byte: u8, strict: bool, may: impl Fn(usize) -> bool) -> Chooses {
        let read = usize::from(chosen.read);
        let goes_on = |text: usize| self.is_in(chosen, text) && self.texts[text].len() > read && may(text);
        let all = 0..self.texts.len();
        if byte == CONTROL && strict {
            let fits = !chosen.control && all.into_iter().any(goes_on);
            return if fits { Chooses::More(Chosen { control: true, ..chosen }) } else { Chooses::No };
        }
        let next = |text: &usize| goes_on(*text) && self.texts[*text][read] == byte;
        let left: Vec<usize> = all.clone().filter(next).collect();
        if let ([text], true) = (&left[..], left.iter().all(|&text| self.texts[text].len() == read + 1)) {
            return Chooses::Is(*text);
        }
        if left.is_empty() {
            let begun = self.begun(chosen);
            let was =
                |text: &usize| !self.texts[*text].is_empty() && begun.starts_with(&self.texts[*text]) && may(*text);
            let longest = all.into_iter().filter(was).max_by_key(|&text| self.texts[text].len());
            return longest.filter(|_| !chosen.control).map_or(Chooses::No, Chooses::Was);
        }
        let out = all.filter(|text| !left.contains(text)).fold(0, |out, text| out | 1 << text);
        Chooses::More(Chosen { read: chosen.read + 1, out, control: false })
    }

    /// The bytes that were read.
    pub(crate) fn begun(&self, chosen: Chosen) -> &[u8] {
        let in_it =
            (0..self.texts.len()).find(|&text| self.is_in(chosen, text) && self.texts[text].len() >= chosen.len());
        in_it.map_or(&[], |text| &self.texts[text][..chosen.len()])
    }

    /// Returns whether nothing was read, not even that a control token begins.
    pub(crate) fn is_untouched(chosen: Chosen) -> bool {
        chosen == Chosen::default()
    }
}

/// Texts to be found in a text, all at once.
#[derive(Debug, Clone)]
pub(crate) struct Finder {
    texts: Vec<Box<[u8]>>,
    nodes: Vec<Node>,
}

#[derive(Debug, Clone, Default)]
struct Node {
    next: Vec<(u8, u32)>,
    /// The longest end of the text read that also begins a text.
    back: u32,
    depth: u32,
    /// A text that goes on from here, and whether it is whole.
    text: u8,
    whole: bool,
}

/// State of a search with a [`Finder`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub(crate) struct Search {
    node: u32,
    control: Control,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
enum Control {
    #[default]
    No,
    /// A control token begins right here.
    Here,
    /// One began: what is held must go on.
    Began,
    /// One began, and another begins right here, in what must go on.
    Again,
}

/// Result of a byte read by a [`Finder`]. [`Finder::step`] also returns how many of the held bytes before it are text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finds {
    /// The beginning of a text; whether it must go on.
    Held(Search),
    /// The end of one.
    Found(usize),
    /// The bytes are text.
    Text,
    Dead,
}

impl Finder {
    pub(crate) fn new(texts: impl IntoIterator<Item = Vec<u8>>) -> Self {
        let texts: Vec<Box<[u8]>> = texts.into_iter().map(Into::into).collect();
        let mut nodes = vec![Node::default()];
        for (number, text) in texts.iter().enumerate() {
            let mut at = 0;
            for (depth, &byte) in text.iter().enumerate() {
                let known = nodes[at].next.iter().find(|(on, _)| *on == byte).map(|(_, node)| *node as usize);
                at = known.unwrap_or_else(|| {
                    let node = nodes.len();
                    nodes.push(Node { depth: depth as u32 + 1, text: number as u8, ..Node::default() });
                    nodes[at].next.push((byte, node as u32));
                    node
                });
            }
            (nodes[at].whole, nodes[at].text) = (true, number as u8);
        }
        let mut finder = Self { texts, nodes };
        finder.link();
        finder
    }

    /// Finds the way back of each node, those of shorter texts first: each follows from that of the node before it.
    fn link(&mut self) {
        let mut queue = vec![0];
        let mut done = 0;
        while let Some(&at) = queue.get(done) {
            done += 1;
            for (byte, node) in self.nodes[at as usize].next.clone() {
                let ways = std::iter::successors(Some(at), |&way| (way != 0).then(|| self.nodes[way as usize].back));
                let back = ways.skip(1).find_map(|way| self.child(way, byte));
                self.nodes[node as usize].back = back.unwrap_or(0);
                queue.push(node);
            }
        }
    }

    /// Returns whether one of the texts begins with this byte.
    #[inline]
    pub(crate) fn begins(&self, byte: u8) -> bool {
        self.nodes[0].next.iter().any(|(on, _)| *on == byte)
    }

    fn child(&self, node: u32, byte: u8) -> Option<u32> {
        self.nodes[node as usize].next.iter().find(|(on, _)| *on == byte).map(|(_, node)| *node)
    }

    /// Returns the bytes held back.
    pub(crate) fn held(&self, search: Search) -> &[u8] {
        let node = &self.nodes[search.node as usize];
        &self.texts[usize::from(node.text)][..node.depth as usize]
    }

    /// The lengths of shorter ends of the held text that also begin a text.
    pub(crate) fn shorter(&self, search: Search) -> impl Iterator<Item = usize> {
        let back = |node: &u32| Some(self.nodes[*node as usize].back).filter(|back| *back != 0);
        std::iter::successors(back(&search.node), back).map(|node| self.nodes[node as usize].depth as usize)
    }

    /// The text that is looked for.
    pub(crate) fn text(&self, text: usize) -> &[u8] {
        &self.texts[text]
    }

    /// Reads a byte. Returns how much of the held text is plain text, and the meaning of the byte.
    #[inline]
    pub(crate) fn step(&self, search: Search, byte: u8, strict: bool) -> (usize, Finds) {
        if byte == CONTROL && strict {
            let control = match search.control {
                Control::No if !self.texts.is_empty() => Control::Here,
                Control::Began => Control::Again,
                _ => return (0, Finds::Dead),
            };
            return (0, Finds::Held(Search { control, ..search }));
        }
        let mut node = search.node;
        loop {
            if let Some(next) = self.child(node, byte) {
                let flushed = self.nodes[search.node as usize].depth - self.nodes[node as usize].depth;
                let here = &self.nodes[next as usize];
                let control = if search.control == Control::No { Control::No } else { Control::Began };
                let found = if here.whole {
                    Finds::Found(usize::from(here.text))
                } else {
                    Finds::Held(Search { node: next, control })
                };
                return (flushed as usize, found);
            }
            if matches!(search.control, Control::Began | Control::Again) {
                return (0, Finds::Dead);
            }
            if node == 0 {
                let dead = search.control != Control::No;
                let flushed = self.nodes[search.node as usize].depth;
                return (flushed as usize, if dead { Finds::Dead } else { Finds::Text });
            }
            node = self.nodes[node as usize].back;
        }
    }
}

impl Search {
    /// Returns whether nothing is held back.
    #[inline]
    pub(crate) fn is_idle(self) -> bool {
        self == Self::default()
    }

    /// Returns whether what is held must go on.
    pub(crate) fn is_forced(self) -> bool {
        self.control != Control::No
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_back_are_the_longest_ends_that_begin_a_text() {
        let finder = Finder::new([b"abcabd".to_vec(), b"bcab".to_vec(), b"abab".to_vec(), b"aaaa".to_vec()]);
        for (at, node) in (0_u32..).zip(&finder.nodes).skip(1) {
            let held = finder.held(Search { node: at, control: Control::No });
            let begins = |end: &&[u8]| finder.texts.iter().any(|text| text.starts_with(end));
            let longest = (1..held.len()).map(|from| &held[from..]).find(begins).unwrap_or_default();
            assert_eq!(finder.held(Search { node: node.back, control: Control::No }), longest, "{held:?}");
        }
        // Long ones are linked in linear time, and have more nodes than 16 bits count.
        let long = Finder::new([[b"a".repeat(100_000), b">".to_vec()].concat()]);
        assert_eq!(long.nodes.len(), 100_002);
    }

    #[test]
    fn what_a_control_token_begins_goes_on() {
        let finder = Finder::new([b"<c>end<d>".to_vec()]);
        let read = |text: &[u8]| {
            text.iter().try_fold(Search::default(), |search, &byte| match finder.step(search, byte, true).1 {
                Finds::Held(search) => Some(search),
                Finds::Text => Some(Search::default()),
                Finds::Found(_) | Finds::Dead => None,
            })
        };
        let control = |text: &[u8]| [&[CONTROL], text].concat();
        let begun = control(b"<c>end");
        assert!(read(&begun).is_some_and(Search::is_forced));
        assert!(read(&[&begun[..], &control(b"<d")].concat()).is_some());
        // Neither text nor another control token.
        assert!(read(&[&begun[..], b"x"].concat()).is_none());
        assert!(read(&[&begun[..], &control(b"<c")].concat()).is_none());
        // What only text spelled may be text.
        assert!(read(&[b"<c>e", &control(b"<c")[..]].concat()).is_some());
    }
}
