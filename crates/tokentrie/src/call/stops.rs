//! Stop texts: texts that end the output and are never shown. Text that may begin a stop text is held back until it is
//! certain.

use llama_sampler::{Finish, Generated, Step, Watch};
use std::sync::Arc;

/// The most stop texts.
const MOST: usize = 256;
/// The most bytes of one.
const LONGEST: usize = 1 << 16;

/// Stop texts that are not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StopError {
    /// One without a character.
    #[error("stop[{0}] is empty: it would end the output before it begins")]
    Empty(usize),
    /// One that is too long.
    #[error("stop[{number}] has {bytes} bytes: it may have {LONGEST}")]
    TooLong {
        /// Index of the stop text.
        number: usize,
        /// Length of the stop text in bytes.
        bytes: usize,
    },
    /// There are too many stop texts.
    #[error("stop has {0} texts: it may have {MOST}")]
    TooMany(usize),
}

trie_core::error_kind!(StopError, Argument);

/// Stop texts. The first one that is written ends the output, whatever tokens spell it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stops(Arc<[Text]>);

/// A text with its failure function (Knuth, Morris, Pratt): for each prefix, the length of the prefix that is still
/// matched after a mismatch.
#[derive(Debug, PartialEq, Eq)]
struct Text {
    bytes: Box<[u8]>,
    back: Box<[usize]>,
}

impl Stops {
    /// These texts.
    ///
    /// # Errors
    /// [`StopError`].
    pub fn new<S: AsRef<str>>(texts: &[S]) -> Result<Self, StopError> {
        if texts.len() > MOST {
            return Err(StopError::TooMany(texts.len()));
        }
        let text = |(number, text): (usize, &S)| match text.as_ref().len() {
            0 => Err(StopError::Empty(number)),
            bytes if bytes > LONGEST => Err(StopError::TooLong { number, bytes }),
            _ => Ok(Text::new(text.as_ref())),
        };
        Ok(Self(texts.iter().enumerate().map(text).collect::<Result<_, _>>()?))
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Text {
    fn new(text: &str) -> Self {
        let bytes: Box<[u8]> = text.as_bytes().into();
        let mut made = Self { back: vec![0; bytes.len()].into(), bytes };
        for end in 1..made.bytes.len() {
            made.back[end] = made.step(made.back[end - 1], made.bytes[end]);
        }
        made
    }

    /// Returns the length of the prefix that is matched after one more byte.
    fn step(&self, mut written: usize, byte: u8) -> usize {
        while written > 0 && self.bytes.get(written) != Some(&byte) {
            written = self.back[written - 1];
        }
        written + usize::from(self.bytes[written] == byte)
    }
}

/// Filter that holds back text that may begin a stop text.
#[derive(Debug, Clone)]
pub struct StopFilter {
    stops: Stops,
    /// Number of bytes written of each.
    written: Vec<usize>,
    held: String,
    /// The one that was written.
    found: Option<usize>,
}

impl StopFilter {
    /// Returns a filter that has seen no text.
    pub fn new(stops: &Stops) -> Self {
        Self { written: vec![0; stops.0.len()], stops: stops.clone(), held: String::new(), found: None }
    }

    /// Takes more text, and returns the text that became certain with it: none after a stop text. `O(bytes)` for each
    /// stop text.
    pub fn push(&mut self, text: &str) -> String {
        if self.found.is_some() {
            return String::new();
        }
        let before = self.held.len();
        self.held.push_str(text);
        for (at, byte) in text.bytes().enumerate() {
            let (mut longest, mut found) = (0, 0);
            for (number, (stop, written)) in self.stops.0.iter().zip(&mut self.written).enumerate() {
                *written = stop.step(*written, byte);
                if *written == stop.bytes.len() && *written > longest {
                    (longest, found) = (*written, number);
                }
            }
            if longest > 0 {
                self.found = Some(found);
                self.held.truncate(before + at + 1 - longest);
                return std::mem::take(&mut self.held);
            }
        }
        let kept = self.written.iter().copied().max().unwrap_or_default();
        let held = self.held.split_off(self.held.len() - kept);
        std::mem::replace(&mut self.held, held)
    }

    /// Returns whether a stop text was written.
    pub fn is_found(&self) -> bool {
        self.found.is_some()
    }

    /// Returns the stop text that was written: of several that end at once the longest.
    pub fn found(&self) -> Option<&str> {
        std::str::from_utf8(&self.stops.0.get(self.found?)?.bytes).ok()
    }

    /// Returns the number of held bytes, which may begin a stop text.
    pub fn held_bytes(&self) -> usize {
        self.held.len()
    }

    /// Returns the held text at the end of the output.
    pub fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }
}

/// Watch of a generation with stop texts: it passes a token on to the inner watch once no stop text can contain it.
pub(super) struct Stopping<W> {
    watch: W,
    filter: StopFilter,
    /// Tokens that are not certain.
    held: Vec<Step>,
    /// Bytes that no stop text can contain, and how many of them were shown.
    certain: usize,
    shown: usize,
    /// The bytes before each token.
    begins: Vec<usize>,
}

impl<W: Watch> Stopping<W> {
    pub(super) fn new(watch: W, stops: &Stops) -> Self {
        Self { watch, filter: StopFilter::new(stops), held: Vec::new(), certain: 0, shown: 0, begins: Vec::new() }
    }

    /// Reports the tokens that are certain while so many bytes are held back.
    fn tell(&mut self, held: usize) {
        let mut after: usize = self.held.iter().map(|step| step.text.len()).sum();
        let certain = self.held.iter().take_while(|step| {
            after -= step.text.len();
            after >= held
        });
        let certain = certain.count();
        for step in self.held.drain(..certain) {
            self.shown += step.text.len();
            if self.watch.wants_steps() {
                self.watch.step(&step);
            }
        }
    }

    /// Returns the result of the generation, without the stop text and the text after it.
    pub(super) fn finish(mut self, mut generated: Generated) -> Generated {
        if !self.filter.is_found() {
            self.tell(0);
            return generated;
        }
        let cut = self.shown;
        let kept = self.begins.iter().take_while(|&&begin| begin < cut).count();
        generated.text.truncate(cut);
        generated.tokens.truncate(kept);
        generated.logprobs.truncate(kept);
        generated.finish = Finish::StopText;
        generated
    }
}

impl<W: Watch> Watch for Stopping<W> {
    fn stop(&mut self) -> bool {
        self.filter.is_found() || self.watch.stop()
    }

    fn priority(&self) -> i32 {
        self.watch.priority()
    }

    fn wants_steps(&self) -> bool {
        !self.filter.is_found()
    }

    fn wants_shares(&self) -> bool {
        self.watch.wants_steps() && self.watch.wants_shares()
    }

    fn step(&mut self, step: &Step) {
        self.begins.push(self.shown + self.held.iter().map(|step| step.text.len()).sum::<usize>());
        // Inside a value nothing ends the output but its constraint.
        self.certain += if step.free { self.filter.push(&step.text).len() } else { step.text.len() };
        self.held.push(step.clone());
        if !self.filter.is_found() {
            return self.tell(self.filter.held_bytes());
        }
        // Up to the stop text: the last token with text before it says less, and those after it are none of the output.
        let mut left = self.certain - self.shown;
        self.held.retain_mut(|step| {
            let keeps = left > 0;
            let length = step.text.len().min(left);
            step.text.truncate(length);
            left -= length;
            keeps
        });
        self.tell(0);
    }
}
