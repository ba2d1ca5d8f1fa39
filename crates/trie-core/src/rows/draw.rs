//! A seeded draw over a few candidates, step for step as llama.cpp does it.
//!
//! The order is that of llama.cpp's default chain: top-k, typical-p, top-p, min-p, temperature, draw. Arithmetic, order
//! of summation and the generator (`std::mt19937` through `std::uniform_real_distribution<double>`) are those of
//! `llama.cpp/src/llama-sampler.cpp`, so the same seed over the same candidates draws the same token; only ties between
//! equal logits, whose order is unspecified there, go to the lower id here.

use crate::rows::generator::Generator;
use crate::rows::logits::{clean, is_usable};
use crate::set::ids::TokenId;
use std::cell::Cell;

/// How to draw. The default changes nothing: temperature 1 and no truncation. What each means: [`DrawSettings::ALL`].
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(missing_docs, reason = "each is described once, in the table that hosts read")]
pub struct DrawSettings {
    pub temperature: f32,
    pub top_k: u32,
    pub top_p: f32,
    pub min_p: f32,
    pub typical_p: f32,
}

/// One of them, for hosts that read settings by name.
#[derive(Debug, Clone, Copy)]
pub struct DrawSetting {
    /// As in every host.
    pub name: &'static str,
    /// What it does, for help texts.
    pub about: &'static str,
    /// Without effect: what it is where it is not given.
    pub default: f32,
    /// What it may be, in words.
    pub range: &'static str,
    /// Whether it is counted, and no fraction.
    pub is_count: bool,
    /// Another value that has no effect on a greedy choice.
    greedy: f32,
    most: f64,
    field: Field,
}

#[derive(Debug, Clone, Copy)]
enum Field {
    Number(fn(&mut DrawSettings) -> &mut f32),
    Count(fn(&mut DrawSettings) -> &mut u32),
}

/// A setting out of range.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("{name} is {value}: it must be {range}")]
pub struct DrawError {
    /// The setting.
    pub name: &'static str,
    /// What it was.
    pub value: f32,
    /// What it may be.
    pub range: &'static str,
}

const SHARE: &str = "from 0 to 1";

impl DrawSetting {
    const fn share(name: &'static str, about: &'static str, default: f32, field: Field) -> Self {
        Self { name, about, default, range: SHARE, is_count: false, greedy: default, most: 1.0, field }
    }

    /// Its value.
    pub fn get(&self, mut settings: DrawSettings) -> f64 {
        match self.field {
            Field::Number(field) => f64::from(*field(&mut settings)),
            Field::Count(field) => f64::from(*field(&mut settings)),
        }
    }

    /// # Errors
    /// A value out of its range; a count is a whole number.
    pub fn set(&self, settings: &mut DrawSettings, value: f64) -> Result<(), DrawError> {
        match self.field {
            Field::Number(field) => *field(settings) = self.checked(f64::from(value as f32))? as f32,
            Field::Count(field) => *field(settings) = self.checked(value)? as u32,
        }
        Ok(())
    }

    /// Whether it asks for something that a greedy choice does not do.
    pub fn is_lost_in_greedy(&self, value: f64) -> bool {
        ![self.default, self.greedy].map(f64::from).contains(&value)
    }

    fn checked(&self, value: f64) -> Result<f64, DrawError> {
        let is_whole = !self.is_count || value.fract() == 0.0;
        if (0.0..=self.most).contains(&value) && is_whole {
            return Ok(value);
        }
        Err(DrawError { name: self.name, value: value as f32, range: self.range })
    }
}

impl Default for DrawSettings {
    fn default() -> Self {
        Self { temperature: 1.0, top_k: 0, top_p: 1.0, min_p: 0.0, typical_p: 1.0 }
    }
}

