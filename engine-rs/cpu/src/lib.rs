//! The CPU backend: row kernels in f32 with a fixed order of summation, and the sampler.
//!
//! The bits of a row depend on the weights, the row and what it sees of the KV alone: not on the
//! batch, the chunk, the block table, the number of threads or the instruction set. `kernels` holds
//! the row functions, `lanes` the arithmetic that they are written in, `model` and `forward` put
//! them together, `sampler` turns a row of logits into a token.

mod attend;
pub mod batch;
mod buffers;
pub mod config;
pub mod float_env;
pub mod forward;
pub mod isa;
pub mod kernels;
pub mod lanes;
pub mod load;
mod math;
pub mod matrix;
pub mod measure;
pub mod memory;
pub mod model;
mod pack;
pub mod pool;
pub mod sampler;
pub mod shelf;
