//! `y = x W^T + b`, row by row: each output is sixteen lane sums over the inputs, ascending, added
//! in the fixed tree, then the bias. How many rows and columns are computed side by side, and
//! whether weights are unpacked first, changes only the speed.

use std::ops::Range;

use crate::isa::kernel;
use crate::lanes::{prefetch, Block, Lanes, Portable, CANONICAL_NAN, LANES};
#[cfg(target_arch = "x86_64")]
use crate::lanes::{Avx2, Avx512};
use crate::matrix::{Floats, Matrix};
use crate::memory::{floats, SharedFloats};

use super::weights::{with_format, Read, F32};

/// From this many rows on, weights are unpacked to f32 before they are used.
const UNPACK_ROWS: usize = 4;
/// Columns unpacked together.
const TILE: usize = 16;

/// One linear map on `rows` rows.
#[derive(Clone, Copy)]
pub struct Linear<'a> {
    /// `[rows, inputs]`, each row padded with zeros to whole units of 32.
    pub x: &'a [Block],
    pub rows: usize,
    pub weight: &'a Matrix,
    /// `[outputs]`
    pub bias: Option<&'a [f32]>,
    /// `[rows, out_stride]`
    pub out: SharedFloats<'a>,
    pub out_stride: usize,
}

/// Blocks of scratch memory that `linear` needs for rows of `inputs`.
pub fn scratch_blocks(inputs: usize) -> usize {
    2 * inputs.div_ceil(32) * TILE + 8
}

kernel! {
    /// Computes the outputs `columns` of every row.
    ///
    /// The caller owns these columns of `job.out`: no other thread may touch them meanwhile.
    pub fn linear(job: &Linear<'_>, columns: Range<usize>, scratch: &mut [Block]) =
        columns_of::<Portable, 1, 2>, columns_of::<Avx2, 2, 2>, columns_of::<Avx512, 4, 4>;
}

kernel! {
    /// Writes row `row` of a matrix as f32 to `out` (whole units of 32).
    pub fn read_row(weight: &Matrix, row: usize, out: &mut [Block], scratch: &mut [Block]) =
        row_of::<Portable>, row_of::<Avx2>, row_of::<Avx512>;
}

#[inline(always)]
fn row_of<L: Lanes>(weight: &Matrix, row: usize, out: &mut [Block], scratch: &mut [Block]) {
    let n = weight.units();
    with_format!(&weight.data, |R, units, packed| {
        unpack::<L, R>(
            &units[row * n..][..n],
            packed,
            row * n,
            out.as_chunks_mut().0,
            scratch,
        )
    });
}

/// Reads `units`, which begin at unit `first` of the matrix.
#[inline(always)]
fn unpack<L: Lanes, R: Read>(
    units: &[R::Unit],
    packed: &[R::Packed],
    first: usize,
    out: &mut [Floats],
    scratch: &mut [Block],
) {
    R::expand::<L>(packed, first, units.len(), scratch);
    let scales = R::scales(floats(scratch));
    for ((out, unit), scales) in out.iter_mut().zip(units).zip(scales) {
        let weights = R::read::<L>(unit, scales);
        weights[0].store(&mut out[0].0);
        weights[1].store(&mut out[1].0);
    }
}

#[inline(always)]
fn columns_of<L: Lanes, const MR: usize, const NR: usize>(
    job: &Linear<'_>,
    columns: Range<usize>,
    scratch: &mut [Block],
) {
    let is_f32 = matches!(job.weight.data, crate::matrix::Data::F32(_));
    with_format!(&job.weight.data, |R, units, packed| {
        if job.rows < UNPACK_ROWS || is_f32 {
            direct::<L, R, MR, NR>(job, units, packed, columns, scratch);
        } else {
            unpacked::<L, R, MR, NR>(job, units, packed, columns, scratch);
        }
    });
}

/// Weights are read as they are used, `NR` columns at a time.
#[inline(always)]
fn direct<L: Lanes, R: Read, const MR: usize, const NR: usize>(
    job: &Linear<'_>,
    units: &[R::Unit],
    packed: &[R::Packed],
    columns: Range<usize>,
    scratch: &mut [Block],
) {
    let n = job.weight.units();
    let mut column = columns.start;
    while column < columns.end {
        let width = if columns.end - column >= NR { NR } else { 1 };
        R::expand::<L>(packed, column * n, width * n, scratch);
        let panel = Panel::<R> {
            units: &units[column * n..][..width * n],
            scales: floats(scratch),
            n,
        };
        if width == NR {
            rows_of::<L, R, MR, NR>(job, 0..job.rows, panel, column);
        } else {
            rows_of::<L, R, MR, 1>(job, 0..job.rows, panel, column);
        }
        column += width;
    }
}

/// Weights are unpacked `TILE` columns at a time, then used for all rows.
#[inline(always)]
fn unpacked<L: Lanes, R: Read, const MR: usize, const NR: usize>(
    job: &Linear<'_>,
    units: &[R::Unit],
    packed: &[R::Packed],
    columns: Range<usize>,
    scratch: &mut [Block],
) {
    let n = job.weight.units();
    let (tile, scratch) = scratch.split_at_mut(2 * n * TILE);
    let tile: &mut [Floats] = tile.as_chunks_mut().0;
    let mut first = columns.start;
    while first < columns.end {
        let width = TILE.min(columns.end - first);
        for (i, out) in tile.chunks_exact_mut(n).take(width).enumerate() {
            let row = first + i;
            unpack::<L, R>(&units[row * n..][..n], packed, row * n, out, scratch);
        }
        // A few rows stay in the nearest cache while the whole tile passes by.
        for row in (0..job.rows).step_by(MR) {
            let rows = row..job.rows.min(row + MR);
            tile_of::<L, MR, NR>(job, rows, &tile[..width * n], first);
        }
        first += width;
    }
}

/// `rows` against a tile of unpacked columns.
#[inline(always)]
fn tile_of<L: Lanes, const MR: usize, const NR: usize>(
    job: &Linear<'_>,
    rows: Range<usize>,
    tile: &[Floats],
    first: usize,
) {
    let n = job.weight.units();
    let width = tile.len() / n;
    let mut i = 0;
    while i < width {
        let step = if width - i >= NR { NR } else { 1 };
        let panel = Panel::<F32> {
            units: &tile[i * n..][..step * n],
            scales: &[],
            n,
        };
        if step == NR {
            rows_of::<L, F32, MR, NR>(job, rows.clone(), panel, first + i);
        } else {
            rows_of::<L, F32, MR, 1>(job, rows.clone(), panel, first + i);
        }
        i += step;
    }
}

/// A few adjacent rows of a matrix: `n` units each, and their expanded scales.
struct Panel<'a, R: Read> {
    units: &'a [R::Unit],
    scales: &'a [f32],
    n: usize,
}

