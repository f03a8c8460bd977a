//! Attention of a few adjacent rows over the block table of their sequence: one schedule for
//! prefill, chunks and decode.
//!
//! The keys are walked in splits of `SPLIT` absolute positions. For each query a split gives its
//! maximum, its sum (lane = position mod 16) and its weighted values (positions ascending); splits
//! are merged in ascending order (the rescaling of FlashAttention, Dao et al., 2022). Queries that
//! share a KV head go side by side, each in its own order: a position that one of them does not see
//! enters its scores as `-inf`, whose exponential is exactly 0, and its values not at all.

mod queries;

use std::ops::{Range, RangeInclusive};

use crate::batch::first_seen;
use crate::isa::kernel;
use crate::lanes::{prefetch, Block, Lanes, Portable, CANONICAL_NAN, LANES};
#[cfg(target_arch = "x86_64")]
use crate::lanes::{Avx2, Avx512};
use crate::math::exp;
use crate::memory::floats;

use queries::attend_queries;

/// Positions in a split; a multiple of 16.
pub const SPLIT: usize = 256;

/// What some adjacent rows of a sequence see in one layer, through one KV head.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// Query heads after RoPE, padded with zeros to whole blocks, from the first row's first head
    /// of this KV head on.
    pub heads: &'a [Block],
    /// Blocks from a row's heads to the next row's.
    pub row_blocks: usize,
    /// Query heads of a row that share this KV head.
    pub group: usize,
    /// Position of the first row.
    pub position: usize,
    pub rows: usize,
    /// How many positions a row sees, itself included; None: all.
    pub window: Option<usize>,
    /// `[slots, kv_heads, head_blocks]`, a head padded with zeros to whole blocks.
    pub keys: &'a [Block],
    pub values: &'a [Block],
    pub kv_heads: usize,
    pub kv_head: usize,
    pub head_blocks: usize,
    /// Blocks of the rows' sequence, by position / block_size.
    pub table: &'a [u32],
    pub block_size: usize,
    /// `1 / sqrt(head_dim)`
    pub scale: f32,
}

/// A partial result: maximum and sum in the first block, then the weighted values.
pub fn partial_blocks(head_blocks: usize) -> usize {
    1 + head_blocks
}

kernel! {
    /// The partial results of split `split` for all queries, row after row. That of a query which
    /// sees nothing of the split means nothing. Keys and values of `next`, a view and a split that
    /// come soon, are asked for on the way; that changes only the speed.
    pub fn attend(
        view: &View<'_>,
        split: usize,
        next: Option<(&View<'_>, usize)>,
        out: &mut [Block],
    ) =
        attend_split::<Portable, 1>, attend_split::<Avx2, 1>, attend_split::<Avx512, 4>;
}

kernel! {
    /// Merges the partial result of the next split into `state`.
    pub fn merge(state: &mut [Block], next: &[Block]) =
        merge_splits::<Portable>, merge_splits::<Avx2>, merge_splits::<Avx512>;
}

/// Writes the head's output: weighted values divided by the sum.
pub fn finish(state: &[Block], out: &mut [f32]) {
    let sum = state[0].0[1];
    for (out, &value) in out.iter_mut().zip(floats(&state[1..])) {
        let y = value / sum;
        *out = if y.is_nan() { CANONICAL_NAN } else { y };
    }
}

impl View<'_> {
    pub fn queries(&self) -> usize {
        self.rows * self.group
    }

    /// Splits that any row sees, ascending.
    pub fn splits(&self) -> RangeInclusive<usize> {
        let first = first_seen(self.position, self.window);
        first / SPLIT..=(self.position + self.rows - 1) / SPLIT
    }

    /// Splits that a query sees, ascending.
    pub fn splits_of(&self, query: usize) -> RangeInclusive<usize> {
        let last = self.position + query / self.group;
        first_seen(last, self.window) / SPLIT..=last / SPLIT
    }

    /// First and last position in a split that a query sees, counted from the split's start.
    #[inline(always)]
    fn seen(&self, query: usize, split: usize) -> Option<(usize, usize)> {
        let (begin, last) = (split * SPLIT, self.position + query / self.group);
        let low = first_seen(last, self.window).max(begin);
        let high = last.min(begin + SPLIT - 1);
        (low <= high).then(|| (low - begin, high - begin))
    }

    #[inline(always)]
    fn query(&self, query: usize) -> &[Block] {
        let start = query / self.group * self.row_blocks + query % self.group * self.head_blocks;
        &self.heads[start..][..self.head_blocks]
    }

    /// Where the keys and values of a split lie.
    #[inline(always)]
    fn locate(&self, split: usize) -> Located {
        let begin = split * SPLIT;
        let low = first_seen(self.position, self.window).max(begin) - begin;
        let high = (self.position + self.rows - 1).min(begin + SPLIT - 1) - begin;
        let mut at = [0; SPLIT];
        let stride = self.kv_heads * self.head_blocks;
        let mut place = low;
        while place <= high {
            let (page, offset) = (
                (begin + place) / self.block_size,
                (begin + place) % self.block_size,
            );
            let slot = self.table[page] as usize * self.block_size + offset;
            let count = (self.block_size - offset).min(high + 1 - place);
            for (i, at) in at[place..][..count].iter_mut().enumerate() {
                *at = (slot + i) * stride + self.kv_head * self.head_blocks;
            }
            place += count;
        }
        // Seen ones stand in for those that share their lanes, so that nothing else is read.
        let (first, last) = (at[low], at[high]);
        at[low / LANES * LANES..low].fill(first);
        at[high + 1..(high + 1).next_multiple_of(LANES)].fill(last);
        Located { at, low, high }
    }
}

