//! The attention part of a step: keys and values to their slots, then each row over its splits.

use crate::batch::first_seen;
use crate::buffers::{blocks_mut, row};
use crate::config::Config;
use crate::forward::{for_rows, Given, Pass};
use crate::kernels::attention::{attend, finish, merge, partial_blocks, View, SPLIT};
use crate::kernels::norm::rms_norm;
use crate::kernels::rope::rotate;
use crate::lanes::Block;
use crate::memory::{blocks_for, floats, floats_mut, SharedFloats};
use crate::model::{stride, Layer, LayerKv};

/// Copies one head out of a row, normalising it if the model does (Qwen3), and turns it.
struct HeadPlacer<'a> {
    config: &'a Config,
    isa: crate::isa::Isa,
    angles: &'a [f32],
}

impl HeadPlacer<'_> {
    fn place(&self, head: &[f32], norm: Option<&[Block]>, temp: &mut [Block], out: &mut [Block]) {
        let (dim, out) = (self.config.head_dim, floats_mut(out));
        let Some(norm) = norm else {
            return rotate(head, self.angles, out);
        };
        let blocks = blocks_for(dim);
        let (padded, normed) = temp[..2 * blocks].split_at_mut(blocks);
        padded.fill(Block::ZERO);
        floats_mut(padded)[..dim].copy_from_slice(head);
        rms_norm(
            self.isa,
            padded,
            dim,
            &norm[..blocks],
            self.config.rms_eps,
            normed,
        );
        rotate(&floats(normed)[..dim], self.angles, out);
    }
}

/// Head `index` of a buffer of heads of `padded` floats.
///
/// # Safety
/// As for `SharedFloats::slice`.
unsafe fn head_mut<'a>(buffer: &SharedFloats<'a>, index: usize, padded: usize) -> &'a mut [Block] {
    blocks_mut(buffer.slice(index * padded, padded))
}

impl Given<'_> {
    /// How many splits of a row get tasks of their own; 0: a task walks all splits of its row.
    /// Only the speed depends on it.
    pub(crate) fn splits_apart(&self, threads: usize) -> usize {
        let tasks = self.step.rows() * self.config.n_kv_heads;
        let last = self.step.positions.iter().max().map_or(0, |&p| p as usize);
        if last >= SPLIT && tasks < 8 * threads {
            last / SPLIT + 1
        } else {
            0
        }
    }

    fn view<'k>(&'k self, layer: &Layer, kv: &'k LayerKv, r: usize) -> View<'k> {
        let (c, position) = (self.config, self.step.positions[r] as usize);
        View {
            keys: &kv.keys,
            values: &kv.values,
            kv_heads: c.n_kv_heads,
            head_blocks: c.head_blocks(),
            table: &self.step.tables[layer.group][self.step.sequences[r] as usize],
            block_size: self.block_size,
            first: first_seen(position, c.group_windows[layer.group]),
            last: position,
            scale: 1.0 / (c.head_dim as f32).sqrt(),
        }
    }
}