impl DrawSettings {
    /// All of them, in the order in which hosts list them.
    pub const ALL: [DrawSetting; 5] = [
        DrawSetting {
            name: "temperature",
            about: "divides the logits; 0 takes the highest",
            default: 1.0,
            range: "finite and at least 0",
            is_count: false,
            greedy: 0.0,
            most: f32::MAX as f64,
            field: Field::Number(|settings| &mut settings.temperature),
        },
        DrawSetting {
            name: "top_k",
            about: "keep the k highest logits; 0 keeps all",
            default: 0.0,
            range: "an integer from 0 to 2**32 - 1",
            is_count: true,
            greedy: 1.0,
            most: u32::MAX as f64,
            field: Field::Count(|settings| &mut settings.top_k),
        },
        DrawSetting::share(
            "top_p",
            "keep the fewest tokens whose probabilities add up to this; 1 keeps all",
            1.0,
            Field::Number(|settings| &mut settings.top_p),
        ),
        DrawSetting::share(
            "min_p",
            "keep tokens at least this times as probable as the best; 0 keeps all",
            0.0,
            Field::Number(|settings| &mut settings.min_p),
        ),
        DrawSetting::share(
            "typical_p",
            "keep tokens nearest to the mean surprise until their probabilities add up to this; 1 keeps all",
            1.0,
            Field::Number(|settings| &mut settings.typical_p),
        ),
    ];

    /// The setting of this name.
    pub fn named(name: &str) -> Option<DrawSetting> {
        Self::ALL.into_iter().find(|setting| setting.name == name)
    }

    /// # Errors
    /// A temperature that is negative or not finite, or a probability outside 0 … 1.
    pub fn check(&self) -> Result<(), DrawError> {
        Self::ALL.iter().try_for_each(|setting| setting.checked(setting.get(*self)).map(drop))
    }
}

#[derive(Debug, Clone, Copy)]
struct Candidate {
    token: TokenId,
    logit: f32,
    p: f32,
}

thread_local! {
    /// Lent to each draw, so that a row holds nothing between two of them.
    static SPARE: Cell<Vec<Candidate>> = const { Cell::new(Vec::new()) };
}

/// One sequence of draws.
#[derive(Debug, Clone)]
pub(crate) struct Draw {
    generator: Generator,
    candidates: Vec<Candidate>,
    sorted: bool,
}

impl Draw {
    pub(crate) fn new(seed: u32) -> Self {
        Self { generator: Generator::new(seed), candidates: Vec::new(), sorted: false }
    }

    /// The same draws from fewer bytes: [`Generator::light`].
    pub(crate) fn light(seed: u32) -> Self {
        Self { generator: Generator::light(seed), ..Self::new(seed) }
    }

    /// Starts the sequence of draws again.
    pub(crate) fn reset(&mut self) {
        self.generator.reset();
    }

    /// Draws one of `ids`; `None` if none has a finite chance. `O(k)`, with a cut `O(k log k)`.
    pub(crate) fn draw(
        &mut self,
        row: &[f32],
        ids: impl Iterator<Item = TokenId>,
        settings: &DrawSettings,
    ) -> Option<TokenId> {
        self.draw_from(ids.map(|token| (token, row[token.index()])), settings)
    }

    /// [`Draw::draw`] of tokens with their logits.
    pub(crate) fn draw_from(
        &mut self,
        logits: impl Iterator<Item = (TokenId, f32)>,
        settings: &DrawSettings,
    ) -> Option<TokenId> {
        self.candidates = SPARE.take();
        let token = self.token_of(logits, settings);
        SPARE.set(std::mem::take(&mut self.candidates));
        token
    }

    fn token_of(&mut self, logits: impl Iterator<Item = (TokenId, f32)>, settings: &DrawSettings) -> Option<TokenId> {
        self.candidates.clear();
        self.sorted = false;
        self.candidates.extend(logits.map(|(token, logit)| Candidate { token, logit: clean(logit), p: 0.0 }));
        let best = self.max_logit();
        if !is_usable(best) {
            return None;
        }
        if best == f32::INFINITY {
            // exp(inf − inf) is NaN: what is infinite is certain, the rest impossible.
            self.candidates.retain_mut(|c| std::mem::replace(&mut c.logit, 0.0) == f32::INFINITY);
        }
        self.top_k(settings.top_k as usize);
        self.typical_p(settings.typical_p);
        self.top_p(settings.top_p);
        self.min_p(settings.min_p);
        self.temperature(settings.temperature);
        Some(self.pick())
    }

