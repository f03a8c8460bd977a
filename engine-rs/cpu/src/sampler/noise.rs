//! The draw: argmax of score plus Gumbel noise (Gumbel, 1954). The noise of a token is a function
//! of (seed, sample index, output position, token id) alone: Philox4x32-10 (Salmon et al., 2011),
//! key = the seed's halves, counter = (id, position, sample index, 0), first word.

use super::filter::Cut;
use super::softmax::block;
use super::Params;
use crate::isa::kernel;
#[cfg(target_arch = "x86_64")]
use crate::lanes::{Avx2, Avx512};
use crate::lanes::{Lanes, Portable, LANES};
use crate::math::ln;

/// No noise is larger: the largest is -ln(-ln(1 - 2^-24)) = 16.64.
const NOISE_BOUND: f32 = 17.0;

type Words = [u32; LANES];

kernel! {
    /// The kept token with the largest score plus noise; ties: the lowest id.
    pub(super) fn draw(scores: &[f32], best: u32, cut: Cut, params: &Params) -> u32 =
        drawn::<Portable>, drawn::<Avx2>, drawn::<Avx512>;
}

/// `best` is the id of the largest score; beginning with its block lets most others be skipped.
#[inline(always)]
fn drawn<L: Lanes>(scores: &[f32], best: u32, cut: Cut, params: &Params) -> u32 {
    let blocks = scores.len().div_ceil(LANES);
    let first = best as usize / LANES;
    let mut winner = (f32::NEG_INFINITY, best);
    for i in std::iter::once(first).chain((0..blocks).filter(|&i| i != first)) {
        let scores = block(scores, i);
        let mut live = false;
        for score in scores {
            live |= score >= cut.score && score + NOISE_BOUND >= winner.0;
        }
        if !live {
            continue;
        }
        let mut totals = [0.0; LANES];
        let noise = gumbel::<L>((i * LANES) as u32, params);
        L::load(&scores).add(noise).store(&mut totals);
        for lane in 0..LANES {
            let (total, id) = (totals[lane], (i * LANES + lane) as u32);
            let wins = total > winner.0 || (total == winner.0 && id < winner.1);
            if wins && cut.keeps(scores[lane], id) {
                winner = (total, id);
            }
        }
    }
    winner.1
}

/// `-ln(-ln u)` with `u = ((word >> 9) + 1/2) / 2^23`, which is exact, for sixteen ids from `id`.
#[inline(always)]
fn gumbel<L: Lanes>(id: u32, params: &Params) -> L {
    let words = philox(id, params);
    let mut uniform = [0.0; LANES];
    for (uniform, word) in uniform.iter_mut().zip(words) {
        *uniform = ((word >> 9) as i32 as f32 + 0.5) * (1.0 / 8_388_608.0);
    }
    let zero = L::splat(0.0);
    zero.sub(ln(zero.sub(ln(L::load(&uniform)))))
}

/// First words of Philox4x32-10 for sixteen ids from `id`.
#[inline(always)]
fn philox(id: u32, params: &Params) -> Words {
    let mut c: [Words; 4] = [
        [0; LANES],
        [params.position; LANES],
        [params.sample_index; LANES],
        [0; LANES],
    ];
    for (lane, c) in c[0].iter_mut().enumerate() {
        *c = id.wrapping_add(lane as u32);
    }
    let mut key = [params.seed as u32, (params.seed >> 32) as u32];
    for _ in 0..10 {
        let mut next = [[0; LANES]; 4];
        for lane in 0..LANES {
            let first = u64::from(c[0][lane]) * 0xd251_1f53;
            let second = u64::from(c[2][lane]) * 0xcd9e_8d57;
            next[0][lane] = (second >> 32) as u32 ^ c[1][lane] ^ key[0];
            next[1][lane] = second as u32;
            next[2][lane] = (first >> 32) as u32 ^ c[3][lane] ^ key[1];
            next[3][lane] = first as u32;
        }
        c = next;
        key = [
            key[0].wrapping_add(0x9e37_79b9),
            key[1].wrapping_add(0xbb67_ae85),
        ];
    }
    c[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(seed: u64, position: u32, sample_index: u32) -> Params {
        Params {
            seed,
            sample_index,
            position,
            temperature: 1.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            repetition_penalty: 1.0,
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
            logit_bias: Vec::new(),
        }
    }

    /// Known answers of Random123 (`kat_vectors`, philox4x32-10); their last counter word is not
    /// ours, so only the one with a zero there can be had.
    #[test]
    fn known_answer() {
        assert_eq!(philox(0, &params(0, 0, 0))[0], 0x6627_e8d5);
    }

    #[test]
    fn noise_is_bounded() {
        let largest = -(-(1.0 - 0.5f64.powi(24)).ln()).ln();
        assert!(largest + 0.3 < f64::from(NOISE_BOUND));
    }
}
