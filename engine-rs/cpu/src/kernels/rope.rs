//! Rotary position embedding (Su et al., 2021) in HF's `rotate_half` order: element i of a head
//! turns with element i + head_dim / 2.

use crate::lanes::CANONICAL_NAN;
use crate::math::{exp_f64, ln_f64, sin_cos_f64};
use crate::memory::{with_capacity, Error};

/// How frequencies are changed for longer contexts; HF's `rope_scaling`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RopeScaling {
    None,
    Linear {
        factor: f64,
    },
    Llama3 {
        factor: f64,
        low_freq: f64,
        high_freq: f64,
        original_positions: f64,
    },
}

/// The frequencies of a model.
pub struct Rope {
    inverse: Vec<f32>,
}

impl Rope {
    /// `theta^(-2i / head_dim)`, scaled, rounded to f32 as HF keeps them.
    pub fn new(head_dim: usize, theta: f64, scaling: RopeScaling) -> Result<Self, Error> {
        let half = head_dim / 2;
        let mut inverse = with_capacity(half)?;
        for i in 0..half {
            let exponent = (2 * i) as f64 / head_dim as f64;
            inverse.push(scaled(exp_f64(-exponent * ln_f64(theta)), scaling) as f32);
        }
        Ok(Self { inverse })
    }

    /// Cosines, then sines, of one position's angles (head_dim / 2 each). As in HF the angle is
    /// the f32 product of position and frequency.
    pub fn angles(&self, position: u32, out: &mut [f32]) {
        let (cos, sin) = out.split_at_mut(self.inverse.len());
        for ((cos, sin), &inverse) in cos.iter_mut().zip(sin).zip(&self.inverse) {
            let (s, c) = sin_cos_f64(f64::from(position as f32 * inverse));
            (*cos, *sin) = (c as f32, s as f32);
        }
    }
}

/// HF's `_compute_llama3_parameters` and `_compute_linear_scaling_rope_parameters`.
fn scaled(inverse: f64, scaling: RopeScaling) -> f64 {
    match scaling {
        RopeScaling::None => inverse,
        RopeScaling::Linear { factor } => inverse / factor,
        RopeScaling::Llama3 {
            factor,
            low_freq,
            high_freq,
            original_positions,
        } => {
            let wavelength = 2.0 * std::f64::consts::PI / inverse;
            if wavelength < original_positions / high_freq {
                inverse
            } else if wavelength > original_positions / low_freq {
                inverse / factor
            } else {
                let smooth = (original_positions / wavelength - low_freq) / (high_freq - low_freq);
                (1.0 - smooth) * inverse / factor + smooth * inverse
            }
        }
    }
}

/// Turns one head. `angles` as `Rope::angles` wrote them; `out` may be longer than the head.
pub fn rotate(head: &[f32], angles: &[f32], out: &mut [f32]) {
    let half = head.len() / 2;
    let (first, second) = head.split_at(half);
    let (cos, sin) = angles.split_at(half);
    let canonical = |x: f32| if x.is_nan() { CANONICAL_NAN } else { x };
    for i in 0..half {
        out[i] = canonical(first[i] * cos[i] - second[i] * sin[i]);
        out[i + half] = canonical(second[i] * cos[i] + first[i] * sin[i]);
    }
}
