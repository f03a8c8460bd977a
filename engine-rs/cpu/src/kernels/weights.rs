//! Reading weights, 32 at a time, as exact f32 values.

use crate::lanes::{Block, Lanes, LANES};
use crate::matrix::{Bytes, Floats, Halves, Nibbles, Pairs, SuperScales};

/// A way of storing rows of weights (the types name it; it has no values).
pub(crate) trait Read {
    /// 32 weights without their scales.
    type Unit: Copy;
    /// What scales are stored as.
    type Packed;
    /// The scales of one unit, as f32.
    type Scales: Copy;
    /// f32 scales a unit.
    const SCALES: usize;

    /// Writes the scales of `count` units from unit `first` on, one after the other, to `out`.
    fn expand<L: Lanes>(packed: &[Self::Packed], first: usize, count: usize, out: &mut [Block]);

    /// Groups what `expand` wrote by unit.
    fn scales(floats: &[f32]) -> &[Self::Scales];

    /// The values of a unit.
    fn read<L: Lanes>(unit: &Self::Unit, scales: &Self::Scales) -> [L; 2];
}

/// As many scales of nothing as anyone asks for.
const NO_SCALES: &[()] = &[(); usize::MAX];

pub(crate) struct F32;
pub(crate) struct F16;
pub(crate) struct Bf16;
pub(crate) struct Q8_0;
pub(crate) struct Q4_0;
pub(crate) struct Q4_1;
pub(crate) struct Q4K;
pub(crate) struct Q6K;

macro_rules! dense {
    ($format:ident, $unit:ty, |$u:ident| $read:expr) => {
        impl Read for $format {
            type Unit = $unit;
            type Packed = ();
            type Scales = ();
            const SCALES: usize = 0;

            #[inline(always)]
            fn expand<L: Lanes>(_: &[()], _: usize, _: usize, _: &mut [Block]) {}

            #[inline(always)]
            fn scales(_: &[f32]) -> &[()] {
                NO_SCALES
            }

            #[inline(always)]
            fn read<L: Lanes>($u: &$unit, (): &()) -> [L; 2] {
                $read
            }
        }
    };
}

dense!(F32, Floats, |u| [L::load(&u[0].0), L::load(&u[1].0)]);
dense!(F16, Halves, |u| [
    L::from_f16(&u.0[0]),
    L::from_f16(&u.0[1])
]);
dense!(Bf16, Pairs, |u| L::from_bf16_pairs(&u.0));

/// A format with scales: how they expand, and how a unit is read with them.
macro_rules! scaled {
    ($format:ident, $unit:ty, $packed:ty, $scales:literal, $expand:path,
     |$u:ident, $s:ident| $read:expr) => {
        impl Read for $format {
            type Unit = $unit;
            type Packed = $packed;
            type Scales = [f32; $scales];
            const SCALES: usize = $scales;

            #[inline(always)]
            fn expand<L: Lanes>(packed: &[$packed], first: usize, count: usize, out: &mut [Block]) {
                $expand(
                    L::splat(0.0),
                    &packed[first * $scales / <$packed>::SCALES..],
                    count * $scales,
                    out,
                );
            }

            #[inline(always)]
            fn scales(floats: &[f32]) -> &[[f32; $scales]] {
                floats.as_chunks().0
            }

            #[inline(always)]
            fn read<L: Lanes>($u: &$unit, $s: &[f32; $scales]) -> [L; 2] {
                $read
            }
        }
    };
}

/// f32 scales that one packed item expands to.
trait PackedScales {
    const SCALES: usize;
}

impl PackedScales for u16 {
    const SCALES: usize = 1;
}

impl PackedScales for SuperScales {
    const SCALES: usize = LANES;
}

scaled!(Q8_0, Bytes, u16, 1, halves, |u, s| scaled_bytes(
    u, s[0], s[0]
));
scaled!(Q4_0, Nibbles, u16, 1, halves, |u, s| L::from_nibbles(
    &u.0, 8.0, s[0], -0.0
));
scaled!(Q4_1, Nibbles, u16, 2, halves, |u, s| L::from_nibbles(
    &u.0, 0.0, s[0], s[1]
));
scaled!(Q4K, Nibbles, SuperScales, 2, products, |u, s| {
    L::from_nibbles(&u.0, 0.0, s[0], s[1])
});
scaled!(Q6K, Bytes, SuperScales, 2, products, |u, s| scaled_bytes(
    u, s[0], s[1]
));

#[inline(always)]
fn scaled_bytes<L: Lanes>(unit: &Bytes, low: f32, high: f32) -> [L; 2] {
    [
        L::from_i8(&unit.0[0]).mul(L::splat(low)),
        L::from_i8(&unit.0[1]).mul(L::splat(high)),
    ]
}

/// f16 scales to f32. (The first argument only names the lanes.)
#[inline(always)]
fn halves<L: Lanes>(_: L, packed: &[u16], count: usize, out: &mut [Block]) {
    let (whole, rest) = packed[..count].as_chunks();
    for (out, bits) in out.iter_mut().zip(whole) {
        L::from_f16(bits).store(&mut out.0);
    }
    if !rest.is_empty() {
        let mut bits = [0; LANES];
        bits[..rest.len()].copy_from_slice(rest);
        L::from_f16(&bits).store(&mut out[whole.len()].0);
    }
}

/// Products of small integer scales and the f16 scales of their super-block.
#[inline(always)]
fn products<L: Lanes>(_: L, packed: &[SuperScales], count: usize, out: &mut [Block]) {
    for (out, scales) in out[..count / LANES].iter_mut().zip(packed) {
        let large = std::array::from_fn(|i| scales.large[i % 2]);
        L::from_i8(&scales.small)
            .mul(L::from_f16(&large))
            .store(&mut out.0);
    }
}

/// Runs `$body` with `$R` naming the format of `$data`, `$units` and `$packed` its arrays.
macro_rules! with_format {
    ($data:expr, |$R:ident, $units:ident, $packed:ident| $body:expr) => {{
        use $crate::kernels::weights as w;
        use $crate::matrix::Data;
        macro_rules! arm {
            ($format:ty, $u:expr, $p:expr) => {{
                type $R = $format;
                let ($units, $packed) = (&$u[..], $p);
                $body
            }};
        }
        match $data {
            Data::F32(u) => arm!(w::F32, u, &[]),
            Data::F16(u) => arm!(w::F16, u, &[]),
            Data::Bf16(u) => arm!(w::Bf16, u, &[]),
            Data::Q8_0(u, p) => arm!(w::Q8_0, u, &p[..]),
            Data::Q4_0(u, p) => arm!(w::Q4_0, u, &p[..]),
            Data::Q4_1(u, p) => arm!(w::Q4_1, u, &p[..]),
            Data::Q4K(u, p) => arm!(w::Q4K, u, &p[..]),
            Data::Q6K(u, p) => arm!(w::Q6K, u, &p[..]),
        }
    }};
}
pub(crate) use with_format;
