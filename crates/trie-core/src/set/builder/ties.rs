//! Sorts rows that begin alike.

use super::key::{Extent, Packing};
use super::sequences::Source;

/// Fewer rows than this are compared.
pub(super) const FEW_IN_RUN: usize = 32;
/// Rows that are still together after so many keys are compared: nothing here recurses deeply.
pub(super) const MOST_ROUNDS: u32 = 16;

/// Sorts rows that share their first `from` tokens; equal ones by number.
pub(super) fn sort_from<S: Source>(source: &S, rows: &mut [u32], mut from: usize, rounds: u32) {
    let tail = |row: u32, from: usize| source.row(row as usize).get(from..).unwrap_or_default();
    if rows.len() < FEW_IN_RUN || rounds == 0 {
        rows.sort_unstable_by(|&a, &b| tail(a, from).cmp(tail(b, from)).then(a.cmp(&b)));
        return;
    }
    let row_bits = rows.iter().max().map_or(0, |&row| bits_for(row as usize + 1));
    let packing = loop {
        let mut extent = Extent::NOTHING;
        for &row in &*rows {
            extent.add(source.row(row as usize), from);
        }
        let longest = extent.longest;
        let packing = Packing::new(extent, from, (u64::BITS - row_bits).min(u64::BITS - 1));
        if packing.bits > 0 || packing.end >= longest {
            break packing;
        }
        // All rows go on alike.
        from = packing.end;
    };
    let mut entries: Vec<u64> =
        rows.iter().map(|&row| packing.key(tail(row, from)) << row_bits | u64::from(row)).collect();
    entries.sort_unstable();
    let mask = (1 << row_bits) - 1;
    for (row, entry) in rows.iter_mut().zip(&entries) {
        *row = (entry & mask) as u32;
    }
    let mut left = rows;
    for run in entries.chunk_by(|a, b| a >> row_bits == b >> row_bits) {
        let (rows, others) = left.split_at_mut(run.len());
        if rows.len() > 1 && !packing.is_whole(run[0] >> row_bits) {
            sort_from(source, rows, packing.end, rounds - 1);
        }
        left = others;
    }
}

/// Bits of the largest of so many row numbers.
pub(super) fn bits_for(rows: usize) -> u32 {
    usize::BITS - rows.saturating_sub(1).leading_zeros()
}
