//! Logarithms of probabilities, and the mass that top-p needs.

use crate::isa::kernel;
use crate::lanes::{lane_max, Lanes, Portable, LANES};
#[cfg(target_arch = "x86_64")]
use crate::lanes::{Avx2, Avx512};
use crate::math::{exp, ln};

kernel! {
    /// `out = x - max - ln(sum(e^(x - max)))`, the sum over sixteen lanes and their tree. A NaN
    /// takes no part and stays NaN; `+inf` counts as the largest float. A row that has no value
    /// above `-inf` gives NaN.
    pub fn log_softmax(row: &[f32], out: &mut [f32]) =
        log_softmax_of::<Portable>, log_softmax_of::<Avx2>, log_softmax_of::<Avx512>;
}

kernel! {
    /// Sum of `e^(x - max)` in f64, over sixteen lanes and their tree.
    pub(super) fn mass(row: &[f32], max: f32) -> f64 =
        mass_of::<Portable>, mass_of::<Avx2>, mass_of::<Avx512>;
}

kernel! {
    /// `e^(x - max)` of each value, in place.
    pub(super) fn weights(values: &mut [[f32; LANES]], max: f32) =
        weights_of::<Portable>, weights_of::<Avx2>, weights_of::<Avx512>;
}

/// Block `i` of a row, filled up with `-inf`.
#[inline(always)]
pub(super) fn block(row: &[f32], i: usize) -> [f32; LANES] {
    let mut out = [f32::NEG_INFINITY; LANES];
    let rest = &row[i * LANES..];
    if rest.len() >= LANES {
        out.copy_from_slice(&rest[..LANES]);
    } else {
        out[..rest.len()].copy_from_slice(rest);
    }
    out
}

#[inline(always)]
fn capped<L: Lanes>(row: &[f32], i: usize) -> L {
    let (x, high) = (L::load(&block(row, i)), L::splat(f32::MAX));
    L::select_lt(high, x, high, x)
}

#[inline(always)]
fn log_softmax_of<L: Lanes>(row: &[f32], out: &mut [f32]) {
    let blocks = row.len().div_ceil(LANES);
    let (low, zero) = (L::splat(f32::NEG_INFINITY), L::splat(0.0));
    let mut max = low;
    for i in 0..blocks {
        max = max.max(capped(row, i));
    }
    let max = L::splat(lane_max(max));
    let mut sum = zero;
    for i in 0..blocks {
        let x = capped::<L>(row, i);
        sum = sum.add(L::select_lt(low, x, exp(x.sub(max)), zero));
    }
    let log_sum = ln(L::splat(sum.sum()));
    for (i, out) in out.chunks_mut(LANES).enumerate() {
        let mut result = [0.0; LANES];
        capped::<L>(row, i)
            .sub(max)
            .sub(log_sum)
            .canonical()
            .store(&mut result);
        out.copy_from_slice(&result[..out.len()]);
    }
}

#[inline(always)]
fn mass_of<L: Lanes>(row: &[f32], max: f32) -> f64 {
    let mut sums = [0.0f64; LANES];
    for i in 0..row.len().div_ceil(LANES) {
        let mut terms = [0.0; LANES];
        exp(L::load(&block(row, i)).sub(L::splat(max))).store(&mut terms);
        for (sum, term) in sums.iter_mut().zip(terms) {
            *sum += f64::from(term);
        }
    }
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            sums[lane] += sums[lane + width];
        }
        width /= 2;
    }
    sums[0]
}

#[inline(always)]
fn weights_of<L: Lanes>(values: &mut [[f32; LANES]], max: f32) {
    for values in values {
        exp(L::load(values).sub(L::splat(max))).store(values);
    }
}
