//! Attention of one row over the block table of its sequence: one schedule for prefill, chunks
//! and decode.
//!
//! The keys are walked in splits of `SPLIT` absolute positions. A split gives its maximum, its sum
//! (lane = position mod 16) and its weighted values (positions ascending); splits are merged in
//! ascending order (the rescaling of FlashAttention, Dao et al., 2022). Positions that the row does
//! not see are not read: they enter as `-inf`, whose exponential is exactly 0.

use crate::isa::kernel;
use crate::lanes::{lane_max, Block, Lanes, Portable, CANONICAL_NAN, LANES};
#[cfg(target_arch = "x86_64")]
use crate::lanes::{Avx2, Avx512};
use crate::math::exp;
use crate::memory::floats;

/// Positions in a split; a multiple of 16.
pub const SPLIT: usize = 256;

/// What one row of one layer sees.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// `[slots, kv_heads, head_blocks]`, a head padded with zeros to whole blocks.
    pub keys: &'a [Block],
    pub values: &'a [Block],
    pub kv_heads: usize,
    pub head_blocks: usize,
    /// Blocks of the row's sequence, by position / block_size.
    pub table: &'a [u32],
    pub block_size: usize,
    /// First and last position that the row sees.
    pub first: usize,
    pub last: usize,
    /// `1 / sqrt(head_dim)`
    pub scale: f32,
}

/// A partial result: maximum and sum in the first block, then the weighted values.
pub fn partial_blocks(head_blocks: usize) -> usize {
    1 + head_blocks
}

kernel! {
    /// The partial result of split `split` for one query head (padded to whole blocks).
    pub fn attend(view: &View<'_>, kv_head: usize, query: &[Block], split: usize,
        out: &mut [Block]) = attend_split::<Portable>, attend_split::<Avx2>,
        attend_split::<Avx512>;
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
    /// Splits that the row sees, ascending.
    pub fn splits(&self) -> std::ops::RangeInclusive<usize> {
        self.first / SPLIT..=self.last / SPLIT
    }

    /// The blocks of `kv_head` at a position, among `keys` or `values`.
    #[inline(always)]
    fn head<'b>(&self, kv: &'b [Block], kv_head: usize, position: usize) -> &'b [Block] {
        let block = self.table[position / self.block_size] as usize;
        let slot = block * self.block_size + position % self.block_size;
        &kv[(slot * self.kv_heads + kv_head) * self.head_blocks..][..self.head_blocks]
    }
}

#[inline(always)]
fn attend_split<L: Lanes>(
    view: &View<'_>,
    kv_head: usize,
    query: &[Block],
    split: usize,
    out: &mut [Block],
) {
    let begin = split * SPLIT;
    let low = view.first.max(begin);
    let high = view.last.min(begin + SPLIT - 1);
    let mut weights = [Block::ZERO; SPLIT / LANES];
    let groups = (low - begin) / LANES..=(high - begin) / LANES;
    let mut max = L::splat(f32::NEG_INFINITY);
    for group in groups.clone() {
        let scores = &mut weights[group].0;
        let position = begin + group * LANES;
        score_group::<L>(view, kv_head, query, position, low..=high, scores);
        max = max.max(L::load(scores));
    }
    let max = lane_max(max);
    let mut sum = L::splat(0.0);
    for group in groups {
        let weight = exp(L::load(&weights[group].0).sub(L::splat(max)));
        weight.store(&mut weights[group].0);
        sum = sum.add(weight);
    }
    (out[0].0[0], out[0].0[1]) = (max, sum.sum());
    let weights = &floats(&weights)[..high + 1 - begin];
    let (quads, rest) = out[1..].as_chunks_mut::<4>();
    for (i, out) in quads.iter_mut().enumerate() {
        weigh::<L, 4>(view, kv_head, weights, begin, low, i * 4, out);
    }
    for (i, out) in rest.iter_mut().enumerate() {
        let block = quads.len() * 4 + i;
        weigh::<L, 1>(
            view,
            kv_head,
            weights,
            begin,
            low,
            block,
            std::array::from_mut(out),
        );
    }
}

/// Scaled dot products of a query with the sixteen keys from `position` on; `-inf` for positions
/// outside of `seen` (a seen key stands in for them, so that nothing else is read).
#[inline(always)]
fn score_group<L: Lanes>(
    view: &View<'_>,
    kv_head: usize,
    query: &[Block],
    position: usize,
    seen: std::ops::RangeInclusive<usize>,
    scores: &mut [f32; LANES],
) {
    for quad in 0..LANES / 4 {
        let keys: [&[Block]; 4] = std::array::from_fn(|i| {
            let position = (position + quad * 4 + i).clamp(*seen.start(), *seen.end());
            view.head(view.keys, kv_head, position)
        });
        let n = view.head_blocks;
        let (query, keys) = (&query[..n], keys.map(|key| &key[..n]));
        let mut sums = [L::splat(0.0); 4];
        for block in 0..n {
            let q = L::load(&query[block].0);
            for i in 0..4 {
                sums[i] = sums[i].add(q.mul(L::load(&keys[i][block].0)));
            }
        }
        scores[quad * 4..][..4].copy_from_slice(&L::sum4(sums));
    }
    for (i, score) in scores.iter_mut().enumerate() {
        let scaled = *score * view.scale;
        *score = if seen.contains(&(position + i)) {
            scaled
        } else {
            f32::NEG_INFINITY
        };
    }
}

/// Sum over positions `low..` of weight times value, for `N` blocks of the head from `block` on.
#[inline(always)]
fn weigh<L: Lanes, const N: usize>(
    view: &View<'_>,
    kv_head: usize,
    weights: &[f32],
    begin: usize,
    low: usize,
    block: usize,
    out: &mut [Block; N],
) {
    let mut sums = [L::splat(0.0); N];
    for (i, &weight) in weights.iter().enumerate().skip(low - begin) {
        let value = &view.head(view.values, kv_head, begin + i)[block..][..N];
        let weight = L::splat(weight);
        for (sum, value) in sums.iter_mut().zip(value) {
            *sum = sum.add(weight.mul(L::load(&value.0)));
        }
    }
    for (out, sum) in out.iter_mut().zip(sums) {
        sum.store(&mut out.0);
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
