//! Root-mean-square normalisation of one row (Zhang and Sennrich, 2019), in the order of HF's
//! `LlamaRMSNorm`: `x * (1 / sqrt(mean(x^2) + eps)) * weight`.

use crate::isa::kernel;
#[cfg(target_arch = "x86_64")]
use crate::lanes::{Avx2, Avx512};
use crate::lanes::{Block, Lanes, Portable};

kernel! {
    /// Writes the normalised row to `out`. All slices have one length; what lies beyond the
    /// `width` elements of the row is zero, in `weight` too.
    pub fn rms_norm(x: &[Block], width: usize, weight: &[Block], eps: f32, out: &mut [Block]) =
        norm::<Portable>, norm::<Avx2>, norm::<Avx512>;
}

kernel! {
    /// `x += y`, element by element.
    pub fn add_row(x: &mut [Block], y: &[Block]) =
        add::<Portable>, add::<Avx2>, add::<Avx512>;
}

kernel! {
    /// `x *= factor`, element by element.
    pub fn scale_row(x: &mut [Block], factor: f32) =
        scale::<Portable>, scale::<Avx2>, scale::<Avx512>;
}

#[inline(always)]
fn scale<L: Lanes>(x: &mut [Block], factor: f32) {
    for x in x {
        L::load(&x.0)
            .mul(L::splat(factor))
            .canonical()
            .store(&mut x.0);
    }
}

#[inline(always)]
fn norm<L: Lanes>(x: &[Block], width: usize, weight: &[Block], eps: f32, out: &mut [Block]) {
    let mut squares = L::splat(0.0);
    for x in x {
        let x = L::load(&x.0);
        squares = squares.add(x.mul(x));
    }
    let scale = L::splat(1.0 / (squares.sum() / width as f32 + eps).sqrt());
    for ((out, x), weight) in out.iter_mut().zip(x).zip(weight) {
        let y = L::load(&x.0).mul(scale).mul(L::load(&weight.0));
        y.canonical().store(&mut out.0);
    }
}

#[inline(always)]
fn add<L: Lanes>(x: &mut [Block], y: &[Block]) {
    for (x, y) in x.iter_mut().zip(y) {
        L::load(&x.0).add(L::load(&y.0)).canonical().store(&mut x.0);
    }
}
