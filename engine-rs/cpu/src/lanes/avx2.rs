//! Sixteen lanes in two AVX2 registers.
//!
//! SAFETY of every block below: the type is named only by functions that `isa::kernel!` compiled with
//! the needed features and that run after the processor was asked for them; loads and stores go
//! through references to whole arrays and need no alignment.

use std::arch::x86_64::*;

use super::{Lanes, CANONICAL_NAN, LANES, ROUND_MAGIC, SQRT_HALF_BITS};

#[derive(Clone, Copy)]
pub(crate) struct Avx2([__m256; 2]);

/// `Avx2` from one expression for each half; closures would not be compiled for AVX2.
macro_rules! halves {
    (|$i:ident| $half:expr) => {{
        // SAFETY: see the head of the file.
        let low = unsafe {
            let $i = 0;
            $half
        };
        // SAFETY: see the head of the file.
        let high = unsafe {
            let $i = 1;
            $half
        };
        Self([low, high])
    }};
}

impl Lanes for Avx2 {
    #[inline(always)]
    fn splat(x: f32) -> Self {
        halves!(|_i| _mm256_set1_ps(x))
    }

    #[inline(always)]
    fn load(p: &[f32; LANES]) -> Self {
        halves!(|i| _mm256_loadu_ps(p.as_ptr().add(8 * i)))
    }

    #[inline(always)]
    fn store(self, p: &mut [f32; LANES]) {
        let p = p.as_mut_ptr();
        // SAFETY: see the head of the file.
        unsafe {
            _mm256_storeu_ps(p, self.0[0]);
            _mm256_storeu_ps(p.add(8), self.0[1]);
        }
    }

    #[inline(always)]
    fn add(self, o: Self) -> Self {
        halves!(|i| _mm256_add_ps(self.0[i], o.0[i]))
    }

    #[inline(always)]
    fn sub(self, o: Self) -> Self {
        halves!(|i| _mm256_sub_ps(self.0[i], o.0[i]))
    }

    #[inline(always)]
    fn mul(self, o: Self) -> Self {
        halves!(|i| _mm256_mul_ps(self.0[i], o.0[i]))
    }

    #[inline(always)]
    fn div(self, o: Self) -> Self {
        halves!(|i| _mm256_div_ps(self.0[i], o.0[i]))
    }

    #[inline(always)]
    fn select_lt(a: Self, b: Self, yes: Self, no: Self) -> Self {
        halves!(|i| {
            let less = _mm256_cmp_ps::<_CMP_LT_OQ>(a.0[i], b.0[i]);
            _mm256_blendv_ps(no.0[i], yes.0[i], less)
        })
    }

    #[inline(always)]
    fn canonical(self) -> Self {
        halves!(|i| {
            let nan = _mm256_cmp_ps::<_CMP_UNORD_Q>(self.0[i], self.0[i]);
            _mm256_blendv_ps(self.0[i], _mm256_set1_ps(CANONICAL_NAN), nan)
        })
    }

    #[inline(always)]
    fn from_bf16_pairs(p: &[u32; LANES]) -> [Self; 2] {
        let low = halves!(|i| {
            let bits = _mm256_loadu_si256(p.as_ptr().add(8 * i).cast());
            _mm256_castsi256_ps(_mm256_slli_epi32::<16>(bits))
        });
        let high = halves!(|i| {
            let bits = _mm256_loadu_si256(p.as_ptr().add(8 * i).cast());
            _mm256_castsi256_ps(_mm256_and_si256(bits, _mm256_set1_epi32(!0xffff)))
        });
        [low, high]
    }

    #[inline(always)]
    fn from_f16(p: &[u16; LANES]) -> Self {
        halves!(|i| _mm256_cvtph_ps(_mm_loadu_si128(p.as_ptr().add(8 * i).cast())))
    }

    #[inline(always)]
    fn from_i8(p: &[i8; LANES]) -> Self {
        halves!(|i| {
            let bytes = _mm_loadl_epi64(p.as_ptr().add(8 * i).cast());
            _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes))
        })
    }

    #[inline(always)]
    fn from_nibbles(p: &[u8; LANES], zero: f32, scale: f32, min: f32) -> [Self; 2] {
        let (zero, scale, min) = (Self::splat(zero), Self::splat(scale), Self::splat(min));
        let low = halves!(|i| {
            let bytes = _mm256_cvtepu8_epi32(_mm_loadl_epi64(p.as_ptr().add(8 * i).cast()));
            _mm256_cvtepi32_ps(_mm256_and_si256(bytes, _mm256_set1_epi32(15)))
        });
        let high = halves!(|i| {
            let bytes = _mm256_cvtepu8_epi32(_mm_loadl_epi64(p.as_ptr().add(8 * i).cast()));
            _mm256_cvtepi32_ps(_mm256_srli_epi32::<4>(bytes))
        });
        [
            low.sub(zero).mul(scale).add(min),
            high.sub(zero).mul(scale).add(min),
        ]
    }

    #[inline(always)]
    fn pow2(self) -> Self {
        halves!(|i| {
            let bits = _mm256_castps_si256(_mm256_add_ps(self.0[i], _mm256_set1_ps(ROUND_MAGIC)));
            let one = _mm256_set1_epi32(0x3f80_0000);
            _mm256_castsi256_ps(_mm256_add_epi32(_mm256_slli_epi32::<23>(bits), one))
        })
    }

    #[inline(always)]
    fn split(self) -> (Self, Self) {
        let exponent = halves!(|i| {
            let bits = _mm256_castps_si256(self.0[i]);
            let base = _mm256_set1_epi32(SQRT_HALF_BITS);
            _mm256_cvtepi32_ps(_mm256_srai_epi32::<23>(_mm256_sub_epi32(bits, base)))
        });
        let mantissa = halves!(|i| {
            let shift = _mm256_slli_epi32::<23>(_mm256_cvtps_epi32(exponent.0[i]));
            _mm256_castsi256_ps(_mm256_sub_epi32(_mm256_castps_si256(self.0[i]), shift))
        });
        (mantissa, exponent)
    }

    #[inline(always)]
    fn sum(self) -> f32 {
        // SAFETY: see the head of the file.
        unsafe {
            let eight = _mm256_add_ps(self.0[0], self.0[1]);
            let four = _mm_add_ps(
                _mm256_castps256_ps128(eight),
                _mm256_extractf128_ps::<1>(eight),
            );
            let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
        }
    }
}
