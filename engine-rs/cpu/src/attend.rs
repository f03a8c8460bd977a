//! The attention part of a step: keys and values to their slots, then each row over its splits.

use std::ops::Range;

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

    /// What the rows `rows`, neighbours in a sequence, see through one KV head.
    fn view<'k>(
        &'k self,
        layer: &Layer,
        kv: &'k LayerKv,
        heads: &'k [Block],
        rows: Range<usize>,
        kv_head: usize,
    ) -> View<'k> {
        let (c, sequence) = (self.config, self.step.sequences[rows.start] as usize);
        let (group, head_blocks) = (c.n_heads / c.n_kv_heads, c.head_blocks());
        let first = rows.start * c.n_heads + kv_head * group;
        View {
            heads: &heads[first * head_blocks..],
            row_blocks: c.n_heads * head_blocks,
            group,
            position: self.step.positions[rows.start] as usize,
            rows: rows.len(),
            window: c.group_windows[layer.group],
            keys: &kv.keys,
            values: &kv.values,
            kv_heads: c.n_kv_heads,
            kv_head,
            head_blocks,
            table: &self.step.tables[layer.group][sequence],
            block_size: self.block_size,
            scale: c
                .attention_scale
                .unwrap_or(1.0 / (c.head_dim as f32).sqrt()),
        }
    }

    /// Where the output of a query of a view goes: its first float among the attended rows.
    fn attended_at(&self, row: usize, kv_head: usize, query: usize) -> usize {
        let (c, group) = (self.config, self.config.n_heads / self.config.n_kv_heads);
        let head = kv_head * group + query % group;
        (row + query / group) * stride(c.n_heads * c.head_dim) + head * c.head_dim
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
            let angles = &floats(row(angles, r * c.ropes.len() + layer.rope, dim))[..dim];
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

    /// One task for each tile of rows and KV head.
    fn attend_rows(&mut self, layer: &Layer, kv: &LayerKv) {
        let (given, b) = (self.given, &mut *self.buffers);
        let (c, isa, tiles) = (given.config, given.isa, &given.step.tiles);
        let size = partial_blocks(c.head_blocks());
        let (heads, out) = (&b.heads, SharedFloats::new(floats_mut(&mut b.attended)));
        self.pool.run(tiles.len() * c.n_kv_heads, &|scratch, task| {
            let (rows, kv_head) = (&tiles[task / c.n_kv_heads], task % c.n_kv_heads);
            let view = given.view(layer, kv, heads, rows.clone(), kv_head);
            // Most likely this thread's next task.
            let following = tiles
                .get((task + 1) / c.n_kv_heads)
                .map(|rows| given.view(layer, kv, heads, rows.clone(), (task + 1) % c.n_kv_heads));
            let (states, rest) = scratch.split_at_mut(view.queries() * size);
            for split in view.splits() {
                let next = if split == *view.splits().end() {
                    following
                        .as_ref()
                        .map(|view| (view, *view.splits().start()))
                } else {
                    Some((&view, split + 1))
                };
                attend(isa, &view, split, next, rest);
                let partials = states.chunks_exact_mut(size).zip(rest.chunks_exact(size));
                for (query, (state, next)) in partials.enumerate() {
                    let seen = view.splits_of(query);
                    if split == *seen.start() {
                        state.copy_from_slice(next);
                    } else if seen.contains(&split) {
                        merge(isa, state, next);
                    }
                }
            }
            for (query, state) in states.chunks_exact(size).enumerate() {
                let start = given.attended_at(rows.start, kv_head, query);
                // SAFETY: the heads of a row and KV head are one task's.
                finish(state, unsafe { out.slice(start, c.head_dim) });
            }
        });
    }

    /// One task for each row, KV head and split; then the splits of each row are merged.
    fn attend_splits(&mut self, layer: &Layer, kv: &LayerKv, splits: usize) {
        let (given, b) = (self.given, &mut *self.buffers);
        let (c, isa, rows) = (given.config, given.isa, given.step.rows());
        let (size, group) = (partial_blocks(c.head_blocks()), c.n_heads / c.n_kv_heads);
        let (heads, out) = (&b.heads, SharedFloats::new(floats_mut(&mut b.attended)));
        let view = |row: usize, kv_head| given.view(layer, kv, heads, row..row + 1, kv_head);
        let partials = SharedFloats::new(floats_mut(&mut b.partials));
        // SAFETY: the partial results of a row, KV head and split are one task's, in the first job
        // and in the second.
        let partials = |row: usize, kv_head: usize, split: usize| unsafe {
            let index = (row * c.n_kv_heads + kv_head) * splits + split;
            blocks_mut(partials.slice(index * group * size * 16, group * size * 16))
        };
        self.pool.run(rows * c.n_kv_heads * splits, &|_, task| {
            let (split, kv_head) = (task % splits, task / splits % c.n_kv_heads);
            let row = task / splits / c.n_kv_heads;
            let view = view(row, kv_head);
            if view.splits().contains(&split) {
                attend(isa, &view, split, None, partials(row, kv_head, split));
            }
        });
        for_rows(self.pool, rows, |_, row| {
            for kv_head in 0..c.n_kv_heads {
                let seen = view(row, kv_head).splits();
                let states = partials(row, kv_head, *seen.start());
                for (query, state) in states.chunks_exact_mut(size).enumerate() {
                    for split in seen.clone().skip(1) {
                        merge(
                            isa,
                            state,
                            &partials(row, kv_head, split)[query * size..][..size],
                        );
                    }
                    let start = given.attended_at(row, kv_head, query);
                    // SAFETY: a row is one task's.
                    finish(state, unsafe { out.slice(start, c.head_dim) });
                }
            }
        });
    }
}
