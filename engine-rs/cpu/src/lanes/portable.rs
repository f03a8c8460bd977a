//! The reference implementation: plain loops over arrays, for SSE2, arm64 and any other machine.

use super::{Lanes, CANONICAL_NAN, LANES, ROUND_MAGIC, SQRT_HALF_BITS};

#[derive(Clone, Copy)]
pub(crate) struct Portable([f32; LANES]);

/// Exact value of IEEE half bits: the exponent is moved by a multiplication, which also makes
/// subnormals right; the largest exponent (infinity, NaN) is set by hand.
#[inline(always)]
fn half(bits: u16) -> f32 {
    let magnitude = u32::from(bits & 0x7fff);
    let shifted = f32::from_bits(magnitude << 13) * f32::from_bits(0x7780_0000);
    let special = if magnitude >= 0x7c00 { 0x7f80_0000 } else { 0 };
    f32::from_bits(shifted.to_bits() | special | (u32::from(bits & 0x8000) << 16))
}

impl Portable {
    #[inline(always)]
    fn each(self, o: Self, f: impl Fn(f32, f32) -> f32) -> Self {
        let mut out = [0.0; LANES];
        for ((out, &a), &b) in out.iter_mut().zip(&self.0).zip(&o.0) {
            *out = f(a, b);
        }
        Self(out)
    }

    #[inline(always)]
    fn map<T: Copy>(p: &[T; LANES], f: impl Fn(T) -> f32) -> Self {
        let mut out = [0.0; LANES];
        for (out, &x) in out.iter_mut().zip(p) {
            *out = f(x);
        }
        Self(out)
    }
}

impl Lanes for Portable {
    #[inline(always)]
    fn splat(x: f32) -> Self {
        Self([x; LANES])
    }

    #[inline(always)]
    fn load(p: &[f32; LANES]) -> Self {
        Self(*p)
    }

    #[inline(always)]
    fn store(self, p: &mut [f32; LANES]) {
        *p = self.0;
    }

    #[inline(always)]
    fn add(self, o: Self) -> Self {
        self.each(o, |a, b| a + b)
    }

    #[inline(always)]
    fn sub(self, o: Self) -> Self {
        self.each(o, |a, b| a - b)
    }

    #[inline(always)]
    fn mul(self, o: Self) -> Self {
        self.each(o, |a, b| a * b)
    }

    #[inline(always)]
    fn div(self, o: Self) -> Self {
        self.each(o, |a, b| a / b)
    }

    #[inline(always)]
    fn select_lt(a: Self, b: Self, yes: Self, no: Self) -> Self {
        let mut out = no.0;
        for (lane, out) in out.iter_mut().enumerate() {
            if a.0[lane] < b.0[lane] {
                *out = yes.0[lane];
            }
        }
        Self(out)
    }

    #[inline(always)]
    fn canonical(self) -> Self {
        Self::map(&self.0, |x| if x.is_nan() { CANONICAL_NAN } else { x })
    }

    #[inline(always)]
    fn from_bf16_pairs(p: &[u32; LANES]) -> [Self; 2] {
        [
            Self::map(p, |bits| f32::from_bits(bits << 16)),
            Self::map(p, |bits| f32::from_bits(bits & 0xffff_0000)),
        ]
    }

    #[inline(always)]
    fn from_f16(p: &[u16; LANES]) -> Self {
        Self::map(p, half)
    }

    #[inline(always)]
    fn from_i8(p: &[i8; LANES]) -> Self {
        Self::map(p, f32::from)
    }

    #[inline(always)]
    fn from_nibbles(p: &[u8; LANES], zero: f32, scale: f32, min: f32) -> [Self; 2] {
        let weight = |q: u8| (f32::from(q) - zero) * scale + min;
        [
            Self::map(p, |byte| weight(byte & 15)),
            Self::map(p, |byte| weight(byte >> 4)),
        ]
    }

    #[inline(always)]
    fn pow2(self) -> Self {
        Self::map(&self.0, |n| {
            let bits = (n + ROUND_MAGIC).to_bits() << 23;
            f32::from_bits(bits.wrapping_add(0x3f80_0000))
        })
    }

    #[inline(always)]
    fn split(self) -> (Self, Self) {
        let exponent = |x: f32| (x.to_bits() as i32).wrapping_sub(SQRT_HALF_BITS) >> 23;
        let mantissa = |x: f32| {
            let bits = (x.to_bits() as i32).wrapping_sub(exponent(x) << 23);
            f32::from_bits(bits as u32)
        };
        (
            Self::map(&self.0, mantissa),
            Self::map(&self.0, |x| exponent(x) as f32),
        )
    }

    #[inline(always)]
    fn sum(self) -> f32 {
        let mut lanes = self.0;
        let mut width = LANES / 2;
        while width > 0 {
            for lane in 0..width {
                lanes[lane] += lanes[lane + width];
            }
            width /= 2;
        }
        lanes[0]
    }
}
