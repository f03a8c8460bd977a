//! One step: from token ids to logits, layer by layer, each operation over all rows.

use crate::batch::Step;
use crate::buffers::{grow, row, row_mut, tile, Buffers};
use crate::config::Config;
use crate::isa::Isa;
use crate::kernels::attention::partial_blocks;
use crate::kernels::geglu::geglu;
use crate::kernels::linear::{linear, read_row, Linear};
use crate::kernels::norm::{add_row, rms_norm, scale_row};
use crate::kernels::rope::Rope;
use crate::kernels::swiglu::swiglu;
use crate::lanes::Block;
use crate::matrix::Matrix;
use crate::memory::{floats_mut, Error, SharedFloats};
use crate::model::{bias, stride, Layer, Model};
use crate::pool::Pool;

/// Rows that one task of a row-wise operation takes.
const ROWS_PER_TASK: usize = 8;

/// Runs `each(scratch, row)` for all rows, spread over the threads.
pub(crate) fn for_rows(pool: &mut Pool, rows: usize, each: impl Fn(&mut [Block], usize) + Sync) {
    pool.run(rows.div_ceil(ROWS_PER_TASK), &|scratch, task| {
        let first = task * ROWS_PER_TASK;
        (first..rows.min(first + ROWS_PER_TASK)).for_each(|row| each(scratch, row));
    });
}

/// Columns that one task takes: whole blocks, and small ones: adjacent tasks are one thread's, so
/// that only the last one matters, for which the others wait.
fn tile_width(columns: usize, threads: usize) -> usize {
    (columns / (threads * 16) / 16 * 16).clamp(16, 64)
}

/// What the operations of one step are given.
#[derive(Clone, Copy)]
pub(crate) struct Given<'a> {
    pub config: &'a Config,
    pub isa: Isa,
    pub step: &'a Step,
    pub block_size: usize,
}

/// What a layer adds to the residual stream, normalised by a weight of its own if there is one.
#[derive(Clone, Copy)]
struct Branch<'a>(Option<&'a [Block]>);

impl Branch<'_> {
    /// `x += branch`, or the norm of the branch, for one row; `normed` has room for it.
    fn add(self, given: &Given<'_>, x: &mut [Block], branch: &[Block], normed: &mut [Block]) {
        let (c, isa) = (given.config, given.isa);
        match self.0 {
            None => add_row(isa, x, branch),
            Some(weight) => {
                rms_norm(isa, branch, c.hidden, weight, c.rms_eps, normed);
                add_row(isa, x, normed);
            }
        }
    }
}

/// One step on its way through the layers.
pub(crate) struct Pass<'a> {
    pub given: Given<'a>,
    pub buffers: &'a mut Buffers,
    pub pool: &'a mut Pool,
}

impl Model {
    /// Computes a checked step: keys and values of its rows go to their slots, and the logits of
    /// `logits_rows` to `logits` (`[L, vocab]`).
    pub fn forward(&mut self, step: &Step, logits: &mut [f32]) -> Result<(), Error> {
        if logits.len() != step.logits_rows.len() * self.config.vocab {
            return Err(Error::new(
                "logits must have one row of vocab for each of logits_rows",
            ));
        }
        let _env = crate::float_env::FloatEnv::enter();
        let mut pass = Pass {
            given: Given {
                config: &self.config,
                isa: self.isa,
                step,
                block_size: self.limits.block_size,
            },
            buffers: &mut self.buffers,
            pool: &mut self.pool,
        };
        pass.prepare()?;
        pass.embed(&self.embed, &self.ropes);
        let mut branch = None;
        for (layer, kv) in self.layers.iter().zip(&mut self.kv) {
            pass.norm(&layer.attn_norm, branch);
            pass.project_qkv(layer);
            pass.place(layer, kv);
            pass.attend(layer, kv);
            pass.project_out(layer);
            pass.norm(
                &layer.ffn_norm,
                Some(Branch(layer.attn_out_norm.as_deref())),
            );
            pass.feed_forward(layer);
            branch = Some(Branch(layer.ffn_out_norm.as_deref()));
        }
        pass.head(
            branch,
            &self.norm,
            self.head.as_ref().unwrap_or(&self.embed),
            logits,
        );
        Ok(())
    }
}

