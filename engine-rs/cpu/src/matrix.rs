//! Weight matrices in the formats that the kernels read, made from the rows as they lie in a file.
//!
//! Quantised formats keep their own precision: a weight's value is the f32 that gguf-py's
//! `dequantize` gives, computed when it is read. Packing only moves bits: quants and scales go to
//! arrays of their own, bf16 and nibbles into the order "low: weight j, high: weight j + 16", and
//! 6-bit quants to a byte each. The unit along a row is 32 weights; short rows are padded with
//! zeros.

use crate::lanes::Block;
use crate::memory::Error;
use crate::shelf::{Shelf, Shelved};

/// Weights in one unit of a row.
pub const UNIT: usize = 32;

/// How the bytes of a tensor are to be read; the names are those of GGUF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    F32,
    F16,
    Bf16,
    Q8_0,
    Q4_0,
    Q4_1,
    Q4K,
    Q6K,
}

impl Format {
    const NAMES: [(&'static str, Format); 8] = [
        ("F32", Format::F32),
        ("F16", Format::F16),
        ("BF16", Format::Bf16),
        ("Q8_0", Format::Q8_0),
        ("Q4_0", Format::Q4_0),
        ("Q4_1", Format::Q4_1),
        ("Q4_K", Format::Q4K),
        ("Q6_K", Format::Q6K),
    ];

    pub fn named(name: &str) -> Result<Self, Error> {
        Self::NAMES
            .iter()
            .find(|(known, _)| *known == name)
            .map(|&(_, format)| format)
            .ok_or_else(|| {
                let names: Vec<&str> = Self::NAMES.iter().map(|(known, _)| *known).collect();
                Error::new(format!("dtype {name:?} is not one of {}", names.join(", ")))
            })
    }

    /// Weights and bytes of one block of the file format.
    pub fn block(self) -> (usize, usize) {
        match self {
            Format::F32 => (1, 4),
            Format::F16 | Format::Bf16 => (1, 2),
            Format::Q8_0 => (32, 34),
            Format::Q4_0 => (32, 18),
            Format::Q4_1 => (32, 20),
            Format::Q4K => (256, 144),
            Format::Q6K => (256, 210),
        }
    }
}

/// A unit of f32 weights or of a row of activations.
pub(crate) type Floats = [Block; 2];
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Halves(pub [[u16; 16]; 2]);
/// Word j: weight j in the low half, weight j + 16 in the high one.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Pairs(pub [u32; 16]);
#[derive(Clone, Copy)]
#[repr(align(32))]
pub(crate) struct Bytes(pub [[i8; 16]; 2]);
#[derive(Clone, Copy)]
#[repr(align(16))]
pub(crate) struct Nibbles(pub [u8; 16]);

/// Scales of a super-block of 256 weights: value i is `small[i] * large[i % 2]`.
#[derive(Clone, Copy)]
pub(crate) struct SuperScales {
    pub small: [i8; 16],
    /// f16 bits.
    pub large: [u16; 2],
}

/// One variant for each way of reading; units are stored row after row.
pub(crate) enum Data {
    F32(Shelved<Floats>),
    F16(Shelved<Halves>),
    Bf16(Shelved<Pairs>),
    /// One f16 scale a unit.
    Q8_0(Shelved<Bytes>, Shelved<u16>),
    /// One f16 scale a unit.
    Q4_0(Shelved<Nibbles>, Shelved<u16>),
    /// Scale and minimum a unit, both f16.
    Q4_1(Shelved<Nibbles>, Shelved<u16>),
    /// Scale and minimum a unit, from super-blocks.
    Q4K(Shelved<Nibbles>, Shelved<SuperScales>),
    /// Two scales a unit, from super-blocks.
    Q6K(Shelved<Bytes>, Shelved<SuperScales>),
}

/// A matrix of `rows` outputs and `cols` inputs.
pub struct Matrix {
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) data: Data,
}

impl Matrix {
    /// From the raw rows of a file: `rows * cols / block.0 * block.1` bytes.
    pub fn new(
        shelf: &mut Shelf,
        format: Format,
        rows: usize,
        cols: usize,
        raw: &[u8],
    ) -> Result<Self, Error> {
        let (weights, bytes) = format.block();
        if rows == 0 || cols == 0 {
            return Err(Error::new(format!(
                "shape ({rows}, {cols}) has no elements"
            )));
        }
        if !cols.is_multiple_of(weights) {
            return Err(Error::new(format!(
                "rows of {cols} are not whole {format:?} blocks of {weights}"
            )));
        }
        let row_bytes = (cols / weights).checked_mul(bytes);
        if row_bytes.and_then(|bytes| bytes.checked_mul(rows)) != Some(raw.len()) {
            return Err(Error::new(format!(
                "a {format:?} tensor of shape ({rows}, {cols}) has {bytes} bytes for each \
                 {weights} elements, but {} bytes were given",
                raw.len()
            )));
        }
        let data = crate::pack::pack(shelf, format, rows, cols, raw)?;
        Ok(Self { rows, cols, data })
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Units of a row.
    pub(crate) fn units(&self) -> usize {
        self.cols.div_ceil(UNIT)
    }
}
