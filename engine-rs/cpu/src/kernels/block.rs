//! A register block: a few rows of activations against a few columns, whose lane sums stay in
//! registers until they are added up.

use std::mem::size_of;

use crate::lanes::{prefetch, Block, Lanes, CANONICAL_NAN, LANES};
use crate::matrix::Floats;

use super::linear::Linear;
use super::weights::Read;

/// Bytes from a weight to the one that is asked for meanwhile, at least: what memory delivers in
/// the time that it takes.
const AHEAD: usize = 8 << 10;

/// A few adjacent rows of a matrix: `n` units each, and their expanded scales.
pub(super) struct Panel<'a, R: Read> {
    pub units: &'a [R::Unit],
    pub scales: &'a [f32],
    pub n: usize,
}

impl<R: Read> Clone for Panel<'_, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R: Read> Copy for Panel<'_, R> {}

/// Weights that are needed soon, asked for a little at every unit on the way, so that memory and
/// arithmetic are busy together: many requests at once would hold up the loads of what is needed
/// now.
#[derive(Clone, Copy)]
pub(super) struct Ahead<'a, U> {
    units: &'a [U],
    /// Units asked for at each unit that is computed.
    each: usize,
}

impl<'a, U> Ahead<'a, U> {
    const LINE: usize = if size_of::<U>() < 64 {
        64 / size_of::<U>()
    } else {
        1
    };

    /// `units` over a way of `n` units.
    pub fn new(units: &'a [U], n: usize) -> Self {
        let each = units.len().div_ceil(n).next_multiple_of(Self::LINE);
        Self { units, each }
    }

    #[inline(always)]
    fn ask(&self, i: usize) {
        let mut at = i * self.each;
        let end = self.units.len().min(at + self.each);
        while at < end {
            prefetch(&self.units[at], 0);
            at += Self::LINE;
        }
    }
}

/// The lane sums of `MR` rows of `x` with `NR` rows of weights; `KEEP`: the weights are written to
/// `tile` as f32.
#[inline(always)]
pub(super) fn dots<L: Lanes, R: Read, U, const MR: usize, const NR: usize, const KEEP: bool>(
    x: &[Block],
    row: usize,
    panel: Panel<'_, R>,
    next: Ahead<'_, U>,
    tile: &mut [Floats],
) -> [[L; NR]; MR] {
    let n = panel.n;
    let x: &[Floats] = x.as_chunks().0;
    let x: [&[Floats]; MR] = std::array::from_fn(|m| &x[(row + m) * n..][..n]);
    let units: [&[R::Unit]; NR] = std::array::from_fn(|c| &panel.units[c * n..][..n]);
    let scales: [&[R::Scales]; NR] =
        std::array::from_fn(|c| &R::scales(&panel.scales[c * n * R::SCALES..])[..n]);
    let tile: [&mut [Floats]; NR] = split::<NR>(tile, if KEEP { n } else { 0 });
    let ahead = (NR * n * size_of::<R::Unit>()).max(AHEAD);
    let mut sums = [[L::splat(0.0); NR]; MR];
    for i in 0..n {
        next.ask(i);
        let mut weights = [[L::splat(0.0); 2]; NR];
        for c in 0..NR {
            if MR == 1 {
                prefetch(&units[c][i], ahead);
            }
            weights[c] = R::read(&units[c][i], &scales[c][i]);
            if KEEP {
                weights[c][0].store(&mut tile[c][i][0].0);
                weights[c][1].store(&mut tile[c][i][1].0);
            }
        }
        for half in 0..2 {
            for m in 0..MR {
                let x = L::load(&x[m][i][half].0);
                for c in 0..NR {
                    sums[m][c] = sums[m][c].add(x.mul(weights[c][half]));
                }
            }
        }
    }
    sums
}

/// `N` slices of `n` items each.
#[inline(always)]
fn split<const N: usize>(mut items: &mut [Floats], n: usize) -> [&mut [Floats]; N] {
    std::array::from_fn(|_| {
        let (first, rest) = std::mem::take(&mut items).split_at_mut(n);
        items = rest;
        first
    })
}

/// Adds up the lanes, adds the bias, stores.
#[inline(always)]
pub(super) fn store<L: Lanes, const MR: usize, const NR: usize>(
    job: &Linear<'_>,
    sums: [[L; NR]; MR],
    row: usize,
    column: usize,
) {
    let bias = job.bias.map(|bias| &bias[column..][..NR]);
    let mut totals = [[0.0; NR]; MR];
    if MR == 4 && NR == 4 {
        for (sums, totals) in sums.chunks_exact(4).zip(totals.chunks_exact_mut(4)) {
            let sums = std::array::from_fn(|m| std::array::from_fn(|c| sums[m][c % NR]));
            let mut sixteen = L::sum16(sums);
            if let Some(bias) = bias {
                let bias = std::array::from_fn(|i| bias[i % NR]);
                sixteen = sixteen.add(L::load(&bias));
            }
            let mut lanes = [0.0; LANES];
            sixteen.canonical().store(&mut lanes);
            for (totals, lanes) in totals.iter_mut().zip(lanes.chunks_exact(NR)) {
                totals.copy_from_slice(lanes);
            }
        }
    } else {
        for (sums, totals) in sums.iter().zip(&mut totals) {
            *totals = totals_of(*sums, bias);
        }
    }
    for (m, totals) in totals.iter().enumerate() {
        // SAFETY: the caller of `linear` owns these columns of the output.
        let out = unsafe { job.out.slice((row + m) * job.out_stride + column, NR) };
        out.copy_from_slice(totals);
    }
}

#[inline(always)]
fn totals_of<L: Lanes, const NR: usize>(sums: [L; NR], bias: Option<&[f32]>) -> [f32; NR] {
    let mut totals = [0.0; NR];
    if NR == 4 {
        totals.copy_from_slice(&L::sum4(std::array::from_fn(|c| sums[c % NR])));
    } else {
        totals = sums.map(L::sum);
    }
    for c in 0..NR {
        let y = bias.map_or(totals[c], |bias| totals[c] + bias[c]);
        totals[c] = if y.is_nan() { CANONICAL_NAN } else { y };
    }
    totals
}