    /// Uses up one draw, as choosing among one candidate does.
    pub(crate) fn skip(&mut self) {
        self.uniform();
    }

    fn max_logit(&self) -> f32 {
        self.candidates.iter().fold(f32::NEG_INFINITY, |high, c| high.max(c.logit))
    }

    fn sort(&mut self, keep: usize) {
        if self.sorted {
            return;
        }
        let order = |a: &Candidate, b: &Candidate| b.logit.total_cmp(&a.logit).then(a.token.cmp(&b.token));
        if keep < self.candidates.len() {
            self.candidates.select_nth_unstable_by(keep, order);
            self.candidates[..keep].sort_unstable_by(order);
        } else {
            self.candidates.sort_unstable_by(order);
        }
        self.sorted = true;
    }

    fn softmax(&mut self) {
        let best = self.max_logit();
        let mut sum = 0.0f32;
        for c in &mut self.candidates {
            c.p = (c.logit - best).exp();
            sum += c.p;
        }
        for c in &mut self.candidates {
            c.p /= sum;
        }
    }

    fn top_k(&mut self, k: usize) {
        if k > 0 {
            let keep = k.min(self.candidates.len());
            self.sort(keep);
            self.candidates.truncate(keep);
        }
    }

    fn typical_p(&mut self, p: f32) {
        if p >= 1.0 {
            return;
        }
        self.sort(self.candidates.len());
        self.softmax();
        // What is impossible says nothing; in llama.cpp it makes the mean NaN, and the order arbitrary.
        let surprise = |c: &Candidate| if c.p > 0.0 { -c.p.ln() } else { f32::INFINITY };
        let mean = self.candidates.iter().filter(|c| c.p > 0.0).fold(0.0f32, |sum, c| sum + c.p * surprise(c));
        let distance = |c: &Candidate| (surprise(c) - mean).abs();
        self.candidates.sort_by(|a, b| distance(a).total_cmp(&distance(b)));
        self.sorted = false;
        let mut sum = 0.0f32;
        let enough = self.candidates.iter().position(|c| {
            sum += c.p;
            sum > p
        });
        self.candidates.truncate(enough.map_or(self.candidates.len(), |last| last + 1));
    }

    fn top_p(&mut self, p: f32) {
        if p >= 1.0 {
            return;
        }
        self.softmax();
        self.sort(self.candidates.len());
        let mut sum = 0.0f32;
        let enough = self.candidates.iter().position(|c| {
            sum += c.p;
            sum >= p
        });
        self.candidates.truncate(enough.map_or(self.candidates.len(), |last| last + 1));
    }

    fn min_p(&mut self, p: f32) {
        if p > 0.0 {
            let least = self.max_logit() + p.ln();
            self.candidates.retain(|c| c.logit >= least);
        }
    }

    fn temperature(&mut self, temperature: f32) {
        if temperature > 0.0 {
            for c in &mut self.candidates {
                c.logit /= temperature;
            }
            return;
        }
        let best = self.max_logit();
        let first = self.candidates.iter().position(|c| c.logit == best).unwrap_or(0);
        self.candidates.swap(0, first);
        self.candidates.truncate(1);
    }

    fn pick(&mut self) -> TokenId {
        let uniform = self.uniform();
        let best = self.max_logit();
        let mut sum = 0.0f64;
        for c in &mut self.candidates {
            c.p = (c.logit - best).exp();
            sum += f64::from(c.p);
        }
        let target = sum * uniform;
        let mut run = 0.0f64;
        let found = self.candidates.iter().find(|c| {
            run += f64::from(c.p);
            // A chance of 0 is never drawn, not even by a uniform 0.
            run >= target && c.p > 0.0
        });
        found.or(self.candidates.last()).map_or(TokenId::default(), |c| c.token)
    }

    /// `std::generate_canonical<double, 53>` over `std::mt19937`: two words, the first one the lower.
    fn uniform(&mut self) -> f64 {
        let [low, high] = self.generator.words().map(f64::from);
        let unit = (low + high * 4_294_967_296.0) / 18_446_744_073_709_551_616.0;
        unit.min(1.0f64.next_down())
    }
}
