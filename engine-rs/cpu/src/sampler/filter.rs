//! Top-k, top-p and min-p. With tokens in the order "score descending, id ascending" each keeps a
//! beginning, so all that is left of them is the last token kept.

use super::{softmax, Params};
use crate::isa::Isa;
use crate::lanes::LANES;
use crate::math::ln_f64;
use crate::memory::{with_capacity, Error};

/// The last token kept: its score, and its id among equal scores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cut {
    pub score: f32,
    pub id: u32,
}

impl Cut {
    const ALL: Cut = Cut {
        score: f32::NEG_INFINITY,
        id: u32::MAX,
    };

    #[inline(always)]
    pub fn keeps(&self, score: f32, id: u32) -> bool {
        score > self.score || (score == self.score && id <= self.id)
    }

    /// The cut that keeps less.
    fn tighter(self, other: Cut) -> Cut {
        if self.keeps(other.score, other.id) {
            other
        } else {
            self
        }
    }
}

/// How far below the largest score candidates are looked for: 1e-5 of its weight, then 1e-14, then
/// all. Where one stops changes nothing, only the time.
const MARGINS: [f32; 3] = [11.5, 32.0, f32::INFINITY];

/// A number that sorts as "score descending, id ascending".
fn key(score: f32, id: u32) -> u64 {
    let bits = (score + 0.0).to_bits();
    let ascending = if bits >> 31 == 0 {
        bits | 1 << 31
    } else {
        !bits
    };
    (u64::from(!ascending) << 32) | u64::from(id)
}

/// What the parameters keep of `scores`, none of which is NaN; `best` is the largest's id.
pub(super) fn cut(isa: Isa, scores: &[f32], best: u32, params: &Params) -> Result<Cut, Error> {
    let max = scores[best as usize];
    let mut cut = Cut::ALL;
    if params.min_p > 0.0 {
        let score = (f64::from(max) + ln_f64(f64::from(params.min_p))) as f32;
        cut = Cut {
            score: score.min(max),
            id: u32::MAX,
        };
    }
    let k = if params.top_k == 0 {
        scores.len()
    } else {
        params.top_k.min(scores.len())
    };
    if k == scores.len() && params.top_p >= 1.0 {
        return Ok(cut);
    }
    // The mass of the tokens that top-k keeps; that of all is summed by id.
    let all = (k == scores.len()).then(|| softmax::mass(isa, scores, max));
    for margin in MARGINS {
        let mut keys = candidates(scores, max, margin)?;
        if margin.is_finite() && all.is_none() && keys.len() < k {
            continue;
        }
        if keys.len() > k {
            keys.select_nth_unstable(k - 1);
            keys.truncate(k);
        }
        keys.sort_unstable();
        if let Some(found) = top_p_cut(isa, scores, max, &keys, all, params.top_p)? {
            return Ok(cut.tighter(found));
        }
    }
    Ok(cut)
}

/// Keys of all scores at most `margin` below `max`.
fn candidates(scores: &[f32], max: f32, margin: f32) -> Result<Vec<u64>, Error> {
    let least = max - margin;
    let count = scores.iter().filter(|&&score| score >= least).count();
    let mut keys = with_capacity(count)?;
    for (score, id) in scores.iter().zip(0u32..) {
        if *score >= least {
            keys.push(key(*score, id));
        }
    }
    Ok(keys)
}

/// The first of the sorted `keys` at which their weights reach `top_p` of the mass; None if they
/// do not and there may be more.
fn top_p_cut(
    isa: Isa,
    scores: &[f32],
    max: f32,
    keys: &[u64],
    all: Option<f64>,
    top_p: f32,
) -> Result<Option<Cut>, Error> {
    let cut = |i: usize| {
        let id = keys[i] as u32;
        Cut {
            score: scores[id as usize],
            id,
        }
    };
    let complete = all.is_none() || keys.len() == scores.len();
    if top_p >= 1.0 {
        return Ok(Some(cut(keys.len() - 1)));
    }
    let mut weights = with_capacity(keys.len().div_ceil(LANES))?;
    for keys in keys.chunks(LANES) {
        let mut block = [f32::NEG_INFINITY; LANES];
        for (weight, key) in block.iter_mut().zip(keys) {
            *weight = scores[*key as u32 as usize];
        }
        weights.push(block);
    }
    softmax::weights(isa, &mut weights, max);
    let weights = &weights.as_flattened()[..keys.len()];
    let mass = all.unwrap_or_else(|| weights.iter().map(|&w| f64::from(w)).sum());
    let mut sum = 0.0;
    for (i, &weight) in weights.iter().enumerate() {
        sum += f64::from(weight);
        if sum >= f64::from(top_p) * mass {
            return Ok(Some(cut(i)));
        }
    }
    Ok(complete.then(|| cut(keys.len() - 1)))
}
