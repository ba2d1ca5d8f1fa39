//! The patterns of response templates: regular expressions as the Python module `regex` reads them, with its partial
//! matches, under the flag `DOTALL`.
//!
//! A search takes time linear in text and pattern: it tries the ways of a backtracking search, in their order, and none
//! twice from the same place.

pub(super) mod syntax;

use std::collections::{HashMap, HashSet};
use syntax::{Class, Node, Place, Set};

/// Limit on the instructions of a pattern.
const MOST_INSTRUCTIONS: usize = 20_000;

/// A pattern, ready to search with.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    node: Node,
    program: Vec<Instruction>,
    names: Vec<String>,
    /// Sets of which one holds the first character; `None` if a match may be empty.
    first: Option<Vec<Set>>,
}

#[derive(Debug, Clone)]
enum Instruction {
    One(Set),
    /// Goes on here first, then there.
    Split(usize, usize),
    Jump(usize),
    Mark(usize),
    Place(Place),
    /// Look-ahead: the text from here on must match, or must not; then it goes on there.
    Ahead(usize, bool, usize),
    Found,
}

/// A match of a pattern in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PatternMatch {
    /// Position of the first character.
    pub(crate) start: usize,
    /// The character after the last one.
    pub(crate) end: usize,
    /// True if more text may complete it, and no text completed it yet.
    pub(crate) partial: bool,
    /// Borders of the named groups.
    marks: Vec<Option<usize>>,
}

impl PatternMatch {
    /// The characters of a group.
    fn group(&self, number: usize) -> Option<(usize, usize)> {
        self.marks[2 * number].zip(self.marks[2 * number + 1])
    }

    /// Returns whether two matches hold the same characters, in all groups too.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self == other
    }
}

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// The reason why it cannot be read.
    pub(crate) fn new(text: &str) -> Result<Self, String> {
        Self::of_node(syntax::parse(text)?)
    }

    /// The pattern that matches one of these texts, the longest first.
    pub(crate) fn of_texts(texts: &[String]) -> Result<Self, String> {
        let mut texts: Vec<&String> = texts.iter().collect();
        texts.sort_by_key(|text| std::cmp::Reverse(text.chars().count()));
        let text = |text: &&String| Node::Sequence(text.chars().map(|sign| Node::One(Set::of(sign))).collect());
        Self::of_node(Node::Either(texts.iter().map(text).collect()))
    }

    fn of_node(node: Node) -> Result<Self, String> {
        let mut maker = Maker::default();
        maker.add(&node, false)?;
        maker.program.push(Instruction::Found);
        let first = firsts(&maker.program);
        Ok(Self { node, program: maker.program, names: maker.names, first })
    }

    /// The syntax of the pattern.
    pub(crate) fn node(&self) -> &Node {
        &self.node
    }

    /// The names of its groups.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// The texts of the named groups that took part in a match.
    pub(crate) fn captures(&self, found: &PatternMatch, text: &[char]) -> Vec<(String, String)> {
        let of = |(number, name): (usize, &String)| {
            found.group(number).map(|(from, to)| (name.clone(), text[from..to].iter().collect()))
        };
        self.names.iter().enumerate().filter_map(of).collect()
    }

    /// The first match from a position on. With `partial`, if there is none, the first beginning of one that the end of
    /// the text cuts off: at the end of the text at the latest.
    pub(crate) fn search(&self, text: &[char], from: usize, partial: bool) -> Option<PatternMatch> {
        self.search_in(text, from, false).or_else(|| partial.then(|| self.search_in(text, from, true)).flatten())
    }

    fn search_in(&self, text: &[char], from: usize, partial: bool) -> Option<PatternMatch> {
        let mut run = Run::new(self, text, partial);
        for start in from..=text.len() {
            if let (Some(first), Some(&sign)) = (&self.first, text.get(start))
                && !first.iter().any(|set| set.has(sign))
            {
                continue;
            }
            if let Some(found) = run.try_at(0, start) {
                return Some(found);
            }
        }
        None
    }

    /// The match that begins here, if one does.
    pub(crate) fn match_at(&self, text: &[char], at: usize) -> Option<PatternMatch> {
        Run::new(self, text, false).try_at(0, at)
    }
}

