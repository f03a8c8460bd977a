//! Sixteen f32 lanes: the one vector type that every kernel is written in.
//!
//! A kernel is generic over `Lanes` and is compiled once for each implementation. Every operation
//! here is an IEEE operation on each lane alone, or a conversion that is exact, or a sum in one
//! fixed tree; so all implementations give the same bits, and the tests compare them. There is no
//! fused multiply-add.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod portable;

#[cfg(target_arch = "x86_64")]
pub(crate) use avx2::Avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) use avx512::Avx512;
pub(crate) use portable::Portable;

/// Number of lanes; the unit in which rows are padded.
pub const LANES: usize = 16;

/// Sixteen floats on a cache line of their own. Rows are padded with zeros to whole blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C, align(64))]
pub struct Block(pub [f32; LANES]);

impl Block {
    pub const ZERO: Block = Block([0.0; LANES]);
}

/// The only NaN that a kernel stores.
pub const CANONICAL_NAN: f32 = f32::from_bits(0x7fc0_0000);

/// Each lane's number.
pub(crate) const IOTA: [f32; LANES] = [
    0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0,
];

/// Adding and subtracting this rounds a small float to the nearest integer, ties to even.
pub(crate) const ROUND_MAGIC: f32 = 12_582_912.0;

/// What `split` subtracts so that mantissas fall into [sqrt(1/2), sqrt(2)).
pub(crate) const SQRT_HALF_BITS: i32 = 0x3f35_04f3;

/// The vector operations. An implementation that needs processor features may be named only inside
/// a function that `isa::kernel!` compiled for them, which runs after detection.
pub(crate) trait Lanes: Copy {
    fn splat(x: f32) -> Self;
    fn load(p: &[f32; LANES]) -> Self;
    fn store(self, p: &mut [f32; LANES]);
    fn add(self, o: Self) -> Self;
    fn sub(self, o: Self) -> Self;
    fn mul(self, o: Self) -> Self;
    fn div(self, o: Self) -> Self;
    /// Lane by lane `if a < b { yes } else { no }`; a comparison with NaN is false.
    fn select_lt(a: Self, b: Self, yes: Self, no: Self) -> Self;
    /// Replaces every NaN by `CANONICAL_NAN`.
    fn canonical(self) -> Self;
    /// Exact values of two bfloat16 in each word: those in the low halves, those in the high ones.
    fn from_bf16_pairs(p: &[u32; LANES]) -> [Self; 2];
    /// Exact value of IEEE half bits, subnormals included.
    fn from_f16(p: &[u16; LANES]) -> Self;
    fn from_i8(p: &[i8; LANES]) -> Self;
    /// 32 weights from 16 bytes, `(q - zero) * scale + min` with a rounding after each operation;
    /// q is the low nibble of byte j for weight j, the high one for weight j + 16.
    fn from_nibbles(p: &[u8; LANES], zero: f32, scale: f32, min: f32) -> [Self; 2];
    /// `2^n` for integral lanes in -126..=128 (128 gives infinity); anything else is unspecified
    /// but the same everywhere.
    fn pow2(self) -> Self;
    /// Mantissa in [sqrt(1/2), sqrt(2)) and exponent of positive normal lanes.
    fn split(self) -> (Self, Self);
    /// Sum of the lanes: l with l + 8, then + 4, + 2, + 1.
    fn sum(self) -> f32;

    /// Maximum that ignores a NaN in `o`.
    #[inline(always)]
    fn max(self, o: Self) -> Self {
        Self::select_lt(self, o, o, self)
    }

    /// `sum` of four vectors.
    #[inline(always)]
    fn sum4(a: [Self; 4]) -> [f32; 4] {
        [a[0].sum(), a[1].sum(), a[2].sum(), a[3].sum()]
    }

    /// `sum` of sixteen vectors: lane 4 i + j is that of `a[i][j]`.
    #[inline(always)]
    fn sum16(a: [[Self; 4]; 4]) -> Self {
        let mut lanes = [0.0; LANES];
        for (lanes, a) in lanes.chunks_exact_mut(4).zip(a) {
            lanes.copy_from_slice(&Self::sum4(a));
        }
        Self::load(&lanes)
    }
}

/// Largest lane in the order of `sum`'s tree.
#[inline(always)]
pub(crate) fn lane_max<L: Lanes>(x: L) -> f32 {
    let mut lanes = [0.0; LANES];
    x.store(&mut lanes);
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            if lanes[lane] < lanes[lane + width] {
                lanes[lane] = lanes[lane + width];
            }
        }
        width /= 2;
    }
    lanes[0]
}

/// Asks for the cache line `bytes` behind the start of `p`; a hint, which may point anywhere.
#[inline(always)]
pub(crate) fn prefetch<T>(p: &T, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T1};
        let line = std::ptr::from_ref(p).cast::<i8>().wrapping_add(bytes);
        // SAFETY: a prefetch reads nothing and faults nowhere; SSE is in every x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(line) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (p, bytes);
}
