//! From the byte layouts of files (GGUF's are specified by ggml-common.h and gguf-py's quants.py)
//! to the arrays of `matrix::Data`. Bits move, values do not change.

use crate::lanes::Block;
use crate::matrix::{Bytes, Data, Floats, Format, Halves, Nibbles, Pairs, SuperScales, UNIT};
use crate::memory::Error;
use crate::shelf::{Shelf, Shelved};

pub(crate) fn pack(
    shelf: &mut Shelf,
    format: Format,
    rows: usize,
    cols: usize,
    raw: &[u8],
) -> Result<Data, Error> {
    let units = rows * cols.div_ceil(UNIT);
    Ok(match format {
        Format::F32 => Data::F32(dense(shelf, raw, rows, cols, |unit: &[u8]| {
            let mut out: Floats = [Block::ZERO; 2];
            for (i, b) in unit.chunks_exact(4).enumerate() {
                out[i / 16].0[i % 16] = f32::from_le_bytes([b[0], b[1], b[2], b[3]]);
            }
            out
        })?),
        Format::F16 => Data::F16(dense(shelf, raw, rows, cols, halves)?),
        Format::Bf16 => Data::Bf16(dense(shelf, raw, rows, cols, pairs)?),
        Format::Q8_0 => {
            let blocks = || raw.chunks_exact(34);
            let scales = shelf.put(units, blocks().map(|b| u16_at(b, 0)))?;
            Data::Q8_0(
                shelf.put(units, blocks().map(|b| Bytes(signed(&b[2..]))))?,
                scales,
            )
        }
        Format::Q4_0 => {
            let blocks = || raw.chunks_exact(18);
            let scales = shelf.put(units, blocks().map(|b| u16_at(b, 0)))?;
            Data::Q4_0(
                shelf.put(units, blocks().map(|b| Nibbles(array(&b[2..]))))?,
                scales,
            )
        }
        Format::Q4_1 => {
            let blocks = || raw.chunks_exact(20);
            let pairs = blocks().flat_map(|b| [u16_at(b, 0), u16_at(b, 2)]);
            let scales = shelf.put(2 * units, pairs)?;
            Data::Q4_1(
                shelf.put(units, blocks().map(|b| Nibbles(array(&b[4..]))))?,
                scales,
            )
        }
        Format::Q4K => {
            let blocks = || raw.chunks_exact(144);
            let nibbles = shelf.put(units, blocks().flat_map(|b| q4k_nibbles(&b[16..])))?;
            Data::Q4K(nibbles, shelf.put(units / 8, blocks().map(q4k_scales))?)
        }
        Format::Q6K => {
            let blocks = || raw.chunks_exact(210);
            let bytes = shelf.put(units, blocks().flat_map(q6k_bytes))?;
            Data::Q6K(bytes, shelf.put(units / 8, blocks().map(q6k_scales))?)
        }
    })
}

/// Rows of a dense format, cut into units; the last unit of a row may be short.
fn dense<T: Copy>(
    shelf: &mut Shelf,
    raw: &[u8],
    rows: usize,
    cols: usize,
    unit: impl Fn(&[u8]) -> T + Copy,
) -> Result<Shelved<T>, Error> {
    let size = raw.len() / (rows * cols);
    let units = raw
        .chunks_exact(cols * size)
        .flat_map(|row| row.chunks(UNIT * size).map(unit));
    shelf.put(rows * cols.div_ceil(UNIT), units)
}

fn halves(unit: &[u8]) -> Halves {
    let mut out = [[0; 16]; 2];
    for (i, b) in unit.chunks_exact(2).enumerate() {
        out[i / 16][i % 16] = u16::from_le_bytes([b[0], b[1]]);
    }
    Halves(out)
}

fn pairs(unit: &[u8]) -> Pairs {
    let Halves([low, high]) = halves(unit);
    Pairs(std::array::from_fn(|j| {
        u32::from(low[j]) | u32::from(high[j]) << 16
    }))
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn array(bytes: &[u8]) -> [u8; 16] {
    std::array::from_fn(|i| bytes[i])
}

fn signed(bytes: &[u8]) -> [[i8; 16]; 2] {
    std::array::from_fn(|half| std::array::from_fn(|i| bytes[half * 16 + i] as i8))
}

/// 128 bytes, each 32 of them holding unit 2i in the low and unit 2i + 1 in the high nibbles.
fn q4k_nibbles(quants: &[u8]) -> [Nibbles; 8] {
    std::array::from_fn(|unit| {
        let group = &quants[unit / 2 * 32..][..32];
        let shift = unit % 2 * 4;
        Nibbles(std::array::from_fn(|i| {
            ((group[i] >> shift) & 15) | (((group[i + 16] >> shift) & 15) << 4)
        }))
    })
}

/// `d`, `dmin` and twelve bytes of 6-bit scales and minima; the minima are subtracted, so `dmin`'s
/// sign is turned, which is exact.
fn q4k_scales(block: &[u8]) -> SuperScales {
    let packed = &block[4..16];
    let six_bits = |i: usize| {
        if i < 4 {
            (packed[i] & 63, packed[i + 4] & 63)
        } else {
            let (low, high) = (packed[i + 4], |j: usize| packed[j] >> 6 << 4);
            ((low & 15) | high(i - 4), (low >> 4) | high(i))
        }
    };
    SuperScales {
        small: std::array::from_fn(|i| {
            let (scale, min) = six_bits(i / 2);
            (if i % 2 == 0 { scale } else { min }) as i8
        }),
        large: [u16_at(block, 0), u16_at(block, 2) ^ 0x8000],
    }
}

/// 6-bit quants: 128 bytes of low nibbles, 64 bytes of high bit pairs, in two halves of 128 weights.
fn q6k_bytes(block: &[u8]) -> [Bytes; 8] {
    let (low, high) = (&block[..128], &block[128..192]);
    let quant = |weight: usize| {
        let (half, within) = (weight / 128, weight % 128);
        let (group, i) = (within / 32, within % 32);
        let nibble = (low[half * 64 + group % 2 * 32 + i] >> (group / 2 * 4)) & 15;
        let pair = (high[half * 32 + i] >> (group * 2)) & 3;
        (nibble | (pair << 4)) as i8 - 32
    };
    std::array::from_fn(|unit| {
        Bytes(std::array::from_fn(|half| {
            std::array::from_fn(|i| quant(unit * 32 + half * 16 + i))
        }))
    })
}

fn q6k_scales(block: &[u8]) -> SuperScales {
    let d = u16_at(block, 208);
    SuperScales {
        small: std::array::from_fn(|i| block[192 + i] as i8),
        large: [d, d],
    }
}
