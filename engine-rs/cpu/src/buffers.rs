//! The activations of a step, and views of their rows and tiles.

use std::ops::Range;

use crate::lanes::Block;
use crate::memory::{Error, SharedFloats};
use crate::model::stride;

/// Activations, kept between steps. Rows are padded to whole units; the padding stays zero.
#[derive(Default)]
pub(crate) struct Buffers {
    /// The residual stream.
    pub x: Vec<Block>,
    pub normed: Vec<Block>,
    /// Output of `o` and `down`, not yet added to `x`.
    pub branch: Vec<Block>,
    pub q: Vec<Block>,
    pub k: Vec<Block>,
    pub v: Vec<Block>,
    /// Queries after RoPE, each head padded to whole blocks.
    pub heads: Vec<Block>,
    pub attended: Vec<Block>,
    pub gate: Vec<Block>,
    pub up: Vec<Block>,
    /// Cosines and sines of each row's position.
    pub angles: Vec<Block>,
    /// Partial results of attention, by row, head and split.
    pub partials: Vec<Block>,
}

/// Makes `buffer` hold at least `len` blocks.
pub(crate) fn grow(buffer: &mut Vec<Block>, len: usize) -> Result<(), Error> {
    if buffer.len() < len {
        let missing = len - buffer.len();
        buffer.try_reserve_exact(missing).map_err(|_| {
            let bytes = missing.saturating_mul(std::mem::size_of::<Block>());
            Error::no_memory(bytes, " for a step: lower max_batched_tokens")
        })?;
        buffer.resize(len, Block::ZERO);
    }
    Ok(())
}

/// Row `row` of a shared buffer of padded rows.
///
/// # Safety
/// As for `SharedFloats::slice`.
pub(crate) unsafe fn row_mut<'a>(
    buffer: &SharedFloats<'a>,
    row: usize,
    width: usize,
) -> &'a mut [Block] {
    let width = stride(width);
    blocks_mut(buffer.slice(row * width, width))
}

/// The blocks of a slice that begins and ends on block boundaries.
pub(crate) fn blocks_mut(floats: &mut [f32]) -> &mut [Block] {
    // SAFETY: any 64 aligned bytes are a Block; align_to_mut gives the aligned middle.
    let (head, blocks, tail) = unsafe { floats.align_to_mut() };
    assert!(head.is_empty() && tail.is_empty(), "not whole blocks");
    blocks
}

pub(crate) fn row(buffer: &[Block], row: usize, width: usize) -> &[Block] {
    let blocks = stride(width) / 16;
    &buffer[row * blocks..][..blocks]
}

/// The blocks of columns `columns` of a row; the last tile includes the padding.
pub(crate) fn tile<'a>(
    buffer: &SharedFloats<'a>,
    row: usize,
    columns: &Range<usize>,
    width: usize,
) -> &'a mut [Block] {
    let end = if columns.end == width {
        stride(width)
    } else {
        columns.end
    };
    // SAFETY: a tile's columns are one task's.
    blocks_mut(unsafe { buffer.slice(row * stride(width) + columns.start, end - columns.start) })
}
