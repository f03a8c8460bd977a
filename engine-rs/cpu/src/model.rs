//! A decoder of the Llama family (Llama, SmolLM2, Mistral, Qwen2.5, Qwen3, Gemma 3), its memory.

use crate::batch::{Limits, TILE_ROWS};
use crate::config::Config;
use crate::isa::Isa;
use crate::kernels::{attention, linear, rope::Rope};
use crate::lanes::Block;
use crate::load::{Loader, Tensor};
use crate::matrix::{Matrix, UNIT};
use crate::memory::{floats, with_capacity, Error, LazyBlocks};
use crate::pool::Pool;
use crate::shelf::Shelf;

pub(crate) struct Layer {
    pub group: usize,
    /// Which of the model's rotary embeddings it has.
    pub rope: usize,
    pub attn_norm: Vec<Block>,
    pub q: Matrix,
    pub k: Matrix,
    pub v: Matrix,
    pub o: Matrix,
    /// Of q, k and v.
    pub bias: [Option<Vec<Block>>; 3],
    pub q_norm: Option<Vec<Block>>,
    pub k_norm: Option<Vec<Block>>,
    /// The norm of what attention adds.
    pub attn_out_norm: Option<Vec<Block>>,
    pub ffn_norm: Vec<Block>,
    /// The norm of what the feed-forward adds.
    pub ffn_out_norm: Option<Vec<Block>>,
    pub gate: Matrix,
    pub up: Matrix,
    pub down: Matrix,
}

/// Keys and values of one layer: `[slots, kv_heads, head_blocks]` each.
pub(crate) struct LayerKv {
    pub keys: LazyBlocks,
    pub values: LazyBlocks,
}

/// Weights, KV memory and threads. Results do not depend on `threads` or `isa`.
pub struct Model {
    pub(crate) config: Config,
    pub(crate) limits: Limits,
    pub(crate) embed: Matrix,
    pub(crate) layers: Vec<Layer>,
    pub(crate) norm: Vec<Block>,
    /// None: the embedding is the head.
    pub(crate) head: Option<Matrix>,
    pub(crate) ropes: Vec<Rope>,
    pub(crate) kv: Vec<LayerKv>,
    pub(crate) buffers: crate::buffers::Buffers,
    pub(crate) pool: Pool,
    pub(crate) isa: Isa,
}

/// Floats of a row of `width`, padded to whole units.
pub(crate) fn stride(width: usize) -> usize {
    width.next_multiple_of(UNIT)
}

impl Model {
    /// `find` gives a tensor by its name (`embed`, `norm`, `head`, `layers.{i}.{q, k, v, o, …}`).
    /// KV memory for `num_slots` positions (a multiple of `block_size`) is taken per layer group.
    pub fn new<'a>(
        config: Config,
        find: impl FnMut(&str) -> Option<Tensor<'a>>,
        num_slots: &[usize],
        block_size: usize,
        threads: usize,
        isa: Isa,
    ) -> Result<Self, Error> {
        config.check()?;
        if num_slots.len() != config.group_windows.len() {
            return Err(Error::new("num_slots needs one entry per layer group"));
        }
        if block_size == 0
            || num_slots
                .iter()
                .any(|&n| n == 0 || n % block_size != 0 || n > u32::MAX as usize)
        {
            return Err(Error::new(
                "num_slots must be positive multiples of block_size",
            ));
        }
        let mut loader = Loader {
            find,
            isa,
            shelf: Shelf::default(),
        };
        let mut layers = with_capacity(config.n_layers)?;
        for i in 0..config.n_layers {
            layers.push(loader.layer(&config, i)?);
        }
        let head = match config.tie_embeddings {
            true => None,
            false => Some(loader.matrix("head", config.vocab, config.hidden)?),
        };
        let widest = config
            .hidden
            .max(config.ffn)
            .max(config.n_heads * config.head_dim);
        let queries = TILE_ROWS * (config.n_heads / config.n_kv_heads);
        let scratch = linear::scratch_blocks(widest)
            .max(2 * attention::partial_blocks(config.head_blocks()) * queries);
        Ok(Self {
            embed: loader.matrix("embed", config.vocab, config.hidden)?,
            norm: loader.vector("norm", config.hidden)?,
            head,
            layers,
            ropes: config
                .ropes
                .iter()
                .map(|&(theta, scaling)| Rope::new(config.head_dim, theta, scaling))
                .collect::<Result<_, _>>()?,
            kv: allocate_kv(&config, num_slots)?,
            buffers: Default::default(),
            pool: Pool::new(threads, scratch)?,
            isa,
            limits: Limits {
                vocab: config.vocab,
                block_size,
                num_slots: num_slots.to_vec(),
                windows: config.group_windows.clone(),
            },
            config,
        })
    }

    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    pub fn isa(&self) -> Isa {
        self.isa
    }

    pub fn threads(&self) -> usize {
        self.pool.threads()
    }

    /// Overwrites the keys and values of a slot of a layer group with `value` (tests poison free
    /// pages with NaN, which must change nothing).
    pub fn fill_slot(&mut self, group: usize, slot: usize, value: f32) -> Result<(), Error> {
        if self
            .limits
            .num_slots
            .get(group)
            .is_none_or(|&slots| slot >= slots)
        {
            return Err(Error::new(format!("group {group} has no slot {slot}")));
        }
        let size = self.config.n_kv_heads * self.config.head_blocks();
        for (layer, kv) in self.layers.iter().zip(&mut self.kv) {
            if layer.group == group {
                kv.keys[slot * size..][..size].fill(Block([value; 16]));
                kv.values[slot * size..][..size].fill(Block([value; 16]));
            }
        }
        Ok(())
    }
}

fn allocate_kv(config: &Config, num_slots: &[usize]) -> Result<Vec<LayerKv>, Error> {
    let mut kv = with_capacity(config.n_layers)?;
    for &group in &config.layer_groups {
        let blocks = num_slots[group]
            .checked_mul(config.n_kv_heads * config.head_blocks())
            .ok_or_else(|| Error::new("num_slots is too large for this machine"))?;
        kv.push(LayerKv {
            keys: LazyBlocks::zeroed(blocks)?,
            values: LazyBlocks::zeroed(blocks)?,
        });
    }
    Ok(kv)
}

/// The floats of an optional bias.
pub(crate) fn bias(bias: &Option<Vec<Block>>) -> Option<&[f32]> {
    bias.as_deref().map(floats)
}
