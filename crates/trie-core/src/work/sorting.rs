//! Sorting of what is sorted seldom, by code that all types share.
//!
//! The compiler makes a copy of the standard library's sort for every type and every order, of some five kilobytes: too
//! much for each list that is sorted once, where pages download it.

use std::cmp::Ordering;

/// Sorts by an order. Equal ones stay as they stand.
///
/// ```
/// let mut words = ["three", "one", "two"];
/// trie_core::work::sorting::sort_by(&mut words, |one, other| one.len().cmp(&other.len()));
/// assert_eq!(words, ["one", "two", "three"]);
/// ```
pub fn sort_by<T>(items: &mut [T], mut order: impl FnMut(&T, &T) -> Ordering) {
    let mut from = places(items.len(), &mut |one, other| order(&items[one as usize], &items[other as usize]));
    for first in 0..items.len() {
        // Round by round: what comes here goes, and leaves its place to the next.
        let mut at = first;
        loop {
            let next = std::mem::replace(&mut from[at], at as u32) as usize;
            if next == first {
                break;
            }
            items.swap(at, next);
            at = next;
        }
    }
}

/// Sorts by what is made of each. Equal ones stay as they stand.
pub fn sort_by_key<T, K: Ord>(items: &mut [T], key: impl Fn(&T) -> K) {
    sort_by(items, |one, other| key(one).cmp(&key(other)));
}

/// Sorts them. Equal ones stay as they stand.
pub fn sort<T: Ord>(items: &mut [T]) {
    sort_by(items, T::cmp);
}

/// The numbers below `count` in an order.
pub fn places(count: usize, order: &mut dyn FnMut(u32, u32) -> Ordering) -> Vec<u32> {
    let mut places: Vec<u32> = (0..count as u32).collect();
    places.sort_by(|&one, &other| order(one, other));
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_the_standard_library_does() {
        for count in [0usize, 1, 2, 3, 10, 100, 1000] {
            // Many are equal.
            let items: Vec<(usize, usize)> = (0..count).map(|at| (at * 7919 % (count / 3 + 1), at)).collect();
            let mut expected = items.clone();
            expected.sort_by_key(|&(key, _)| key);
            let mut sorted = items.clone();
            sort_by_key(&mut sorted, |&(key, _)| key);
            assert_eq!(sorted, expected);
            sorted.reverse();
            sort(&mut sorted);
            assert_eq!(sorted, expected);
        }
    }
}
