//! Balanced orders of listed options, and when enough of them were asked.

use super::prompt::orders;
use super::question::{Kind, Question};
use super::shares::best;
use super::{Decide, ListOrder};
use sha2::{Digest, Sha256};

/// Shares of the capital that bets in a test risk: each is a test of its own, and their mean is one, too.
const RISKS: [f64; 4] = [0.25, 0.5, 0.75, 0.95];

/// Returns the balanced orders of a question's options in a sequence that is random, but the same in each call: at most
/// [`Decide::permute`] of them, if that is more than one.
pub(super) fn balanced_sequence(question: &Question, count: usize, options: &Decide) -> Vec<Vec<usize>> {
    let most = if options.permute > 1 { options.permute } else { Decide::MOST_ORDERS };
    let of = Decide { permute: most, order: ListOrder::Balanced, ..options.clone() };
    let mut all = orders(question, count, &of);
    if matches!(question.kind, Kind::Choice(_)) {
        let mut hash = Sha256::new();
        hash.update(&question.name);
        let mut texts = question.kind.texts();
        texts.sort_unstable();
        for text in &texts {
            hash.update(text);
        }
        all = shuffle(all, &hash);
    }
    all
}

/// Returns the items in an order that this beginning of a hash draws.
fn shuffle<T>(items: Vec<T>, seed: &Sha256) -> Vec<T> {
    let draw = |at: u64| seed.clone().chain_update(at.to_le_bytes()).finalize();
    let mut drawn: Vec<_> = (0..).map(draw).zip(items).collect();
    drawn.sort_by_key(|(draw, _)| *draw);
    drawn.into_iter().map(|(_, item)| item).collect()
}

/// Returns whether the option that wins in the first of `all` orders, whose probabilities are given, wins in the mean
/// over all: for sure, or with this confidence.
///
/// For each other option a capital of 1 is bet on the winner, order by order. Were the other one at least as good over
/// all orders, the bets would be fair at best, so that the capital would hardly ever grow to `1 / risk`: it does so
/// with a probability of at most `risk`, whenever one looks (Ville's inequality, for draws without replacement). The
/// risk is divided among the other options.
pub(super) fn is_settled(asked: &[Vec<f64>], all: usize, confidence: f64) -> bool {
    let Some(first) = asked.first() else { return all == 0 };
    if asked.len() >= all || first.len() < 2 {
        return true;
    }
    let means: Vec<f64> = (0..first.len()).map(|option| asked.iter().map(|order| order[option]).sum::<f64>()).collect();
    let winner = best(&means);
    let needed = (first.len() - 1) as f64 / (1.0 - confidence);
    (0..first.len()).filter(|&other| other != winner).all(|other| {
        // From 0, where the other one has all of the probability, to 1.
        let leads = asked.iter().map(|order| f64::midpoint(order[winner] - order[other], 1.0));
        grown_capital(leads, all) >= needed
    })
}

/// Returns the capital of bets that the mean of `all` numbers from 0 to 1, of which the first are given, is more than
/// one half: infinite where it is more whatever the others are.
fn grown_capital(leads: impl Iterator<Item = f64>, all: usize) -> f64 {
    let mut capitals = [1.0; RISKS.len()];
    // Of the numbers that are left, if the mean is just one half.
    let (mut sum, mut left) = (all as f64 / 2.0, all as f64);
    for lead in leads {
        let fair = (sum / left).max(f64::MIN_POSITIVE);
        for (capital, risk) in capitals.iter_mut().zip(RISKS) {
            *capital *= 1.0 - risk + risk * lead / fair;
        }
        (sum, left) = (sum - lead, left - 1.0);
        if sum < 0.0 {
            return f64::INFINITY;
        }
    }
    capitals.iter().sum::<f64>() / RISKS.len() as f64
}

/// Returns the least number of orders after which a question of so many options can be settled.
pub(super) fn least_orders(options: usize, all: usize, confidence: f64) -> usize {
    let mut certain = vec![0.0; options];
    certain.first_mut().into_iter().for_each(|first| *first = 1.0);
    let is_enough = |&asked: &usize| is_settled(&vec![certain.clone(); asked], all, confidence);
    (1..all).find(is_enough).unwrap_or(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_change_is_settled() {
        let sure = vec![1.0, 0.0];
        assert!(is_settled(&[], 0, 0.95) && is_settled(&vec![sure.clone(); 4], 4, 1.0));
        assert!(!is_settled(&vec![sure.clone(); 5], 10, 1.0), "the other five may say the opposite");
        assert!(is_settled(&vec![sure.clone(); 6], 10, 1.0));
        assert_eq!(least_orders(2, 10, 1.0), 6);
        assert!(least_orders(2, 40, 0.95) < 8 && least_orders(9, 40, 0.95) < 12);
        assert!(!is_settled(&vec![vec![0.6, 0.4]; 9], 18, 0.95), "close ones are asked on");
    }

    #[test]
    fn a_wrong_winner_is_as_rare_as_promised() {
        const TRIES: usize = 2000;
        // Orders whose mean is a near tie, drawn without replacement: the worst there is.
        for (all, confidence) in [(8, 0.9), (12, 0.95), (20, 0.9), (64, 0.95)] {
            let (mut wrong, mut early) = (0, 0);
            for number in 0..TRIES {
                // The second option wins in the mean, by a little.
                let winners = all / 2;
                let orders = (0..all).map(|at| if at < winners { vec![0.99, 0.01] } else { vec![0.005, 0.995] });
                let orders: Vec<Vec<f64>> =
                    shuffle(orders.collect(), &Sha256::new_with_prefix(format!("{all} {number}")));
                let stop = (1..=all).find(|&asked| is_settled(&orders[..asked], all, confidence)).unwrap();
                let sum = |option: usize| orders[..stop].iter().map(|order| order[option]).sum::<f64>();
                early += usize::from(stop < all);
                wrong += usize::from(sum(0) > sum(1));
            }
            assert!(wrong as f64 <= (1.0 - confidence) * TRIES as f64, "{all}: {wrong} wrong, {early} early");
        }
    }

    #[test]
    fn clear_winners_need_few_orders() {
        let clear: Vec<Vec<f64>> = (0..20).map(|at| vec![0.9, 0.1 * f64::from(at % 2), 0.1]).collect();
        let stop = (1..=20).find(|&asked| is_settled(&clear[..asked], 20, 0.95)).unwrap();
        assert!(stop <= 9, "{stop}");
    }
}
