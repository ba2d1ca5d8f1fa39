//! Puts rows in order and finds what neighbours share.
//!
//! Many rows are distributed to buckets by the top bits of a key of several tokens. A bucket is small enough for the
//! first-level cache, and the rest of a key fits into one number with the row's own number. So each bucket needs one
//! sort of plain integers, and tokens are compared only where keys are equal. A small number of rows is sorted by
//! comparing them.

use super::collect::{Collector, Leaves, join};
use super::key::{Extent, FEW_IN_RUN, Packing, bits_for};
use super::sequences::{NameList, Source};
use super::threads::Threads;
use std::ops::Range;

/// Below this many rows, comparing is as fast and takes no counting.
const FEW: usize = 1 << 10;

/// Average number of rows in a bucket, as a power of two, and the largest number of buckets: their ends must stay in
/// the cache.
const BUCKET_BITS: u32 = 5;
const MOST_BUCKET_BITS: u32 = 13;

/// Number of bucket shares for each thread: a thread that is done early takes another share.
const SHARES: usize = 4;

pub(super) fn leaves<S: Source>(source: &S, names: Option<NameList<'_>>, threads: &Threads) -> Vec<Leaves> {
    if source.len() < FEW { vec![by_one_key(source, names)] } else { by_keys(source, names, threads) }
}

/// Sorts by comparison, the simple way.
///
/// All rows are compared by their first two tokens as one number, which decides nearly every comparison, then by
/// tokens.
#[cfg(test)]
pub(super) fn by_comparing<S: Source>(source: &S, names: Option<NameList<'_>>) -> Leaves {
    let key = |row: usize| {
        let tokens = source.row(row);
        // One is added so that "no second token" sorts before every token.
        let part = |at: usize| tokens.get(at).map_or(0, |token| u64::from(token.get()) + 1);
        part(0) << 32 | part(1)
    };
    let mut rows: Vec<(u64, u32)> = (0..source.len()).map(|row| (key(row), row as u32)).collect();
    rows.sort_unstable_by(|a, b| {
        let tokens = |row: u32| source.row(row as usize);
        a.0.cmp(&b.0).then_with(|| tokens(a.1).cmp(tokens(b.1))).then(a.1.cmp(&b.1))
    });
    let mut collector = Collector::new(source, names, rows.len());
    for (_, row) in rows {
        collector.push(row, 0);
    }
    collector.leaves
}

/// The same by keys, without buckets.
pub(super) fn by_one_key<S: Source>(source: &S, names: Option<NameList<'_>>) -> Leaves {
    let mut extent = Extent::NOTHING;
    (0..source.len()).for_each(|row| extent.add(source.row(row), 0));
    let row_bits = bits_for(source.len());
    let packing = Packing::new(extent, 0, (u64::BITS - row_bits).min(u64::BITS - 1));
    let mut entries: Vec<u64> =
        (0..source.len()).map(|row| packing.key(source.row(row)) << row_bits | row as u64).collect();
    entries.sort_unstable();
    let mut collector = Collector::new(source, names, entries.len());
    collect_entries(&packing, row_bits, 0, &entries, &mut collector);
    collector.leaves
}

/// The same by keys, in parts on several threads.
pub(super) fn by_keys<S: Source>(source: &S, names: Option<NameList<'_>>, threads: &Threads) -> Vec<Leaves> {
    let rows = source.len();
    let cut = |part: usize| rows * part / threads.count();
    let parts: Vec<Range<usize>> = (0..threads.count()).map(|part| cut(part)..cut(part + 1)).collect();
    let extents = threads.map_parts(parts.clone(), |part| {
        let mut extent = Extent::NOTHING;
        part.for_each(|row| extent.add(source.row(row), 0));
        extent
    });
    let extent = extents.iter().skip(1).fold(extents[0].clone(), |mut all, extent| {
        all.merge(extent);
        all
    });

    let common = extent.narrow(&sample(source));
    let keys = Keys::new(rows, |room| Packing::of_common(&common, 0, room));
    let counts = threads.map_parts(parts.clone(), |part| keys.count(source, part));
    let collector = |rows: usize| Collector::new(source, names, rows);
    if Count::ascending(&counts) {
        let parts = keys.cut_between_keys(source, &parts);
        let parts = parts.into_iter().map(|part| (collector(part.len()), part)).collect();
        return join(source, threads.map_parts(parts, |(collector, part)| keys.collect_ascending(part, collector)));
    }
    let mut entries = vec![0; rows];
    let mut left = &mut entries[..];
    let parts = parts.into_iter().zip(&counts);
    let parts =
        parts.map(|(part, count)| (left.split_off_mut(..part.len()).unwrap_or_default(), part, count)).collect();
    let scattered = threads.map_parts(parts, |(entries, part, count)| keys.scatter(source, part, &count.rows, entries));
    let shares = if threads.count() == 1 { 1 } else { threads.count() * SHARES };
    let shares = Buckets::shares(&scattered, shares, rows);
    let shares = shares.into_iter().map(|(buckets, rows)| (collector(rows), buckets)).collect();
    join(source, threads.map_parts(shares, |(collector, buckets)| keys.collect_buckets(&scattered, buckets, collector)))
}

