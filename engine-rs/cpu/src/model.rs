//! A decoder of the Llama family (Llama, SmolLM2, Mistral, Qwen2.5, Qwen3) and its memory.

use crate::batch::Limits;
use crate::isa::Isa;
use crate::kernels::{attention, linear, rope::Rope, rope::RopeScaling};
use crate::lanes::Block;
use crate::matrix::{Format, Matrix, UNIT};
use crate::memory::{blocks_for, floats, with_capacity, zeroed, Error};
use crate::pool::Pool;

/// Shape and constants of a model.
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
    pub rope_theta: f64,
    pub rope_scaling: RopeScaling,
    /// Queries and keys are normalised per head (Qwen3).
    pub qk_norm: bool,
    pub tie_embeddings: bool,
    /// Layer group of each layer.
    pub layer_groups: Vec<usize>,
    /// Per group: how many positions a row sees, itself included; None: all.
    pub group_windows: Vec<Option<usize>>,
}

/// A tensor as it lies in a file; a vector has one row.
pub struct Tensor<'a> {
    pub format: Format,
    pub rows: usize,
    pub cols: usize,
    pub raw: &'a [u8],
}

pub(crate) struct Layer {
    pub group: usize,
    pub attn_norm: Vec<Block>,
    pub q: Matrix,
    pub k: Matrix,
    pub v: Matrix,
    pub o: Matrix,
    /// Of q, k and v.
    pub bias: [Option<Vec<Block>>; 3],
    pub q_norm: Option<Vec<Block>>,
    pub k_norm: Option<Vec<Block>>,
    pub ffn_norm: Vec<Block>,
    pub gate: Matrix,
    pub up: Matrix,
    pub down: Matrix,
}

/// Keys and values of one layer: `[slots, kv_heads, head_blocks]` each.
pub(crate) struct LayerKv {
    pub keys: Vec<Block>,
    pub values: Vec<Block>,
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
    pub(crate) rope: Rope,
    pub(crate) kv: Vec<LayerKv>,
    pub(crate) buffers: crate::forward::Buffers,
    pub(crate) pool: Pool,
    pub(crate) isa: Isa,
}

/// Floats of a row of `width`, padded to whole units.
pub(crate) fn stride(width: usize) -> usize {
    width.next_multiple_of(UNIT)
}

impl Config {
    /// Blocks of one padded head.
    pub(crate) fn head_blocks(&self) -> usize {
        blocks_for(self.head_dim)
    }

    fn check(&self) -> Result<(), Error> {
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
                !(self.rope_theta >= 1.0 && self.rope_theta < 1e15),
                "rope_theta must be 1 to 1e15",
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

/// Gives tensors out by name, with their shape checked.
struct Loader<F> {
    find: F,
    isa: Isa,
}

impl<'a, F: FnMut(&str) -> Option<Tensor<'a>>> Loader<F> {
    fn matrix(&mut self, name: &str, rows: usize, cols: usize) -> Result<Matrix, Error> {
        let Some(t) = (self.find)(name) else {
            return Err(Error::new(format!("tensor {name} is missing")));
        };
        if (t.rows, t.cols) != (rows, cols) {
            return Err(Error::new(format!(
                "tensor {name} has shape ({}, {}), the model needs ({rows}, {cols})",
                t.rows, t.cols
            )));
        }
        Matrix::new(t.format, rows, cols, t.raw)
            .map_err(|e| Error::new(format!("tensor {name}: {e}")))
    }

    fn vector(&mut self, name: &str, len: usize) -> Result<Vec<Block>, Error> {
        let matrix = self.matrix(name, 1, len)?;
        let mut out = zeroed(stride(len) / 16)?;
        let mut scratch = zeroed(linear::scratch_blocks(len))?;
        linear::read_row(self.isa, &matrix, 0, &mut out, &mut scratch);
        Ok(out)
    }

    fn optional(&mut self, name: &str, len: usize) -> Result<Option<Vec<Block>>, Error> {
        match (self.find)(name) {
            Some(_) => self.vector(name, len).map(Some),
            None => Ok(None),
        }
    }

    fn layer(&mut self, c: &Config, i: usize) -> Result<Layer, Error> {
        let (q, kv) = (c.n_heads * c.head_dim, c.n_kv_heads * c.head_dim);
        let name = |part: &str| format!("layers.{i}.{part}");
        let head_norm = |loader: &mut Self, part: &str| {
            c.qk_norm
                .then(|| loader.vector(&name(part), c.head_dim))
                .transpose()
        };
        Ok(Layer {
            group: c.layer_groups[i],
            attn_norm: self.vector(&name("attn_norm"), c.hidden)?,
            q: self.matrix(&name("q"), q, c.hidden)?,
            k: self.matrix(&name("k"), kv, c.hidden)?,
            v: self.matrix(&name("v"), kv, c.hidden)?,
            o: self.matrix(&name("o"), c.hidden, q)?,
            bias: [
                self.optional(&name("q_bias"), q)?,
                self.optional(&name("k_bias"), kv)?,
                self.optional(&name("v_bias"), kv)?,
            ],
            q_norm: head_norm(self, "q_norm")?,
            k_norm: head_norm(self, "k_norm")?,
            ffn_norm: self.vector(&name("ffn_norm"), c.hidden)?,
            gate: self.matrix(&name("gate"), c.ffn, c.hidden)?,
            up: self.matrix(&name("up"), c.ffn, c.hidden)?,
            down: self.matrix(&name("down"), c.hidden, c.ffn)?,
        })
    }
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
        let mut loader = Loader { find, isa };
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
        let scratch = linear::scratch_blocks(widest)
            .max(2 * attention::partial_blocks(config.head_blocks()) * config.n_heads);
        Ok(Self {
            embed: loader.matrix("embed", config.vocab, config.hidden)?,
            norm: loader.vector("norm", config.hidden)?,
            head,
            layers,
            rope: Rope::new(config.head_dim, config.rope_theta, config.rope_scaling)?,
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
            keys: zeroed(blocks)?,
            values: zeroed(blocks)?,
        });
    }
    Ok(kv)
}

/// The floats of an optional bias.
pub(crate) fn bias(bias: &Option<Vec<Block>>) -> Option<&[f32]> {
    bias.as_deref().map(floats)
}