#[derive(Default)]
struct Maker {
    program: Vec<Instruction>,
    names: Vec<String>,
}

impl Maker {
    fn push(&mut self, instruction: Instruction) -> Result<usize, String> {
        if self.program.len() >= MOST_INSTRUCTIONS {
            return Err(format!("it repeats too much: more than {MOST_INSTRUCTIONS} steps"));
        }
        self.program.push(instruction);
        Ok(self.program.len() - 1)
    }

    fn split(&mut self, at: usize, first: usize, then: usize) {
        self.program[at] = Instruction::Split(first, then);
    }

    fn add(&mut self, node: &Node, ahead: bool) -> Result<(), String> {
        match node {
            Node::One(set) => drop(self.push(Instruction::One(set.clone()))?),
            Node::Place(place) => drop(self.push(Instruction::Place(*place))?),
            Node::Sequence(nodes) => nodes.iter().try_for_each(|node| self.add(node, ahead))?,
            Node::Either(ways) => {
                let mut ends = Vec::new();
                for (number, way) in ways.iter().enumerate() {
                    if number + 1 == ways.len() {
                        self.add(way, ahead)?;
                        break;
                    }
                    let split = self.push(Instruction::Jump(0))?;
                    self.add(way, ahead)?;
                    ends.push(self.push(Instruction::Jump(0))?);
                    self.split(split, split + 1, self.program.len());
                }
                let over = self.program.len();
                for end in ends {
                    self.program[end] = Instruction::Jump(over);
                }
            }
            Node::Repeat { node, least, most, greedy } => {
                (0..*least).try_for_each(|_| self.add(node, ahead))?;
                let order = |first, then| if *greedy { (first, then) } else { (then, first) };
                match most {
                    None => {
                        let split = self.push(Instruction::Jump(0))?;
                        self.add(node, ahead)?;
                        self.push(Instruction::Jump(split))?;
                        let (first, then) = order(split + 1, self.program.len());
                        self.split(split, first, then);
                    }
                    Some(most) => {
                        let mut splits = Vec::new();
                        for _ in *least..*most {
                            splits.push(self.push(Instruction::Jump(0))?);
                            self.add(node, ahead)?;
                        }
                        let over = self.program.len();
                        for split in splits {
                            let (first, then) = order(split + 1, over);
                            self.split(split, first, then);
                        }
                    }
                }
            }
            Node::Named(name, node) => {
                if ahead {
                    return Err(format!("the group {name:?} inside a lookahead is not supported"));
                }
                let known = self.names.iter().position(|known| known == name);
                let number = known.unwrap_or_else(|| {
                    self.names.push(name.clone());
                    self.names.len() - 1
                });
                self.push(Instruction::Mark(2 * number))?;
                self.add(node, ahead)?;
                self.push(Instruction::Mark(2 * number + 1))?;
            }
            Node::Ahead { node, not } => {
                let look = self.push(Instruction::Jump(0))?;
                self.add(node, true)?;
                self.push(Instruction::Found)?;
                self.program[look] = Instruction::Ahead(look + 1, *not, self.program.len());
            }
        }
        Ok(())
    }
}

/// The sets of the first characters of a program; `None` if it can match without one, or looks around.
fn firsts(program: &[Instruction]) -> Option<Vec<Set>> {
    let (mut seen, mut open, mut sets) = (HashSet::new(), vec![0], Vec::new());
    while let Some(at) = open.pop() {
        if !seen.insert(at) {
            continue;
        }
        match &program[at] {
            Instruction::One(set) => sets.push(set.clone()),
            Instruction::Split(first, then) => open.extend([*first, *then]),
            Instruction::Jump(to) => open.push(*to),
            Instruction::Mark(_) => open.push(at + 1),
            Instruction::Place(_) | Instruction::Ahead(..) | Instruction::Found => return None,
        }
    }
    sets.dedup();
    Some(sets)
}

/// Result of a way through the program.
enum Outcome {
    Found(usize),
    /// The end of the text came where a character was needed.
    Cut,
    Failed,
}

