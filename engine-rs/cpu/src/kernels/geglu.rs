//! The gate of Gemma's feed-forward network: `gelu(gate) * up` (Shazeer, 2020), GELU in its tanh
//! form (Hendrycks and Gimpel, 2016) with `tanh(u) = 1 - 2 / (e^2u + 1)`.

use crate::isa::kernel;
#[cfg(target_arch = "x86_64")]
use crate::lanes::{Avx2, Avx512};
use crate::lanes::{Block, Lanes, Portable};
use crate::math::exp;

/// sqrt(2 / pi).
const ROOT: f32 = 0.797_884_6;
const CUBIC: f32 = 0.044715;

kernel! {
    /// `gate = gelu(gate) * up`, element by element.
    pub fn geglu(gate: &mut [Block], up: &[Block]) =
        gated::<Portable>, gated::<Avx2>, gated::<Avx512>;
}

#[inline(always)]
fn gated<L: Lanes>(gate: &mut [Block], up: &[Block]) {
    let (half, one, two) = (L::splat(0.5), L::splat(1.0), L::splat(2.0));
    for (gate, up) in gate.iter_mut().zip(up) {
        let x = L::load(&gate.0);
        let cube = x.mul(x).mul(x).mul(L::splat(CUBIC));
        let u = x.add(cube).mul(L::splat(ROOT));
        let tanh_plus_one = two.sub(two.div(exp(two.mul(u)).add(one)));
        let gelu = half.mul(x).mul(tanh_plus_one);
        gelu.mul(L::load(&up.0)).canonical().store(&mut gate.0);
    }
}