impl Pass<'_> {
    /// Makes room for the rows of the step.
    fn prepare(&mut self) -> Result<(), Error> {
        let splits = self.given.splits_apart(self.pool.threads());
        let (c, b, rows) = (
            self.given.config,
            &mut *self.buffers,
            self.given.step.rows(),
        );
        let blocks = |width: usize| rows * stride(width) / 16;
        for buffer in [&mut b.x, &mut b.normed, &mut b.branch] {
            grow(buffer, blocks(c.hidden))?;
        }
        for buffer in [&mut b.q, &mut b.attended] {
            grow(buffer, blocks(c.n_heads * c.head_dim))?;
        }
        for buffer in [&mut b.k, &mut b.v] {
            grow(buffer, blocks(c.n_kv_heads * c.head_dim))?;
        }
        for buffer in [&mut b.gate, &mut b.up] {
            grow(buffer, blocks(c.ffn))?;
        }
        grow(&mut b.heads, rows * c.n_heads * c.head_blocks())?;
        grow(&mut b.angles, c.ropes.len() * blocks(c.head_dim))?;
        grow(
            &mut b.partials,
            rows * c.n_heads * splits * partial_blocks(c.head_blocks()),
        )
    }

    fn embed(&mut self, embed: &Matrix, ropes: &[Rope]) {
        let Given {
            config: c,
            isa,
            step,
            ..
        } = self.given;
        let x = SharedFloats::new(floats_mut(&mut self.buffers.x));
        let angles = SharedFloats::new(floats_mut(&mut self.buffers.angles));
        for_rows(self.pool, step.rows(), |scratch, r| {
            // SAFETY: each row is one task's.
            let x = unsafe { row_mut(&x, r, c.hidden) };
            read_row(isa, embed, step.tokens[r] as usize, x, scratch);
            if c.embed_scale != 1.0 {
                scale_row(isa, x, c.embed_scale);
            }
            for (kind, rope) in ropes.iter().enumerate() {
                // SAFETY: each row is one task's.
                let angles = unsafe { row_mut(&angles, r * ropes.len() + kind, c.head_dim) };
                rope.angles(step.positions[r], &mut floats_mut(angles)[..c.head_dim]);
            }
        });
    }

    /// Adds the last branch to the residual stream if there is one, and normalises the stream.
    fn norm(&mut self, weight: &[Block], add: Option<Branch<'_>>) {
        let given = self.given;
        let (c, isa, b) = (self.given.config, self.given.isa, &mut *self.buffers);
        let x = SharedFloats::new(floats_mut(&mut b.x));
        let normed = SharedFloats::new(floats_mut(&mut b.normed));
        let branch = &b.branch;
        for_rows(self.pool, self.given.step.rows(), |_, r| {
            // SAFETY: each row is one task's.
            let (x, normed) = unsafe { (row_mut(&x, r, c.hidden), row_mut(&normed, r, c.hidden)) };
            if let Some(add) = add {
                add.add(&given, x, row(branch, r, c.hidden), normed);
            }
            rms_norm(isa, x, c.hidden, weight, c.rms_eps, normed);
        });
    }

    fn project_qkv(&mut self, layer: &Layer) {
        let (c, rows) = (self.given.config, self.given.step.rows());
        let b = &mut *self.buffers;
        let kv = c.n_kv_heads * c.head_dim;
        let job = |weight, bias_of, out, width| Linear {
            x: &b.normed,
            rows,
            weight,
            bias: bias(bias_of),
            out: SharedFloats::new(floats_mut(out)),
            out_stride: stride(width),
        };
        linears(
            self.pool,
            self.given.isa,
            &[
                job(&layer.q, &layer.bias[0], &mut b.q, c.n_heads * c.head_dim),
                job(&layer.k, &layer.bias[1], &mut b.k, kv),
                job(&layer.v, &layer.bias[2], &mut b.v, kv),
            ],
        );
    }

    fn project_out(&mut self, layer: &Layer) {
        let b = &mut *self.buffers;
        linears(
            self.pool,
            self.given.isa,
            &[Linear {
                x: &b.attended,
                rows: self.given.step.rows(),
                weight: &layer.o,
                bias: None,
                out: SharedFloats::new(floats_mut(&mut b.branch)),
                out_stride: stride(self.given.config.hidden),
            }],
        );
    }

    /// `down(silu(gate x) * (up x))`; a task computes a tile of both and gates it.
    fn feed_forward(&mut self, layer: &Layer) {
        let (c, isa, rows) = (self.given.config, self.given.isa, self.given.step.rows());
        let b = &mut *self.buffers;
        let (gate, up) = (
            SharedFloats::new(floats_mut(&mut b.gate)),
            SharedFloats::new(floats_mut(&mut b.up)),
        );
        let job = |weight, out| Linear {
            x: &b.normed,
            rows,
            weight,
            bias: None,
            out,
            out_stride: stride(c.ffn),
        };
        let (gate_job, up_job) = (job(&layer.gate, gate), job(&layer.up, up));
        let width = tile_width(c.ffn, self.pool.threads());
        self.pool.run(c.ffn.div_ceil(width), &|scratch, task| {
            let columns = task * width..c.ffn.min((task + 1) * width);
            linear(isa, &gate_job, columns.clone(), scratch);
            linear(isa, &up_job, columns.clone(), scratch);
            for r in 0..rows {
                let (gate, up) = (
                    tile(&gate, r, &columns, c.ffn),
                    tile(&up, r, &columns, c.ffn),
                );
                if c.gelu {
                    geglu(isa, gate, up);
                } else {
                    swiglu(isa, gate, up);
                }
            }
        });
        linears(
            self.pool,
            self.given.isa,
            &[Linear {
                x: &b.gate,
                rows,
                weight: &layer.down,
                bias: None,
                out: SharedFloats::new(floats_mut(&mut b.branch)),
                out_stride: stride(c.hidden),
            }],
        );
    }

    /// Last norm and head, for the rows whose logits are wanted.
    fn head(
        &mut self,
        last: Option<Branch<'_>>,
        norm: &[Block],
        head: &Matrix,
        logits: &mut [f32],
    ) {
        let given = self.given;
        let (c, isa, wanted) = (
            self.given.config,
            self.given.isa,
            &self.given.step.logits_rows,
        );
        let b = &mut *self.buffers;
        let normed = SharedFloats::new(floats_mut(&mut b.normed));
        let x = SharedFloats::new(floats_mut(&mut b.x));
        for_rows(self.pool, wanted.len(), |_, i| {
            let r = wanted[i] as usize;
            // SAFETY: each row is one task's.
            let (x, normed) = unsafe { (row_mut(&x, r, c.hidden), row_mut(&normed, i, c.hidden)) };
            if let Some(last) = last {
                last.add(&given, x, row(&b.branch, r, c.hidden), normed);
            }
            rms_norm(isa, x, c.hidden, norm, c.rms_eps, normed);
        });
        linears(
            self.pool,
            self.given.isa,
            &[Linear {
                x: &b.normed,
                rows: wanted.len(),
                weight: head,
                bias: None,
                out: SharedFloats::new(logits),
                out_stride: c.vocab,
            }],
        );
    }
}

/// Runs linear maps side by side: the tasks are tiles of columns.
fn linears(pool: &mut Pool, isa: Isa, jobs: &[Linear<'_>]) {
    let columns: usize = jobs.iter().map(|job| job.weight.rows()).sum();
    let width = tile_width(columns, pool.threads());
    let tiles = |job: &Linear<'_>| job.weight.rows().div_ceil(width);
    pool.run(jobs.iter().map(tiles).sum(), &|scratch, mut task| {
        for job in jobs {
            if task < tiles(job) {
                let first = task * width;
                let last = job.weight.rows().min(first + width);
                // The tile is this task's alone.
                return linear(isa, job, first..last, scratch);
            }
            task -= tiles(job);
        }
    });
}