struct Run<'a> {
    pattern: &'a Pattern,
    text: &'a [char],
    /// True if a match that the end of the text cuts off counts.
    partial: bool,
    /// Ways that failed: the instruction and the position of each branch.
    failed: HashSet<(usize, usize)>,
    /// The same inside the looks ahead, by their instructions.
    failed_ahead: HashMap<usize, HashSet<(usize, usize)>>,
    /// Results of looks ahead.
    looked: HashMap<(usize, usize), Option<bool>>,
    marks: Vec<Option<usize>>,
}

/// A way that is still to try, or a mark to put back.
enum Open {
    Way(usize, usize),
    Mark(usize, Option<usize>),
}

impl<'a> Run<'a> {
    fn new(pattern: &'a Pattern, text: &'a [char], partial: bool) -> Self {
        let marks = vec![None; 2 * pattern.names.len()];
        let (failed, failed_ahead, looked) = (HashSet::new(), HashMap::new(), HashMap::new());
        Self { pattern, text, partial, failed, failed_ahead, looked, marks }
    }

    fn try_at(&mut self, entry: usize, start: usize) -> Option<PatternMatch> {
        self.marks.fill(None);
        let (end, partial) = match self.walk(entry, start, true) {
            Outcome::Found(end) => (end, false),
            Outcome::Cut => (self.text.len(), true),
            Outcome::Failed => return None,
        };
        Some(PatternMatch { start, end, partial, marks: self.marks.clone() })
    }

    fn walk(&mut self, entry: usize, start: usize, marked: bool) -> Outcome {
        let mut open = vec![Open::Way(entry, start)];
        let program = &self.pattern.program;
        while let Some(next) = open.pop() {
            let (mut at, mut position) = match next {
                Open::Way(at, position) => (at, position),
                Open::Mark(mark, old) => {
                    self.marks[mark] = old;
                    continue;
                }
            };
            loop {
                match &program[at] {
                    Instruction::One(set) => match self.text.get(position) {
                        Some(&sign) if set.has(sign) => {
                            position += 1;
                            at += 1;
                        }
                        None if self.partial => return Outcome::Cut,
                        _ => break,
                    },
                    Instruction::Split(first, then) => {
                        if !self.failed.insert((at, position)) {
                            break;
                        }
                        open.push(Open::Way(*then, position));
                        at = *first;
                    }
                    Instruction::Jump(to) => at = *to,
                    Instruction::Mark(mark) => {
                        if marked {
                            open.push(Open::Mark(*mark, self.marks[*mark]));
                            self.marks[*mark] = Some(position);
                        }
                        at += 1;
                    }
                    Instruction::Place(place) => {
                        if !self.is_at(*place, position) {
                            break;
                        }
                        at += 1;
                    }
                    Instruction::Ahead(inside, not, after) => {
                        let key = (at, position);
                        let result = if let Some(&known) = self.looked.get(&key) {
                            known
                        } else {
                            // Ways inside that failed once fail again; of those that led to a match not all did.
                            let inner = self.failed_ahead.remove(&at).unwrap_or_default();
                            let before = std::mem::replace(&mut self.failed, inner);
                            let found = match self.walk(*inside, position, false) {
                                Outcome::Found(_) => Some(true),
                                Outcome::Failed => Some(false),
                                Outcome::Cut => None,
                            };
                            let inner = std::mem::replace(&mut self.failed, before);
                            if found == Some(false) {
                                self.failed_ahead.insert(at, inner);
                            }
                            self.looked.insert(key, found);
                            found
                        };
                        match result {
                            None => return Outcome::Cut,
                            Some(found) if found == *not => break,
                            Some(_) => at = *after,
                        }
                    }
                    Instruction::Found => return Outcome::Found(position),
                }
            }
        }
        Outcome::Failed
    }

    fn is_at(&self, place: Place, position: usize) -> bool {
        let is_word =
            |at: Option<usize>| at.and_then(|at| self.text.get(at)).is_some_and(|&sign| Class::Word.has(sign));
        let is_border = || is_word(position.checked_sub(1)) != is_word(Some(position));
        let rest = self.text.len() - position;
        match place {
            Place::Start => position == 0,
            Place::End => rest == 0,
            Place::LineEnd => rest == 0 || (rest == 1 && self.text[position] == '\n'),
            Place::Border => is_border(),
            Place::NoBorder => !is_border(),
        }
    }
}