impl<R: Read> Clone for Panel<'_, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R: Read> Copy for Panel<'_, R> {}

/// Rows of `x` against the `NR` columns of a panel.
#[inline(always)]
fn rows_of<L: Lanes, R: Read, const MR: usize, const NR: usize>(
    job: &Linear<'_>,
    rows: Range<usize>,
    panel: Panel<'_, R>,
    column: usize,
) {
    let mut row = rows.start;
    while row + MR <= rows.end {
        store::<L, MR, NR>(job, dots::<L, R, MR, NR>(job.x, row, panel), row, column);
        row += MR;
    }
    while row < rows.end {
        store::<L, 1, NR>(job, dots::<L, R, 1, NR>(job.x, row, panel), row, column);
        row += 1;
    }
}

/// The lane sums of `MR` rows of `x` with `NR` rows of weights.
#[inline(always)]
fn dots<L: Lanes, R: Read, const MR: usize, const NR: usize>(
    x: &[Block],
    row: usize,
    panel: Panel<'_, R>,
) -> [[L; NR]; MR] {
    let n = panel.n;
    let x: &[Floats] = x.as_chunks().0;
    let x: [&[Floats]; MR] = std::array::from_fn(|m| &x[(row + m) * n..][..n]);
    let units: [&[R::Unit]; NR] = std::array::from_fn(|c| &panel.units[c * n..][..n]);
    let scales: [&[R::Scales]; NR] =
        std::array::from_fn(|c| &R::scales(&panel.scales[c * n * R::SCALES..])[..n]);
    let ahead = (NR * n * std::mem::size_of::<R::Unit>()).max(2048);
    let mut sums = [[L::splat(0.0); NR]; MR];
    for i in 0..n {
        let mut weights = [[L::splat(0.0); 2]; NR];
        for c in 0..NR {
            if MR == 1 {
                prefetch(&units[c][i], ahead);
            }
            weights[c] = R::read(&units[c][i], &scales[c][i]);
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

#[inline(always)]
fn totals_of<L: Lanes, const NR: usize>(sums: [L; NR]) -> [f32; NR] {
    let mut totals = [0.0; NR];
    if NR == 4 {
        totals.copy_from_slice(&L::sum4([
            sums[0],
            sums[1 % NR],
            sums[2 % NR],
            sums[3 % NR],
        ]));
    } else {
        for c in 0..NR {
            totals[c] = sums[c].sum();
        }
    }
    totals
}

/// Adds up the lanes, adds the bias, stores.
#[inline(always)]
fn store<L: Lanes, const MR: usize, const NR: usize>(
    job: &Linear<'_>,
    sums: [[L; NR]; MR],
    row: usize,
    column: usize,
) {
    let mut totals = [[0.0; NR]; MR];
    if MR == 4 && NR == 4 {
        let mut square = [[L::splat(0.0); 4]; 4];
        for m in 0..MR {
            square[m].copy_from_slice(&sums[m]);
        }
        for (total, sum) in totals.iter_mut().zip(L::sum16(square)) {
            total.copy_from_slice(&sum);
        }
    } else {
        for m in 0..MR {
            totals[m] = totals_of(sums[m]);
        }
    }
    for (m, totals) in totals.iter().enumerate() {
        // SAFETY: the caller of `linear` owns these columns of the output.
        let out = unsafe { job.out.slice((row + m) * job.out_stride + column, NR) };
        for c in 0..NR {
            let y = job
                .bias
                .map_or(totals[c], |bias| totals[c] + bias[column + c]);
            out[c] = if y.is_nan() { CANONICAL_NAN } else { y };
        }
    }
}

const _: () = assert!(LANES == 16, "a unit is two blocks");
