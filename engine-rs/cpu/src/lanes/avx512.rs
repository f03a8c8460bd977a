//! Sixteen lanes in one AVX-512 register.
//!
//! SAFETY of every block below: the type is named only by functions that `isa::kernel!` compiled with
//! the needed features and that run after the processor was asked for them; loads and stores go
//! through references to whole arrays and need no alignment.

use std::arch::x86_64::*;

use super::{Lanes, CANONICAL_NAN, IOTA, LANES, ROUND_MAGIC, SQRT_HALF_BITS};

#[derive(Clone, Copy)]
pub(crate) struct Avx512(__m512);

impl Lanes for Avx512 {
    #[inline(always)]
    fn splat(x: f32) -> Self {
        // SAFETY: see the head of the file.
        unsafe { Self(_mm512_set1_ps(x)) }
    }

    #[inline(always)]
    fn load(p: &[f32; LANES]) -> Self {
        // SAFETY: see the head of the file.
        unsafe { Self(_mm512_loadu_ps(p.as_ptr())) }
    }

    #[inline(always)]
    fn store(self, p: &mut [f32; LANES]) {
        // SAFETY: see the head of the file.
        unsafe { _mm512_storeu_ps(p.as_mut_ptr(), self.0) }
    }

    #[inline(always)]
    fn add(self, o: Self) -> Self {
        // SAFETY: see the head of the file.
        unsafe { Self(_mm512_add_ps(self.0, o.0)) }
    }

    #[inline(always)]
    fn sub(self, o: Self) -> Self {
        // SAFETY: see the head of the file.
        unsafe { Self(_mm512_sub_ps(self.0, o.0)) }
    }

    #[inline(always)]
    fn mul(self, o: Self) -> Self {
        // SAFETY: see the head of the file.
        unsafe { Self(_mm512_mul_ps(self.0, o.0)) }
    }

    #[inline(always)]
    fn div(self, o: Self) -> Self {
        // SAFETY: see the head of the file.
        unsafe { Self(_mm512_div_ps(self.0, o.0)) }
    }

    #[inline(always)]
    fn select_lt(a: Self, b: Self, yes: Self, no: Self) -> Self {
        // SAFETY: see the head of the file.
        unsafe {
            let less = _mm512_cmp_ps_mask::<_CMP_LT_OQ>(a.0, b.0);
            Self(_mm512_mask_blend_ps(less, no.0, yes.0))
        }
    }

    #[inline(always)]
    fn canonical(self) -> Self {
        // SAFETY: see the head of the file.
        unsafe {
            let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(self.0, self.0);
            Self(_mm512_mask_blend_ps(
                nan,
                self.0,
                _mm512_set1_ps(CANONICAL_NAN),
            ))
        }
    }

    #[inline(always)]
    fn from_bf16_pairs(p: &[u32; LANES]) -> [Self; 2] {
        // SAFETY: see the head of the file.
        unsafe {
            let bits = _mm512_loadu_si512(p.as_ptr().cast());
            let high = _mm512_and_si512(bits, _mm512_set1_epi32(!0xffff));
            [
                Self(_mm512_castsi512_ps(_mm512_slli_epi32::<16>(bits))),
                Self(_mm512_castsi512_ps(high)),
            ]
        }
    }

    #[inline(always)]
    fn from_f16(p: &[u16; LANES]) -> Self {
        // SAFETY: see the head of the file.
        unsafe { Self(_mm512_cvtph_ps(_mm256_loadu_si256(p.as_ptr().cast()))) }
    }

