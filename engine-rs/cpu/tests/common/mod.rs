//! Random inputs from a fixed seed, and comparison of bits.
#![allow(dead_code)] // each test program uses a part

use vosti_cpu::lanes::Block;
use vosti_cpu::matrix::{Format, Matrix};
use vosti_cpu::shelf::Shelf;

/// xorshift64*
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, n: usize) -> usize {
        ((self.next() >> 33) % n as u64) as usize
    }

    /// Uniform in -1..1.
    pub fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }

    /// Rows of `width`, padded with zeros to whole units of 32.
    pub fn rows(&mut self, rows: usize, width: usize) -> Vec<Block> {
        let stride = width.next_multiple_of(32);
        let mut blocks = vec![Block::ZERO; rows * stride / 16];
        for row in 0..rows {
            for i in 0..width {
                let at = row * stride + i;
                blocks[at / 16].0[at % 16] = self.unit();
            }
        }
        blocks
    }

    /// The bytes of a tensor; `wild` ones are any bits: infinities, NaNs and subnormals among them.
    pub fn raw(&mut self, format: Format, rows: usize, cols: usize, wild: bool) -> Vec<u8> {
        let (weights, bytes) = format.block();
        let mut raw: Vec<u8> = (0..rows * cols / weights * bytes)
            .map(|_| self.next() as u8)
            .collect();
        if !wild {
            for block in raw.chunks_exact_mut(bytes) {
                self.tame(format, block);
            }
        }
        raw
    }

    /// Gives a block's floats ordinary values.
    fn tame(&mut self, format: Format, block: &mut [u8]) {
        let mut half = |at: usize| {
            let bits = 0x1800 | (self.next() as u16 & 0x8fff);
            block[at..at + 2].copy_from_slice(&bits.to_le_bytes());
        };
        match format {
            Format::F32 => block.copy_from_slice(&self.unit().to_le_bytes()),
            Format::Bf16 => block.copy_from_slice(&self.unit().to_le_bytes()[2..]),
            Format::F16 | Format::Q8_0 | Format::Q4_0 => half(0),
            Format::Q4_1 | Format::Q4K => {
                half(0);
                half(2);
            }
            Format::Q6K => half(208),
        }
    }

    pub fn matrix(&mut self, format: Format, rows: usize, cols: usize, wild: bool) -> Matrix {
        let raw = self.raw(format, rows, cols, wild);
        Matrix::new(&mut Shelf::default(), format, rows, cols, &raw).unwrap()
    }
}

pub const FORMATS: [Format; 8] = [
    Format::F32,
    Format::F16,
    Format::Bf16,
    Format::Q8_0,
    Format::Q4_0,
    Format::Q4_1,
    Format::Q4K,
    Format::Q6K,
];

/// First place where the bits differ.
pub fn difference(a: &[f32], b: &[f32]) -> Option<String> {
    assert_eq!(a.len(), b.len());
    let at = a
        .iter()
        .zip(b)
        .position(|(a, b)| a.to_bits() != b.to_bits())?;
    Some(format!(
        "[{at}]: {:08x} {:08x}",
        a[at].to_bits(),
        b[at].to_bits()
    ))
}
