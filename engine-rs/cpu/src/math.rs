//! Elementary functions with arithmetic of our own, so that no library's version enters the bits.
//!
//! The f32 polynomials are those of Cephes (Moshier, `expf` and `logf`), the f64 sine and cosine
//! those of fdlibm (Sun Microsystems), all evaluated by separate multiplications and additions.

// The published coefficients are kept to the digit.
#![allow(clippy::excessive_precision)]

use crate::lanes::{Lanes, ROUND_MAGIC};

const LN2_HIGH: f32 = 0.693_359_375;
const LN2_LOW: f32 = -2.121_944_4e-4;

#[inline(always)]
fn polynomial<L: Lanes>(x: L, coefficients: &[f32]) -> L {
    let mut y = L::splat(coefficients[0]);
    for &c in &coefficients[1..] {
        y = y.mul(x).add(L::splat(c));
    }
    y
}

/// e^x within 2 ulp; 0 below -86.5, infinity above 88.72283.
#[inline(always)]
pub(crate) fn exp<L: Lanes>(x: L) -> L {
    const COEFFICIENTS: [f32; 6] = [
        1.987_569_15e-4,
        1.398_199_95e-3,
        8.333_451_9e-3,
        4.166_579_6e-2,
        1.666_666_55e-1,
        5.000_000_1e-1,
    ];
    let magic = L::splat(ROUND_MAGIC);
    let n = x
        .mul(L::splat(std::f32::consts::LOG2_E))
        .add(magic)
        .sub(magic);
    let r = x
        .sub(n.mul(L::splat(LN2_HIGH)))
        .sub(n.mul(L::splat(LN2_LOW)));
    let y = polynomial(r, &COEFFICIENTS)
        .mul(r.mul(r))
        .add(r)
        .add(L::splat(1.0));
    let y = y.mul(n.sub(L::splat(1.0)).pow2()).mul(L::splat(2.0));
    let y = L::select_lt(x, L::splat(-86.5), L::splat(0.0), y);
    L::select_lt(L::splat(88.722_83), x, L::splat(f32::INFINITY), y)
}

/// Natural logarithm of positive normal lanes, within 2 ulp.
#[inline(always)]
pub(crate) fn ln<L: Lanes>(x: L) -> L {
    const COEFFICIENTS: [f32; 9] = [
        7.037_683_6e-2,
        -1.151_461_03e-1,
        1.167_699_9e-1,
        -1.242_014_1e-1,
        1.424_932_3e-1,
        -1.666_805_8e-1,
        2.000_071_5e-1,
        -2.499_999_4e-1,
        3.333_333_1e-1,
    ];
    let (mantissa, exponent) = x.split();
    let f = mantissa.sub(L::splat(1.0));
    let square = f.mul(f);
    let y = polynomial(f, &COEFFICIENTS).mul(f).mul(square);
    let y = y
        .add(exponent.mul(L::splat(LN2_LOW)))
        .sub(square.mul(L::splat(0.5)));
    f.add(y).add(exponent.mul(L::splat(LN2_HIGH)))
}

/// ln x of a positive normal f64, by the series of the area hyperbolic tangent.
pub(crate) fn ln_f64(x: f64) -> f64 {
    const SQRT_HALF_BITS: i64 = 0x3fe6_a09e_667f_3bcd;
    let exponent = (x.to_bits() as i64 - SQRT_HALF_BITS) >> 52;
    let mantissa = f64::from_bits((x.to_bits() as i64 - (exponent << 52)) as u64);
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let square = s * s;
    let mut sum = 0.0;
    for odd in (1..30u32).rev().filter(|n| n % 2 == 1) {
        sum = sum * square + 1.0 / f64::from(odd);
    }
    exponent as f64 * std::f64::consts::LN_2 + 2.0 * s * sum
}

/// e^x for |x| < 700, by its Taylor series after reduction by ln 2.
pub(crate) fn exp_f64(x: f64) -> f64 {
    const HIGH: f64 = 6.931_471_803_691_238e-1;
    const LOW: f64 = 1.908_214_929_270_587_7e-10;
    let n = nearest(x * std::f64::consts::LOG2_E);
    let r = (x - n as f64 * HIGH) - n as f64 * LOW;
    let mut sum = 1.0;
    for k in (1..=16u32).rev() {
        sum = sum * r / f64::from(k) + 1.0;
    }
    sum * f64::from_bits(((1023 + n) as u64) << 52)
}

