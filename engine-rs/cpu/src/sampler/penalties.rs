//! Logit bias and the penalties for tokens that occurred (OpenAI's and CTRL's, Keskar et al.,
//! 2019), as vLLM applies them.

use super::Params;
use crate::memory::{with_capacity, Error};

/// Bias first; then repetition (prompt and output), then frequency and presence (output).
pub(super) fn apply(
    scores: &mut [f32],
    params: &Params,
    prompt: &[u32],
    output: &[u32],
) -> Result<(), Error> {
    for &(id, bias) in &params.logit_bias {
        scores[id as usize] += bias;
    }
    if params.repetition_penalty != 1.0 {
        let mut seen = with_capacity(prompt.len() + output.len())?;
        seen.extend_from_slice(prompt);
        seen.extend_from_slice(output);
        seen.sort_unstable();
        for same in seen.chunk_by(|a, b| a == b) {
            let score = &mut scores[same[0] as usize];
            if *score > 0.0 {
                *score /= params.repetition_penalty;
            } else {
                *score *= params.repetition_penalty;
            }
        }
    }
    if params.frequency_penalty != 0.0 || params.presence_penalty != 0.0 {
        let mut seen = with_capacity(output.len())?;
        seen.extend_from_slice(output);
        seen.sort_unstable();
        for same in seen.chunk_by(|a, b| a == b) {
            let score = &mut scores[same[0] as usize];
            *score -= params.frequency_penalty * same.len() as f32;
            *score -= params.presence_penalty;
        }
    }
    Ok(())
}
