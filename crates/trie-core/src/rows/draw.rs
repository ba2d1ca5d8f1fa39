//! A seeded draw over a few candidates, step for step as llama.cpp does it.
//!
//! The order is that of llama.cpp's default chain: penalties, top-k, typical-p, top-p, min-p, temperature, draw.
//! Arithmetic, order of summation and the generator (`std::mt19937` through `std::uniform_real_distribution<double>`)
//! are those of `llama.cpp/src/llama-sampler.cpp`. So the same seed over the same candidates draws the same token.
//! Only ties differ: llama.cpp does not specify the order of equal logits; here the lower id comes first.

use crate::rows::logits::{clean, is_usable};
use crate::rows::settings::DrawSettings;
use crate::set::ids::TokenId;
use rand_mt::Mt;
use std::cell::Cell;

#[derive(Debug, Clone, Copy)]
struct Candidate {
    token: TokenId,
    logit: f32,
    p: f32,
}

thread_local! {
    /// Buffer lent to each draw, so that a row keeps none between two draws.
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
    pub(crate) fn uniform(&mut self) -> f64 {
        let [low, high] = self.generator.words().map(f64::from);
        let unit = (low + high * 4_294_967_296.0) / 18_446_744_073_709_551_616.0;
        unit.min(1.0f64.next_down())
    }
}

/// One sequence of words. It takes a few bytes until its first word is drawn.
#[derive(Debug, Clone)]
struct Generator {
    seed: u32,
    /// Pairs of words so far.
    drawn: u64,
    /// 2.5 KB: made at the first draw, if it is kept.
    kept: Option<Box<Mt>>,
    keeps: bool,
}

impl Generator {
    fn new(seed: u32) -> Self {
        Self { seed, drawn: 0, kept: None, keeps: true }
    }

    /// The same words without the 2.5 KB of state: each draw seeds the generator again, which takes 2 µs, and repeats
    /// all earlier draws.
    fn light(seed: u32) -> Self {
        Self { keeps: false, ..Self::new(seed) }
    }

    /// Resets the state to empty.
    fn reset(&mut self) {
        (self.kept, self.drawn) = (None, 0);
    }

    /// The two words of the next draw.
    fn words(&mut self) -> [u32; 2] {
        let (seed, drawn) = (self.seed, self.drawn);
        self.drawn += 1;
        let anew = || {
            let mut rng = Mt::new(seed);
            for _ in 0..2 * drawn {
                rng.next_u32();
            }
            rng
        };
        let next = |rng: &mut Mt| [rng.next_u32(), rng.next_u32()];
        if self.keeps { next(self.kept.get_or_insert_with(|| Box::new(anew()))) } else { next(&mut anew()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_light_sequence_is_the_same() {
        for seed in [0, 1, 5489, u32::MAX] {
            let (mut kept, mut light, mut plain) = (Generator::new(seed), Generator::light(seed), Mt::new(seed));
            for _ in 0..700 {
                let expected = [plain.next_u32(), plain.next_u32()];
                assert_eq!((kept.words(), light.words()), (expected, expected));
            }
            assert!(light.kept.is_none() && kept.kept.is_some());
            assert_eq!(kept.clone().words(), light.words());
            kept.reset();
            assert!(kept.kept.is_none());
            let mut plain = Mt::new(seed);
            assert_eq!(kept.words(), [plain.next_u32(), plain.next_u32()]);
        }
    }
}
