//! `y = x W^T + b`, row by row: each output is sixteen lane sums over the inputs, ascending, added
//! in the fixed tree, then the bias. How many rows and columns are computed side by side, and
//! whether weights are unpacked for later rows, changes only the speed.

use std::mem::size_of;
use std::ops::Range;

use crate::isa::kernel;
#[cfg(target_arch = "x86_64")]
use crate::lanes::{Avx2, Avx512};
use crate::lanes::{Block, Lanes, Portable, LANES};
use crate::matrix::{Floats, Matrix};
use crate::memory::{floats, SharedFloats};

use super::block::{dots, store, Ahead, Panel};
use super::weights::{with_format, Read, F32};

/// Bytes of activations that stay in a near cache while a task's columns pass by.
const ROWS_BYTES: usize = 1 << 20;
/// Columns computed side by side, at most.
const WIDEST: usize = 4;

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
    4 * inputs.div_ceil(32) * WIDEST + 8
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
    let n = job.weight.units();
    let (tile, scratch) = scratch.split_at_mut(2 * n * NR);
    let tile: &mut [Floats] = tile.as_chunks_mut().0;
    let most = (ROWS_BYTES / (n * size_of::<Floats>())).next_multiple_of(MR);
    with_format!(&job.weight.data, |R, units, packed| {
        for first in (0..job.rows).step_by(most) {
            let rows = first..job.rows.min(first + most);
            let mut column = columns.start;
            while column < columns.end {
                let width = if columns.end - column >= NR { NR } else { 1 };
                R::expand::<L>(packed, column * n, width * n, scratch);
                let (panel, next) = units[column * n..].split_at(width * n);
                let panel = Panel::<R> {
                    units: panel,
                    scales: floats(scratch),
                    n,
                };
                let next = &next[..next.len().min(width * n)];
                if width == NR {
                    panel_of::<L, R, MR, NR>(job, rows.clone(), panel, column, next, tile);
                } else {
                    panel_of::<L, R, MR, 1>(job, rows.clone(), panel, column, next, tile);
                }
                column += width;
            }
        }
    });
}

/// `rows` against the `NR` columns of a panel. The first rows unpack it on their way, for those
/// that follow; all together they ask for the next one.
#[inline(always)]
fn panel_of<L: Lanes, R: Read, const MR: usize, const NR: usize>(
    job: &Linear<'_>,
    rows: Range<usize>,
    panel: Panel<'_, R>,
    column: usize,
    next: &[R::Unit],
    tile: &mut [Floats],
) {
    let tile = &mut tile[..NR * panel.n];
    let (x, mut row) = (job.x, rows.start);
    if rows.len() == 1 {
        let none = Ahead::<R::Unit>::new(&[], panel.n);
        let sums = dots::<L, R, _, 1, NR, false>(x, row, panel, none, tile);
        return store::<L, 1, NR>(job, sums, row, column);
    }
    let share = next.len().div_ceil(rows.len().div_ceil(MR)).max(1);
    let mut shares = next.chunks(share);
    let mut next = || Ahead::new(shares.next().unwrap_or(&[]), panel.n);
    if rows.len() >= MR {
        let sums = dots::<L, R, _, MR, NR, true>(x, row, panel, next(), tile);
        store::<L, MR, NR>(job, sums, row, column);
        row += MR;
    } else {
        let sums = dots::<L, R, _, 1, NR, true>(x, row, panel, next(), tile);
        store::<L, 1, NR>(job, sums, row, column);
        row += 1;
    }
    let tile = Panel::<F32> {
        units: tile,
        scales: &[],
        n: panel.n,
    };
    while row + MR <= rows.end {
        let sums = dots::<L, F32, _, MR, NR, false>(x, row, tile, next(), &mut []);
        store::<L, MR, NR>(job, sums, row, column);
        row += MR;
    }
    while row < rows.end {
        let sums = dots::<L, F32, _, 1, NR, false>(x, row, tile, next(), &mut []);
        store::<L, 1, NR>(job, sums, row, column);
        row += 1;
    }
}

const _: () = assert!(LANES == 16, "a unit is two blocks");