/// Estimates the range of tokens from rows sampled everywhere.
fn sample<S: Source>(source: &S) -> Extent {
    const ROWS: usize = 1 << 10;
    // No order that the rows may have repeats with this.
    const STEP: usize = 0x9E37_79B9;
    let mut extent = Extent::NOTHING;
    (1..=ROWS).for_each(|nth| extent.add(source.row(nth.wrapping_mul(STEP) % source.len()), 0));
    extent
}

/// A key is split: its top bits choose the bucket, the rest stands over the row's number in an entry of the bucket.
struct Keys {
    packing: Packing,
    /// Bits of a key below those that choose the bucket.
    rest_bits: u32,
    row_bits: u32,
    buckets: usize,
}

/// The rows of each bucket and whether they stood in order already.
struct Count {
    rows: Vec<u32>,
    /// The keys of the first and the last row, where all between are ascending.
    ascending: Option<(u64, u64)>,
}

impl Keys {
    fn new(rows: usize, packing: impl FnOnce(u32) -> Packing) -> Self {
        let row_bits = bits_for(rows);
        let bucket_bits = row_bits.saturating_sub(BUCKET_BITS).min(MOST_BUCKET_BITS);
        let packing = packing((u64::BITS - row_bits + bucket_bits).min(u64::BITS - 1));
        let bucket_bits = bucket_bits.min(packing.bits);
        Self { rest_bits: packing.bits - bucket_bits, row_bits, buckets: 1 << bucket_bits, packing }
    }

    fn count<S: Source>(&self, source: &S, part: Range<usize>) -> Count {
        let mut rows = vec![0; self.buckets];
        let key = |row: usize| self.packing.key(source.row(row));
        let first = part.clone().next().map(key);
        let (mut last, mut ascending) = (0, true);
        for row in part {
            let key = key(row);
            rows[(key >> self.rest_bits) as usize] += 1;
            ascending &= last <= key;
            last = key;
        }
        Count { rows, ascending: first.filter(|_| ascending).map(|first| (first, last)) }
    }

    /// Distributes the rows of a part to buckets of known sizes, within one slice of entries.
    fn scatter<'e, S: Source>(
        &self,
        source: &S,
        part: Range<usize>,
        counts: &[u32],
        entries: &'e mut [u64],
    ) -> Buckets<'e> {
        let mut next: Vec<u32> =
            counts.iter().scan(0, |end, count| Some(std::mem::replace(end, *end + count))).collect();
        let rest = (1 << self.rest_bits) - 1;
        for row in part {
            let key = self.packing.key(source.row(row));
            let next = &mut next[(key >> self.rest_bits) as usize];
            entries[*next as usize] = (key & rest) << self.row_bits | row as u64;
            *next += 1;
        }
        Buckets { ends: next, entries }
    }

    fn collect_buckets<S: Source>(
        &self,
        scattered: &[Buckets<'_>],
        buckets: Range<usize>,
        mut collector: Collector<'_, S>,
    ) -> Leaves {
        let mut entries = Vec::new();
        for bucket in buckets {
            let parts = scattered.iter().map(|part| part.bucket(bucket));
            gather(parts, self.rest_bits + self.row_bits, &mut entries);
            self.collect_bucket(bucket, &entries, &mut collector);
        }
        collector.leaves
    }

    fn collect_bucket<S: Source>(&self, bucket: usize, entries: &[u64], collector: &mut Collector<'_, S>) {
        let mask = (1 << self.row_bits) - 1;
        let key = |entry: u64| (bucket as u64) << self.rest_bits | entry >> self.row_bits;
        let row = |entry: &u64| (entry & mask) as u32;
        if !self.packing.is_always_whole() {
            collector.touch(entries.iter().filter(|&&entry| !self.packing.is_whole(key(entry))).map(row));
        }
        collect_entries(&self.packing, self.row_bits, (bucket as u64) << self.rest_bits, entries, collector);
    }

    fn collect_ascending<S: Source>(&self, part: Range<usize>, mut collector: Collector<'_, S>) -> Leaves {
        let source = collector.source;
        let mut begin = part.start;
        let mut rows = part.map(|row| (row, self.packing.key(source.row(row)))).peekable();
        while let Some((row, key)) = rows.next() {
            if rows.peek().is_none_or(|&(_, next)| next != key) {
                let end = row + 1;
                collector.push_run(&self.packing, key, (begin..end).map(|row| row as u32));
                begin = end;
            }
        }
        collector.leaves
    }

    /// Moves the start of each part past the rows that have the same key as the row before it, because equal keys
    /// belong together.
    fn cut_between_keys<S: Source>(&self, source: &S, parts: &[Range<usize>]) -> Vec<Range<usize>> {
        let key = |row| self.packing.key(source.row(row));
        let move_up = |mut cut: usize| {
            while cut > 0 && cut < source.len() && key(cut) == key(cut - 1) {
                cut += 1;
            }
            cut
        };
        parts.iter().map(|part| move_up(part.start)..move_up(part.end)).collect()
    }
}