impl Pass<'_> {
    /// Queries to `heads`, keys and values to the slots of their rows.
    pub(crate) fn place(&mut self, layer: &Layer, kv: &mut LayerKv) {
        let (
            Given {
                config: c,
                isa,
                step,
                ..
            },
            b,
        ) = (self.given, &mut *self.buffers);
        let (dim, padded) = (c.head_dim, c.head_blocks() * 16);
        let slots = &step.slots[layer.group];
        let heads = SharedFloats::new(floats_mut(&mut b.heads));
        let keys = SharedFloats::new(floats_mut(&mut kv.keys));
        let values = SharedFloats::new(floats_mut(&mut kv.values));
        let (q, k, v, angles) = (&b.q, &b.k, &b.v, &b.angles);
        for_rows(self.pool, step.rows(), |temp, r| {
            let angles = &floats(row(angles, r, dim))[..dim];
            let placer = HeadPlacer {
                config: c,
                isa,
                angles,
            };
            let q = floats(row(q, r, c.n_heads * dim));
            let k = floats(row(k, r, c.n_kv_heads * dim));
            let v = floats(row(v, r, c.n_kv_heads * dim));
            for h in 0..c.n_heads {
                // SAFETY: a row is one task's.
                let out = unsafe { head_mut(&heads, r * c.n_heads + h, padded) };
                placer.place(&q[h * dim..][..dim], layer.q_norm.as_deref(), temp, out);
            }
            for h in 0..c.n_kv_heads {
                let index = slots[r] as usize * c.n_kv_heads + h;
                // SAFETY: a row is one task's, and a checked step has one row for each slot.
                let (key, value) = unsafe {
                    (
                        head_mut(&keys, index, padded),
                        head_mut(&values, index, padded),
                    )
                };
                key.fill(Block::ZERO);
                placer.place(&k[h * dim..][..dim], layer.k_norm.as_deref(), temp, key);
                value.fill(Block::ZERO);
                floats_mut(value)[..dim].copy_from_slice(&v[h * dim..][..dim]);
            }
        });
    }

    pub(crate) fn attend(&mut self, layer: &Layer, kv: &LayerKv) {
        match self.given.splits_apart(self.pool.threads()) {
            0 => self.attend_rows(layer, kv),
            splits => self.attend_splits(layer, kv, splits),
        }
    }

    /// One task for each row and KV head.
    fn attend_rows(&mut self, layer: &Layer, kv: &LayerKv) {
        let (given, b) = (self.given, &mut *self.buffers);
        let Given {
            config: c,
            isa,
            step,
            ..
        } = given;
        let (blocks, group, rows) = (c.head_blocks(), c.n_heads / c.n_kv_heads, step.rows());
        let size = partial_blocks(blocks);
        let (heads, out) = (&b.heads, SharedFloats::new(floats_mut(&mut b.attended)));
        self.pool.run(rows * c.n_kv_heads, &|scratch, task| {
            let (r, kv_head) = (task % rows, task / rows);
            let view = given.view(layer, kv, r);
            let (states, next) = scratch[..(group + 1) * size].split_at_mut(group * size);
            for split in view.splits() {
                for (g, state) in states.chunks_exact_mut(size).enumerate() {
                    let head = r * c.n_heads + kv_head * group + g;
                    let query = &heads[head * blocks..][..blocks];
                    if split == *view.splits().start() {
                        attend(isa, &view, kv_head, query, split, state);
                    } else {
                        attend(isa, &view, kv_head, query, split, next);
                        merge(isa, state, next);
                    }
                }
            }
            for (g, state) in states.chunks_exact(size).enumerate() {
                let head = kv_head * group + g;
                let start = r * stride(c.n_heads * c.head_dim) + head * c.head_dim;
                // SAFETY: the heads of a row and KV head are one task's.
                finish(state, unsafe { out.slice(start, c.head_dim) });
            }
        });
    }

    /// One task for each row, KV head and split; then the splits of each row are merged.
    fn attend_splits(&mut self, layer: &Layer, kv: &LayerKv, splits: usize) {
        let (given, b) = (self.given, &mut *self.buffers);
        let Given {
            config: c,
            isa,
            step,
            ..
        } = given;
        let (blocks, group, rows) = (c.head_blocks(), c.n_heads / c.n_kv_heads, step.rows());
        let size = partial_blocks(blocks);
        let (heads, out) = (&b.heads, SharedFloats::new(floats_mut(&mut b.attended)));
        let partials = SharedFloats::new(floats_mut(&mut b.partials));
        // SAFETY: a partial result is one task's, in the first job and in the second.
        let partial = |head: usize, split: usize| unsafe {
            blocks_mut(partials.slice((head * splits + split) * size * 16, size * 16))
        };
        self.pool.run(rows * c.n_kv_heads * splits, &|_, task| {
            let (split, kv_head, r) = (
                task % splits,
                task / splits % c.n_kv_heads,
                task / splits / c.n_kv_heads,
            );
            let view = given.view(layer, kv, r);
            if view.splits().contains(&split) {
                for head in (0..group).map(|g| r * c.n_heads + kv_head * group + g) {
                    let query = &heads[head * blocks..][..blocks];
                    attend(isa, &view, kv_head, query, split, partial(head, split));
                }
            }
        });
        for_rows(self.pool, rows, |_, r| {
            let seen = given.view(layer, kv, r).splits();
            for h in 0..c.n_heads {
                let head = r * c.n_heads + h;
                let state = partial(head, *seen.start());
                for split in seen.clone().skip(1) {
                    merge(isa, state, partial(head, split));
                }
                let start = r * stride(c.n_heads * c.head_dim) + h * c.head_dim;
                // SAFETY: a row is one task's.
                finish(state, unsafe { out.slice(start, c.head_dim) });
            }
        });
    }
}
