//! The arithmetic of one split for `Q` queries side by side: keys and values are loaded once.

use crate::lanes::{lane_max, Block, Lanes, IOTA, LANES};
use crate::math::exp;
use crate::memory::floats;

use super::{partial_blocks, Ahead, Located, View, SPLIT};

/// Of one query, by position in the split: scores, then weights.
type Weights = [Block; SPLIT / LANES];

/// First and last position of the split that a query sees.
type Seen = (usize, usize);

/// `Q` queries from `query` on; returns `Q`.
#[inline(always)]
pub(super) fn attend_queries<L: Lanes, const Q: usize>(
    view: &View<'_>,
    located: &Located,
    split: usize,
    query: usize,
    ahead: Ahead<'_>,
    out: &mut [Block],
) -> usize {
    let queries: [usize; Q] = std::array::from_fn(|q| query + q);
    let nothing = (located.low, located.low);
    let seen = queries.map(|query| view.seen(query, split).unwrap_or(nothing));
    let low = seen.iter().fold(SPLIT, |low, seen| low.min(seen.0));
    let high = seen.iter().fold(0, |high, seen| high.max(seen.1));
    let mut weights = [[Block::ZERO; SPLIT / LANES]; Q];
    for group in low / LANES..=high / LANES {
        score::<L, Q>(view, located, queries, group, ahead, &mut weights);
    }
    let size = partial_blocks(view.head_blocks);
    for q in 0..Q {
        let (max, sum) = soften::<L>(&mut weights[q], seen[q], view.scale);
        let first = &mut out[queries[q] * size].0;
        (first[0], first[1]) = (max, sum);
    }
    let mut block = 0;
    while block < view.head_blocks {
        let out = &mut out[1 + block..];
        if view.head_blocks - block >= 4 {
            let sums = weigh::<L, Q, 4>(view, located, &weights, seen, block, ahead);
            store(sums, queries.map(|query| query * size), out);
            block += 4;
        } else {
            let sums = weigh::<L, Q, 1>(view, located, &weights, seen, block, ahead);
            store(sums, queries.map(|query| query * size), out);
            block += 1;
        }
    }
    Q
}

/// Dot products of the queries with sixteen keys.
#[inline(always)]
fn score<L: Lanes, const Q: usize>(
    view: &View<'_>,
    located: &Located,
    queries: [usize; Q],
    group: usize,
    ahead: Ahead<'_>,
    scores: &mut [Weights; Q],
) {
    let n = view.head_blocks;
    let queries = queries.map(|query| &view.query(query)[..n]);
    for quad in 0..LANES / 4 {
        let place = (group - located.low / LANES) * LANES + quad * 4;
        ahead.ask(ahead.keys, place..place + 4, 0..n);
        let keys: [&[Block]; 4] =
            std::array::from_fn(|i| &view.keys[located.at[group * LANES + quad * 4 + i]..][..n]);
        let mut sums = [[L::splat(0.0); 4]; Q];
        for block in 0..n {
            let keys = keys.map(|key| L::load(&key[block].0));
            for q in 0..Q {
                let query = L::load(&queries[q][block].0);
                for i in 0..4 {
                    sums[q][i] = sums[q][i].add(query.mul(keys[i]));
                }
            }
        }
        let mut totals = [[0.0; 4]; Q];
        if Q > 2 {
            let mut lanes = [0.0; LANES];
            L::sum16(std::array::from_fn(|q| sums[q.min(Q - 1)])).store(&mut lanes);
            for (totals, lanes) in totals.iter_mut().zip(lanes.chunks_exact(4)) {
                totals.copy_from_slice(lanes);
            }
        } else {
            totals = sums.map(L::sum4);
        }
        for (scores, totals) in scores.iter_mut().zip(totals) {
            scores[group].0[quad * 4..][..4].copy_from_slice(&totals);
        }
    }
}

/// Scales the scores and turns them into weights, relative to their maximum; maximum and sum.
#[inline(always)]
fn soften<L: Lanes>(weights: &mut Weights, (low, high): Seen, scale: f32) -> (f32, f32) {
    let groups = low / LANES..=high / LANES;
    let mut max = L::splat(f32::NEG_INFINITY);
    for group in groups.clone() {
        let mut scores = L::load(&weights[group].0).mul(L::splat(scale));
        if group * LANES < low || high < group * LANES + LANES - 1 {
            let place = L::load(&IOTA).add(L::splat((group * LANES) as f32));
            let unseen = L::splat(f32::NEG_INFINITY);
            scores = L::select_lt(place, L::splat(low as f32), unseen, scores);
            scores = L::select_lt(L::splat(high as f32), place, unseen, scores);
        }
        scores.store(&mut weights[group].0);
        max = max.max(scores);
    }
    let max = lane_max(max);
    let mut sum = L::splat(0.0);
    for group in groups {
        let weight = exp(L::load(&weights[group].0).sub(L::splat(max)));
        weight.store(&mut weights[group].0);
        sum = sum.add(weight);
    }
    (max, sum.sum())
}

/// Sums over the positions of weight times value, for `N` blocks of the head from `block` on.
#[inline(always)]
fn weigh<L: Lanes, const Q: usize, const N: usize>(
    view: &View<'_>,
    located: &Located,
    weights: &[Weights; Q],
    seen: [Seen; Q],
    block: usize,
    ahead: Ahead<'_>,
) -> [[L; N]; Q] {
    let (mut some, mut all) = (seen[0], seen[0]);
    for (low, high) in seen {
        some = (some.0.min(low), some.1.max(high));
        all = (all.0.max(low), all.1.min(high));
    }
    let mut sums = [[L::splat(0.0); N]; Q];
    for place in some.0..=some.1 {
        let values = &view.values[located.at[place] + block..][..N];
        let done = place - some.0;
        ahead.ask(ahead.values, done..done + 1, block..block + N);
        for q in 0..Q {
            let (low, high) = seen[q];
            // The first comparisons are the same for all queries.
            if (all.0 <= place && place <= all.1) || (low <= place && place <= high) {
                let weight = L::splat(floats(&weights[q])[place]);
                for (sum, value) in sums[q].iter_mut().zip(values) {
                    *sum = sum.add(weight.mul(L::load(&value.0)));
                }
            }
        }
    }
    sums
}

/// Writes the sums of each query behind its start in `out`.
#[inline(always)]
fn store<L: Lanes, const Q: usize, const N: usize>(
    sums: [[L; N]; Q],
    starts: [usize; Q],
    out: &mut [Block],
) {
    for (sums, start) in sums.iter().zip(starts) {
        for (sum, out) in sums.iter().zip(&mut out[start..][..N]) {
            sum.store(&mut out.0);
        }
    }
}