/// Takes sorted entries: each holds the distance of a key from `base` in its high bits, and the number of its row
/// below.
fn collect_entries<S: Source>(
    packing: &Packing,
    row_bits: u32,
    base: u64,
    entries: &[u64],
    collector: &mut Collector<'_, S>,
) {
    let row = |entry: &u64| (entry & ((1 << row_bits) - 1)) as u32;
    for run in entries.chunk_by(|a, b| a >> row_bits == b >> row_bits) {
        collector.push_run(packing, base | run[0] >> row_bits, run.iter().map(row));
    }
}

impl Count {
    fn ascending(counts: &[Self]) -> bool {
        let mut last = 0;
        counts.iter().all(|count| match count.ascending {
            Some((first, end)) => std::mem::replace(&mut last, end) <= first,
            None => count.rows.iter().all(|&rows| rows == 0),
        })
    }
}

/// Copies the entries of one bucket from several parts into `sorted`, ascending. Entries have `bits` bits.
///
/// A bucket lies in the first-level cache, and its entries are usually spread evenly. One more round by their top bits
/// then leaves little work.
pub(super) fn gather<'a>(parts: impl Iterator<Item = &'a [u64]> + Clone, bits: u32, sorted: &mut Vec<u64>) {
    /// Largest number of groups of that round, and largest size of a group, above which the entries are not spread
    /// evenly.
    const GROUP_BITS: u32 = 8;
    const MOST_IN_GROUP: u32 = 16;
    let rows: usize = parts.clone().map(<[u64]>::len).sum();
    let group_bits = (rows | 1).ilog2().min(GROUP_BITS - 1) + 1;
    let mut ends = [0u32; 1 << GROUP_BITS];
    let ends = &mut ends[..1 << group_bits];
    let (shift, mask) = (bits.saturating_sub(group_bits), ends.len() - 1);
    let group = |entry: u64| (entry >> shift) as usize & mask;
    parts.clone().flatten().for_each(|&entry| ends[group(entry)] += 1);
    sorted.clear();
    if rows < FEW_IN_RUN || ends.iter().fold(0, |most, &count| most.max(count)) > MOST_IN_GROUP {
        parts.for_each(|part| sorted.extend_from_slice(part));
        sorted.sort_unstable();
        return;
    }
    let mut end = 0;
    for next in &mut *ends {
        end += std::mem::replace(next, end);
    }
    sorted.resize(rows, 0);
    parts.flatten().for_each(|&entry| {
        let next = &mut ends[group(entry)];
        sorted[*next as usize] = entry;
        *next += 1;
    });
    // Only the entries of one group may be out of order.
    for at in 1..rows {
        let (entry, mut to) = (sorted[at], at);
        while to > 0 && sorted[to - 1] > entry {
            sorted[to] = sorted[to - 1];
            to -= 1;
        }
        sorted[to] = entry;
    }
}

/// One part of the rows, in buckets.
struct Buckets<'e> {
    entries: &'e [u64],
    ends: Vec<u32>,
}

impl Buckets<'_> {
    fn bucket(&self, bucket: usize) -> &[u64] {
        &self.entries[self.begin(bucket)..self.ends[bucket] as usize]
    }

    fn begin(&self, bucket: usize) -> usize {
        bucket.checked_sub(1).map_or(0, |before| self.ends[before] as usize)
    }

    /// Neighbouring buckets for each share, with about equally many rows, and the number of these rows.
    fn shares(parts: &[Self], shares: usize, rows: usize) -> Vec<(Range<usize>, usize)> {
        let buckets = parts[0].ends.len();
        let before = |bucket: usize| parts.iter().map(|part| part.begin(bucket)).sum::<usize>();
        let all: Vec<usize> = (0..buckets).collect();
        let cut = |share: usize| match share {
            0 => (0, 0),
            _ if share == shares => (buckets, rows),
            _ => {
                let bucket = all.partition_point(|&bucket| before(bucket) < rows * share / shares);
                (bucket, if bucket == buckets { rows } else { before(bucket) })
            }
        };
        (0..shares).map(cut).zip((1..=shares).map(cut)).map(|(a, b)| (a.0..b.0, b.1 - a.1)).collect()
    }
}