/// Where the positions of a split lie, in blocks, and the first and the last one that are seen,
/// counted from its start.
struct Located {
    at: [usize; SPLIT],
    low: usize,
    high: usize,
}

/// Keys and values that are needed next, asked for position by position on the way through others:
/// many requests at once would hold up the loads of what is needed now.
#[derive(Clone, Copy)]
struct Ahead<'a> {
    keys: &'a [Block],
    values: &'a [Block],
    /// Where they lie.
    at: &'a [usize],
    /// Positions asked for at each position that is computed.
    each: usize,
}

impl<'a> Ahead<'a> {
    const NOTHING: Self = Self {
        keys: &[],
        values: &[],
        at: &[],
        each: 0,
    };

    /// What `view` sees of a split that lies at `to`, on the way through what lies at `from`.
    #[inline(always)]
    fn new(view: &View<'a>, to: &'a Located, from: &Located) -> Self {
        let at = &to.at[to.low..=to.high];
        Self {
            keys: view.keys,
            values: view.values,
            at,
            each: at.len().div_ceil(from.high + 1 - from.low),
        }
    }

    /// Asks for the blocks `blocks` of the keys or values that belong to the positions `places`
    /// of those computed.
    #[inline(always)]
    fn ask(&self, of: &[Block], places: Range<usize>, blocks: Range<usize>) {
        let end = self.at.len().min(places.end * self.each);
        for &at in self.at.get(places.start * self.each..end).unwrap_or(&[]) {
            for block in &of[at..][blocks.clone()] {
                prefetch(block, 0);
            }
        }
    }
}

#[inline(always)]
fn attend_split<L: Lanes, const Q: usize>(
    view: &View<'_>,
    split: usize,
    next: Option<(&View<'_>, usize)>,
    out: &mut [Block],
) {
    let located = view.locate(split);
    let next = next.map(|(view, split)| (view, view.locate(split)));
    let mut ahead = match &next {
        Some((view, to)) => Ahead::new(view, to, &located),
        None => Ahead::NOTHING,
    };
    let mut query = 0;
    while query < view.queries() {
        query += match view.queries() - query {
            1 => attend_queries::<L, 1>(view, &located, split, query, ahead, out),
            _ if Q == 1 => attend_queries::<L, 1>(view, &located, split, query, ahead, out),
            2 => attend_queries::<L, 2>(view, &located, split, query, ahead, out),
            3 => attend_queries::<L, 3>(view, &located, split, query, ahead, out),
            _ => attend_queries::<L, Q>(view, &located, split, query, ahead, out),
        };
        ahead = Ahead::NOTHING;
    }
}

#[inline(always)]
fn merge_splits<L: Lanes>(state: &mut [Block], next: &[Block]) {
    let (old, new) = (state[0].0[0], next[0].0[0]);
    let max = if old < new { new } else { old };
    let mut factors = [0.0; LANES];
    exp(L::splat(old - max)).store(&mut factors);
    let keep = L::splat(factors[0]);
    exp(L::splat(new - max)).store(&mut factors);
    let take = L::splat(factors[0]);
    for (state, next) in state.iter_mut().zip(next) {
        L::load(&state.0)
            .mul(keep)
            .add(L::load(&next.0).mul(take))
            .store(&mut state.0);
    }
    state[0].0[0] = max;
}
