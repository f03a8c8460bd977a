//! From one row of logits to a token: a pure function of the row, the request's history and
//! (seed, sample index, output position). Ties go to the lowest id; a NaN counts as `-inf`.
//!
//! Order: logit bias, repetition penalty, frequency and presence penalty, temperature, top-k,
//! top-p, min-p; then the Gumbel-max trick with noise keyed by the token's id. Temperature 0 takes
//! the largest penalised logit.

mod filter;
mod noise;
mod penalties;
mod softmax;

use crate::isa::{kernel, Isa};
#[cfg(target_arch = "x86_64")]
use crate::lanes::{Avx2, Avx512};
use crate::lanes::{Lanes, Portable, LANES};
use crate::memory::{with_capacity, Error};

pub use softmax::log_softmax;

/// How a token is drawn; the fields are those of vLLM's `SamplingParams`.
#[derive(Clone, Debug)]
pub struct Params {
    pub seed: u64,
    pub sample_index: u32,
    /// Output position: 0 for the first sampled token.
    pub position: u32,
    /// 0: the largest logit.
    pub temperature: f32,
    /// 0: off.
    pub top_k: usize,
    /// 1: off.
    pub top_p: f32,
    /// 0: off.
    pub min_p: f32,
    /// 1: off.
    pub repetition_penalty: f32,
    pub presence_penalty: f32,
    pub frequency_penalty: f32,
    /// Added to the logits of these ids.
    pub logit_bias: Vec<(u32, f32)>,
}

impl Params {
    fn check(&self, vocab: usize, prompt: &[u32], output: &[u32]) -> Result<(), Error> {
        let finite = |x: f32| x.is_finite();
        let refusals = [
            (
                vocab == 0 || vocab > 1 << 24,
                "a row needs between 1 and 2^24 logits",
            ),
            (
                !finite(self.temperature) || self.temperature < 0.0,
                "temperature must be >= 0",
            ),
            (
                !(self.top_p > 0.0 && self.top_p <= 1.0),
                "top_p must be above 0 and at most 1",
            ),
            (
                !(self.min_p >= 0.0 && self.min_p <= 1.0),
                "min_p must be between 0 and 1",
            ),
            (
                !finite(self.repetition_penalty) || self.repetition_penalty <= 0.0,
                "repetition_penalty must be above 0",
            ),
            (
                !finite(self.presence_penalty),
                "presence_penalty must be finite",
            ),
            (
                !finite(self.frequency_penalty),
                "frequency_penalty must be finite",
            ),
            (
                self.logit_bias.iter().any(|b| b.1.is_nan()),
                "a logit_bias is not a number",
            ),
        ];
        if let Some((_, message)) = refusals.iter().find(|(refused, _)| *refused) {
            return Err(Error::new(*message));
        }
        let biased = self.logit_bias.iter().map(|(id, _)| id);
        match biased
            .chain(prompt)
            .chain(output)
            .find(|&&id| id as usize >= vocab)
        {
            Some(id) => Err(Error::new(format!(
                "token {id} is not below the row's {vocab}"
            ))),
            None => Ok(()),
        }
    }

    fn changes_logits(&self) -> bool {
        self.repetition_penalty != 1.0
            || self.presence_penalty != 0.0
            || self.frequency_penalty != 0.0
            || !self.logit_bias.is_empty()
    }
}

/// Draws a token id from a row of logits. `prompt` and `output` are the request's tokens so far.
pub fn sample(
    isa: Isa,
    logits: &[f32],
    params: &Params,
    prompt: &[u32],
    output: &[u32],
) -> Result<u32, Error> {
    params.check(logits.len(), prompt, output)?;
    let _env = crate::float_env::FloatEnv::enter();
    if params.temperature == 0.0 && !params.changes_logits() {
        return Ok(argmax(isa, logits));
    }
    let mut scores: Vec<f32> = with_capacity(logits.len())?;
    scores.extend_from_slice(logits);
    penalties::apply(&mut scores, params, prompt, output)?;
    if params.temperature == 0.0 {
        return Ok(argmax(isa, &scores));
    }
    scale(isa, &mut scores, params.temperature);
    let best = argmax(isa, &scores);
    let cut = filter::cut(isa, &scores, best, params)?;
    Ok(noise::draw(isa, &scores, best, cut, params))
}

/// Index of the largest value; ties: the lowest. NaN loses to everything.
pub fn argmax(isa: Isa, row: &[f32]) -> u32 {
    let (value, index) = argmax_lanes(isa, row);
    if value > f32::NEG_INFINITY {
        return index;
    }
    row.iter().position(|x| !x.is_nan()).unwrap_or(0) as u32
}

kernel! {
    fn argmax_lanes(row: &[f32]) -> (f32, u32) =
        largest::<Portable>, largest::<Avx2>, largest::<Avx512>;
}

kernel! {
    /// Divides by the temperature; NaN becomes `-inf`, and what is too large the largest float.
    fn scale(scores: &mut [f32], temperature: f32) =
        scaled::<Portable>, scaled::<Avx2>, scaled::<Avx512>;
}

/// Value and index of the largest lane, `-inf` if there is none above it.
#[inline(always)]
fn largest<L: Lanes>(row: &[f32]) -> (f32, u32) {
    let (blocks, rest) = row.as_chunks::<LANES>();
    let (mut max, mut at) = (L::splat(f32::NEG_INFINITY), L::splat(0.0));
    for (i, block) in blocks.iter().enumerate() {
        let x = L::load(block);
        at = L::select_lt(max, x, L::splat(i as f32), at);
        max = L::select_lt(max, x, x, max);
    }
    let (mut values, mut groups) = ([0.0; LANES], [0.0; LANES]);
    max.store(&mut values);
    at.store(&mut groups);
    let (mut value, mut index) = (f32::NEG_INFINITY, 0);
    for lane in 0..LANES {
        let id = groups[lane] as u32 * LANES as u32 + lane as u32;
        if values[lane] > value || (values[lane] == value && id < index) {
            (value, index) = (values[lane], id);
        }
    }
    for (i, &x) in rest.iter().enumerate() {
        if x > value {
            (value, index) = (x, (blocks.len() * LANES + i) as u32);
        }
    }
    (value, index)
}

#[inline(always)]
fn scaled<L: Lanes>(scores: &mut [f32], temperature: f32) {
    let (blocks, rest) = scores.as_chunks_mut::<LANES>();
    for block in blocks {
        tempered::<L>(block, temperature);
    }
    let mut last = [0.0; LANES];
    last[..rest.len()].copy_from_slice(rest);
    tempered::<L>(&mut last, temperature);
    rest.copy_from_slice(&last[..rest.len()]);
}

#[inline(always)]
fn tempered<L: Lanes>(block: &mut [f32; LANES], temperature: f32) {
    let (low, high) = (L::splat(f32::NEG_INFINITY), L::splat(f32::MAX));
    let x = L::load(block).div(L::splat(temperature));
    let number = L::select_lt(low, x, x, low);
    L::select_lt(high, number, high, number).store(block);
}