    #[inline(always)]
    fn from_i8(p: &[i8; LANES]) -> Self {
        // SAFETY: see the head of the file.
        unsafe {
            let bytes = _mm_loadu_si128(p.as_ptr().cast());
            Self(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes)))
        }
    }

    /// The sixteen possible weights are computed once and looked up: a permutation uses the low
    /// four bits of its indices only.
    #[inline(always)]
    fn from_nibbles(p: &[u8; LANES], zero: f32, scale: f32, min: f32) -> [Self; 2] {
        let quants = Self::load(&IOTA).sub(Self::splat(zero));
        let table = quants.mul(Self::splat(scale)).add(Self::splat(min)).0;
        // SAFETY: see the head of the file.
        unsafe {
            let low = _mm512_cvtepu8_epi32(_mm_loadu_si128(p.as_ptr().cast()));
            let high = _mm512_srli_epi32::<4>(low);
            [
                Self(_mm512_permutexvar_ps(low, table)),
                Self(_mm512_permutexvar_ps(high, table)),
            ]
        }
    }

    #[inline(always)]
    fn pow2(self) -> Self {
        // SAFETY: see the head of the file.
        unsafe {
            let bits = _mm512_castps_si512(_mm512_add_ps(self.0, _mm512_set1_ps(ROUND_MAGIC)));
            let one = _mm512_set1_epi32(0x3f80_0000);
            Self(_mm512_castsi512_ps(_mm512_add_epi32(
                _mm512_slli_epi32::<23>(bits),
                one,
            )))
        }
    }

    #[inline(always)]
    fn split(self) -> (Self, Self) {
        // SAFETY: see the head of the file.
        unsafe {
            let bits = _mm512_castps_si512(self.0);
            let base = _mm512_set1_epi32(SQRT_HALF_BITS);
            let exponent = _mm512_srai_epi32::<23>(_mm512_sub_epi32(bits, base));
            let mantissa = _mm512_sub_epi32(bits, _mm512_slli_epi32::<23>(exponent));
            (
                Self(_mm512_castsi512_ps(mantissa)),
                Self(_mm512_cvtepi32_ps(exponent)),
            )
        }
    }

    #[inline(always)]
    fn sum(self) -> f32 {
        // SAFETY: see the head of the file.
        unsafe {
            let high = _mm512_castps512_ps256(_mm512_shuffle_f32x4::<0xee>(self.0, self.0));
            let eight = _mm256_add_ps(_mm512_castps512_ps256(self.0), high);
            let four = _mm_add_ps(
                _mm256_castps256_ps128(eight),
                _mm256_extractf128_ps::<1>(eight),
            );
            let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
        }
    }

    #[inline(always)]
    fn sum4(a: [Self; 4]) -> [f32; 4] {
        // SAFETY: see the head of the file.
        unsafe {
            let four = fours(a);
            let two = _mm512_add_ps(four, _mm512_permute_ps::<0x4e>(four));
            let one = _mm512_add_ps(two, _mm512_permute_ps::<0xb1>(two));
            let mut lanes = [0.0; LANES];
            _mm512_storeu_ps(lanes.as_mut_ptr(), one);
            [lanes[0], lanes[4], lanes[8], lanes[12]]
        }
    }

    #[inline(always)]
    fn sum16(a: [[Self; 4]; 4]) -> Self {
        // SAFETY: see the head of the file.
        unsafe {
            // Four partial sums of each of a[0][j], …, a[3][j], for two j at a time.
            let x = twos(
                fours([a[0][0], a[1][0], a[2][0], a[3][0]]),
                fours([a[0][1], a[1][1], a[2][1], a[3][1]]),
            );
            let y = twos(
                fours([a[0][2], a[1][2], a[2][2], a[3][2]]),
                fours([a[0][3], a[1][3], a[2][3], a[3][3]]),
            );
            Self(_mm512_add_ps(
                _mm512_shuffle_ps::<0x88>(x, y),
                _mm512_shuffle_ps::<0xdd>(x, y),
            ))
        }
    }
}

/// The first two levels of `sum`'s tree for four vectors: four partial sums of each, side by side.
///
/// # Safety
/// AVX-512F must be there.
#[inline(always)]
unsafe fn fours(a: [Avx512; 4]) -> __m512 {
    let (x, y) = (eights(a[0].0, a[1].0), eights(a[2].0, a[3].0));
    _mm512_add_ps(
        _mm512_shuffle_f32x4::<0x88>(x, y),
        _mm512_shuffle_f32x4::<0xdd>(x, y),
    )
}

/// The first level of the tree for two vectors.
///
/// # Safety
/// AVX-512F must be there.
#[inline(always)]
unsafe fn eights(x: __m512, y: __m512) -> __m512 {
    _mm512_add_ps(
        _mm512_shuffle_f32x4::<0x44>(x, y),
        _mm512_shuffle_f32x4::<0xee>(x, y),
    )
}

/// The third level of the tree for two results of `fours`.
///
/// # Safety
/// AVX-512F must be there.
#[inline(always)]
unsafe fn twos(x: __m512, y: __m512) -> __m512 {
    _mm512_add_ps(
        _mm512_shuffle_ps::<0x44>(x, y),
        _mm512_shuffle_ps::<0xee>(x, y),
    )
}
