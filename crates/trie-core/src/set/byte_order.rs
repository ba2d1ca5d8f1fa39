//! Tokens in the order of their bytes.

use crate::set::ids::TokenId;

/// Bits of the number of a row, below those of some of its bytes.
const NUMBER: u32 = 24;
/// Bytes beside the number, and bytes that choose a bucket before the first sort.
const BYTES: usize = 5;
const BUCKET: usize = 2;
/// Rows that begin alike and are compared whole.
const FEW: usize = 6;
/// Equal bytes after which rows are compared whole, however many there are.
const DEEPEST: usize = 32;

/// Sorts tokens by their bytes, equal ones by their id, as `sort_unstable` does.
///
/// A thousand tokens or more are put into buckets by their first two bytes. In a bucket the next five bytes and the
/// number of the row are one integer, so a bucket is one sort of integers; rows that are still equal go on with their
/// next five bytes.
pub fn sort_by_bytes(rows: &mut Vec<(&[u8], TokenId)>) {
    if rows.len() < 1024 || rows.len() > 1 << NUMBER {
        rows.sort_unstable();
        return;
    }
    let bucket = |head: u64| (head >> (64 - 8 * BUCKET)) as usize;
    let mut ends = vec![0u32; 1 << (8 * BUCKET)];
    for (bytes, _) in &*rows {
        ends[bucket(head(bytes))] += 1;
    }
    let mut before = 0;
    for end in &mut ends {
        before += std::mem::replace(end, before);
    }
    let mut order = vec![0; rows.len()];
    for (number, (bytes, _)) in rows.iter().enumerate() {
        let head = head(bytes);
        let end = &mut ends[bucket(head)];
        order[*end as usize] = (head << (8 * BUCKET)) >> NUMBER << NUMBER | number as u64;
        *end += 1;
    }
    let mut begin = 0;
    for end in ends.into_iter().map(|end| end as usize) {
        sort_behind(&mut order[begin..end], rows, BUCKET + BYTES);
        begin = end;
    }
    *rows = order.into_iter().map(|packed| row(rows, packed)).collect();
}

fn row<'b>(rows: &[(&'b [u8], TokenId)], packed: u64) -> (&'b [u8], TokenId) {
    rows[(packed & ((1 << NUMBER) - 1)) as usize]
}

/// Sorts rows by the bytes that they are packed with, and then by those from `depth` on.
fn sort_behind(order: &mut [u64], rows: &[(&[u8], TokenId)], depth: usize) {
    order.sort_unstable();
    for alike in order.chunk_by_mut(|one, other| one >> NUMBER == other >> NUMBER) {
        // A missing byte counts as 0 there, so rows that are alike to the end may differ.
        if alike.len() <= FEW || depth > DEEPEST {
            alike.sort_unstable_by(|&one, &other| row(rows, one).cmp(&row(rows, other)));
            continue;
        }
        for packed in &mut *alike {
            let behind = head(row(rows, *packed).0.get(depth..).unwrap_or_default());
            *packed = behind >> NUMBER << NUMBER | *packed & ((1 << NUMBER) - 1);
        }
        sort_behind(alike, rows, depth + BYTES);
    }
}

/// The first eight bytes as a number that sorts as they do; those that are missing are 0.
#[inline]
fn head(bytes: &[u8]) -> u64 {
    if let Some(&head) = bytes.first_chunk() {
        return u64::from_be_bytes(head);
    }
    // The first and the last half of fewer may overlap, with the same bits.
    if let (Some(&first), Some(&last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        return u64::from(u32::from_be_bytes(first)) << 32
            | u64::from(u32::from_be_bytes(last)) << (8 * (8 - bytes.len()));
    }
    bytes.iter().zip([56, 48, 40]).fold(0, |head, (&byte, place)| head | u64::from(byte) << place)
}

/// Returns the number of items with which both of two slices begin.
#[inline]
pub fn shared_length<T: PartialEq>(one: &[T], other: &[T]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

/// Returns the length of the common prefix of two texts: [`shared_length`], eight bytes at a time.
#[inline]
pub fn shared_prefix(one: &[u8], other: &[u8]) -> usize {
    let shorter = one.len().min(other.len());
    let mut at = 0;
    while at < shorter {
        let differ = head(&one[at..]) ^ head(&other[at..]);
        if differ != 0 {
            return shorter.min(at + differ.leading_zeros() as usize / 8);
        }
        at += 8;
    }
    shorter
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Texts that often begin alike, with zeros, and some of them long.
    fn texts() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let few = prop::collection::vec(prop::sample::select(vec![0u8, b' ', b'a', 0xE2, 0xFF]), 0..12);
        let long = prop::collection::vec(prop::sample::select(vec![0u8, b'a']), 30..60);
        let alike = few.clone().prop_map(|text| [&[b' '; 40], &text[..]].concat());
        prop::collection::vec(prop_oneof![8 => few, 1 => long, 1 => alike], 900..2500)
    }

    proptest! {
        #[test]
        fn sorts_as_comparisons_do(texts in texts()) {
            let ids = (0..texts.len() as u32).rev().map(|id| TokenId::new(id).unwrap());
            let mut rows: Vec<(&[u8], TokenId)> = texts.iter().map(Vec::as_slice).zip(ids).collect();
            let mut expected = rows.clone();
            expected.sort_unstable();
            sort_by_bytes(&mut rows);
            prop_assert!(rows == expected);
            for pair in rows.windows(2) {
                let (one, other) = (pair[0].0, pair[1].0);
                let common = shared_length(one, other);
                prop_assert_eq!(shared_prefix(one, other), common);
            }
        }
    }
}
