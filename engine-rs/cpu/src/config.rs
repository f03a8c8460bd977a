//! Shape and constants of a model.

use crate::kernels::rope::RopeScaling;
use crate::memory::{blocks_for, Error};

/// What a decoder of the Llama family is made of.
#[derive(Clone, Debug)]
pub struct Config {
    pub n_layers: usize,
    pub hidden: usize,
    pub n_heads: usize,
    pub n_kv_heads: usize,
    pub head_dim: usize,
    pub ffn: usize,
    pub vocab: usize,
    pub rms_eps: f32,
    /// Kinds of rotary embedding: base and scaling.
    pub ropes: Vec<(f64, RopeScaling)>,
    /// The kind of each layer.
    pub layer_ropes: Vec<usize>,
    /// Queries and keys are normalised per head (Qwen3, Gemma 3).
    pub qk_norm: bool,
    /// What attention and feed-forward add is normalised, too (Gemma 3).
    pub sandwich_norms: bool,
    /// The gate of the feed-forward is GELU, not SiLU.
    pub gelu: bool,
    /// What scores are multiplied by; None: 1 / sqrt(head_dim).
    pub attention_scale: Option<f32>,
    /// What the token's embedding is multiplied by.
    pub embed_scale: f32,
    pub tie_embeddings: bool,
    /// Layer group of each layer.
    pub layer_groups: Vec<usize>,
    /// Per group: how many positions a row sees, itself included; None: all.
    pub group_windows: Vec<Option<usize>>,
}

impl Config {
    /// Blocks of one padded head.
    pub(crate) fn head_blocks(&self) -> usize {
        blocks_for(self.head_dim)
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        let sizes = [
            ("n_layers", self.n_layers),
            ("hidden", self.hidden),
            ("n_heads", self.n_heads),
            ("n_kv_heads", self.n_kv_heads),
            ("head_dim", self.head_dim),
            ("ffn", self.ffn),
            ("vocab", self.vocab),
        ];
        if let Some((name, size)) = sizes.iter().find(|&&(_, size)| size == 0 || size > 1 << 24) {
            return Err(Error::new(format!(
                "{name} must be between 1 and 2^24, not {size}"
            )));
        }
        let groups = self.group_windows.len();
        let refusals = [
            (
                !self.n_heads.is_multiple_of(self.n_kv_heads),
                "n_heads must be a multiple of n_kv_heads",
            ),
            (!self.head_dim.is_multiple_of(2), "head_dim must be even"),
            (
                !(self.rms_eps >= 0.0 && self.rms_eps.is_finite()),
                "rms_eps must be finite",
            ),
            (
                !self
                    .ropes
                    .iter()
                    .all(|&(theta, _)| (1.0..1e15).contains(&theta)),
                "rope_theta must be 1 to 1e15",
            ),
            (
                self.layer_ropes.len() != self.n_layers
                    || self.layer_ropes.iter().any(|&r| r >= self.ropes.len()),
                "layer_ropes needs one entry per layer, each an index of ropes",
            ),
            (
                !(self.embed_scale.is_finite() && self.attention_scale.unwrap_or(1.0).is_finite()),
                "embed_scale and attention_scale must be finite",
            ),
            (
                self.layer_groups.len() != self.n_layers,
                "layer_groups needs one entry per layer",
            ),
            (
                self.layer_groups.iter().any(|&g| g >= groups),
                "a layer's group has no window entry",
            ),
            (
                self.group_windows.contains(&Some(0)),
                "a window must be at least 1",
            ),
        ];
        match refusals.iter().find(|(refused, _)| *refused) {
            Some((_, message)) => Err(Error::new(*message)),
            None => Ok(()),
        }
    }
}