fn nearest(x: f64) -> i64 {
    if x < 0.0 {
        (x - 0.5) as i64
    } else {
        (x + 0.5) as i64
    }
}

/// Sine and cosine for |x| < 1e7.
pub(crate) fn sin_cos_f64(x: f64) -> (f64, f64) {
    const PI_2: [f64; 3] = [
        1.570_796_326_734_125_6,
        6.077_100_506_303_966e-11,
        2.022_266_248_795_950_6e-21,
    ];
    const SIN: [f64; 6] = [
        1.589_690_995_211_55e-10,
        -2.505_076_025_340_686_3e-8,
        2.755_731_370_707_007e-6,
        -1.984_126_982_985_795e-4,
        8.333_333_333_322_49e-3,
        -1.666_666_666_666_663_2e-1,
    ];
    const COS: [f64; 6] = [
        -1.135_964_755_778_819_5e-11,
        2.087_572_321_298_175e-9,
        -2.755_731_435_139_066_3e-7,
        2.480_158_728_947_673e-5,
        -1.388_888_888_887_411e-3,
        4.166_666_666_666_66e-2,
    ];
    let n = nearest(x * std::f64::consts::FRAC_2_PI);
    let k = n as f64;
    let r = ((x - k * PI_2[0]) - k * PI_2[1]) - k * PI_2[2];
    let square = r * r;
    let horner = |c: &[f64; 6]| c[1..].iter().fold(c[0], |y, &c| y * square + c);
    let sin = r + r * square * horner(&SIN);
    let cos = 1.0 - 0.5 * square + square * square * horner(&COS);
    match n & 3 {
        0 => (sin, cos),
        1 => (cos, -sin),
        2 => (-sin, -cos),
        _ => (-cos, sin),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::{Portable, LANES};

    fn one(f: impl Fn(Portable) -> Portable, x: f32) -> f32 {
        let mut out = [0.0; LANES];
        f(Portable::splat(x)).store(&mut out);
        out[0]
    }

    #[test]
    fn exp_is_close_and_total() {
        for i in -86_000..=88_700 {
            let x = i as f32 / 1000.0;
            let want = f64::from(x).exp();
            assert!(
                (f64::from(one(exp, x)) / want - 1.0).abs() < 2.5e-7,
                "exp({x})"
            );
        }
        assert_eq!(one(exp, -86.6), 0.0);
        assert_eq!(one(exp, f32::NEG_INFINITY), 0.0);
        assert_eq!(one(exp, f32::INFINITY), f32::INFINITY);
        assert_eq!(one(exp, 0.0), 1.0);
        assert!(one(exp, f32::NAN).is_nan());
    }

    #[test]
    fn ln_is_close() {
        for i in 1..200_000u32 {
            let x = f32::from_bits(0x0080_0000 + i * 10_600);
            let want = f64::from(x).ln();
            let got = f64::from(one(ln, x));
            assert!(
                (got - want).abs() <= 2.5e-7 * want.abs().max(1e-6),
                "ln({x})"
            );
        }
        let near_one = 1.0 - f32::EPSILON / 2.0;
        let want = f64::from(near_one).ln();
        assert!((f64::from(one(ln, near_one)) / want - 1.0).abs() < 2e-7);
    }

    #[test]
    fn f64_functions_are_close() {
        for i in 0..100_000 {
            let x = f64::from(i) * 1.317;
            let (sin, cos) = sin_cos_f64(x);
            assert!(
                (sin - x.sin()).abs() < 1e-14 && (cos - x.cos()).abs() < 1e-14,
                "{x}"
            );
            let y = f64::from(i) * 0.005 - 250.0;
            assert!((exp_f64(y) / y.exp() - 1.0).abs() < 1e-13, "exp({y})");
            let z = f64::from(i + 1) * 12.7;
            assert!(
                (ln_f64(z) - z.ln()).abs() < 1e-14 * z.ln().abs().max(1.0),
                "ln({z})"
            );
        }
    }
}
