//! The gate of the feed-forward network: `silu(gate) * up` (Shazeer, 2020).

use crate::isa::kernel;
#[cfg(target_arch = "x86_64")]
use crate::lanes::{Avx2, Avx512};
use crate::lanes::{Block, Lanes, Portable};
use crate::math::exp;

kernel! {
    /// `gate = gate / (1 + e^-gate) * up`, element by element.
    pub fn swiglu(gate: &mut [Block], up: &[Block]) =
        gated::<Portable>, gated::<Avx2>, gated::<Avx512>;
}

#[inline(always)]
fn gated<L: Lanes>(gate: &mut [Block], up: &[Block]) {
    for (gate, up) in gate.iter_mut().zip(up) {
        let x = L::load(&gate.0);
        let silu = x.div(exp(L::splat(0.0).sub(x)).add(L::splat(1.0)));
        silu.mul(L::load(&up.0)).canonical().store(&mut gate.0);
    }
}
