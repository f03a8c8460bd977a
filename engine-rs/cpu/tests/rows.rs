//! Norm, gate, attention: equal bits on every instruction set, and close to f64.

mod common;

use common::{difference, Random};
use vosti_cpu::isa::Isa;
use vosti_cpu::kernels::attention::{attend, finish, merge, partial_blocks, View};
use vosti_cpu::kernels::norm::{add_row, rms_norm};
use vosti_cpu::kernels::swiglu::swiglu;
use vosti_cpu::lanes::Block;
use vosti_cpu::memory::floats;

/// Runs `kernel` on every instruction set; the results must be one.
fn same_everywhere(kernel: impl Fn(Isa) -> Vec<f32>) -> Vec<f32> {
    let want = kernel(Isa::named("baseline").unwrap());
    for isa in Isa::available() {
        assert_eq!(difference(&want, &kernel(isa)), None, "{isa:?}");
    }
    want
}

#[test]
fn norm_add_and_gate() {
    let mut random = Random(3);
    for width in [1, 8, 31, 64, 576, 1000] {
        let (x, y) = (random.rows(1, width), random.rows(1, width));
        let got = same_everywhere(|isa| {
            let mut out = x.clone();
            rms_norm(isa, &x, width, &y, 1e-5, &mut out);
            floats(&out)[..width].to_vec()
        });
        let f64s = |x: &[Block]| floats(x)[..width].iter().map(|&x| f64::from(x)).collect();
        let (x64, y64): (Vec<f64>, Vec<f64>) = (f64s(&x), f64s(&y));
        let mean = x64.iter().map(|x| x * x).sum::<f64>() / width as f64;
        for i in 0..width {
            let want = x64[i] / (mean + 1e-5).sqrt() * y64[i];
            assert!((want - f64::from(got[i])).abs() < 1e-5, "norm {width} {i}");
        }
        same_everywhere(|isa| {
            let mut out = x.clone();
            add_row(isa, &mut out, &y);
            floats(&out).to_vec()
        });
        let got = same_everywhere(|isa| {
            let mut gate = x.clone();
            swiglu(isa, &mut gate, &y);
            floats(&gate)[..width].to_vec()
        });
        for i in 0..width {
            let want = x64[i] / (1.0 + (-x64[i]).exp()) * y64[i];
            assert!((want - f64::from(got[i])).abs() < 1e-6, "gate {width} {i}");
        }
    }
}

#[test]
fn extreme_values_are_equal_too() {
    let values = [
        0.0,
        -0.0,
        1e-40,
        -1e-45,
        3e38,
        -3e38,
        f32::INFINITY,
        f32::NEG_INFINITY,
    ];
    let nans = [
        f32::NAN,
        f32::from_bits(0xffc1_2345),
        f32::from_bits(0x7f80_0001),
        88.7,
        -87.5,
    ];
    let all: Vec<f32> = values.into_iter().chain(nans).collect();
    for &a in &all {
        for &b in &all {
            let (x, y) = ([Block([a; 16]); 2], [Block([b; 16]); 2]);
            same_everywhere(|isa| {
                let (mut sum, mut gate, mut norm) = (x, x, x);
                add_row(isa, &mut sum, &y);
                swiglu(isa, &mut gate, &y);
                rms_norm(isa, &x, 32, &y, 1e-5, &mut norm);
                [floats(&sum), floats(&gate), floats(&norm)].concat()
            });
        }
    }
}

/// Rows of a sequence, of `HEADS` query heads for each of `KV_HEADS`.
#[derive(Clone, Copy)]
struct Case {
    head_dim: usize,
    block_size: usize,
    position: usize,
    rows: usize,
    window: Option<usize>,
}

const KV_HEADS: usize = 2;
const HEADS: usize = 3;

impl Case {
    fn last(&self) -> usize {
        self.position + self.rows - 1
    }

    fn first_seen(&self, position: usize) -> usize {
        self.window.map_or(0, |w| (position + 1).saturating_sub(w))
    }
}

/// Queries, keys and values of a case; pages of nobody hold `poison`, and so does what lies before
/// the first position that is seen.
struct Memory {
    heads: Vec<Block>,
    keys: Vec<Block>,
    values: Vec<Block>,
}

impl Memory {
    fn new(case: &Case, seed: u64, table: &[u32], poison: f32) -> Self {
        let blocks = case.head_dim.div_ceil(16);
        let slots = (table.iter().max().unwrap() + 2) as usize * case.block_size;
        let mut random = Random(seed);
        let mut head = || random.rows(1, case.head_dim)[..blocks].to_vec();
        let heads = (0..case.rows * HEADS).flat_map(|_| head()).collect();
        let mut keys = vec![Block([poison; 16]); slots * KV_HEADS * blocks];
        let mut values = keys.clone();
        for position in 0..=case.last() {
            let page = table[position / case.block_size] as usize;
            let slot = page * case.block_size + position % case.block_size;
            for kv_head in 0..KV_HEADS {
                let (key, value) = (head(), head());
                if position >= case.first_seen(case.position) {
                    let at = (slot * KV_HEADS + kv_head) * blocks;
                    keys[at..at + blocks].copy_from_slice(&key);
                    values[at..at + blocks].copy_from_slice(&value);
                }
            }
        }
        Self {
            heads,
            keys,
            values,
        }
    }

    fn view<'a>(&'a self, case: &Case, table: &'a [u32]) -> View<'a> {
        let blocks = case.head_dim.div_ceil(16);
        View {
            heads: &self.heads,
            row_blocks: HEADS * blocks,
            group: HEADS,
            position: case.position,
            rows: case.rows,
            window: case.window,
            keys: &self.keys,
            values: &self.values,
            kv_heads: KV_HEADS,
            kv_head: 1,
            head_blocks: blocks,
            table,
            block_size: case.block_size,
            scale: 1.0 / (case.head_dim as f32).sqrt(),
        }
    }
}

/// Outputs of all queries of a view, one after the other.
fn attention(isa: Isa, view: &View<'_>, head_dim: usize) -> Vec<f32> {
    let size = partial_blocks(view.head_blocks);
    let mut states = vec![Block::ZERO; view.queries() * size];
    for split in view.splits() {
        let mut next = vec![Block([f32::NAN; 16]); view.queries() * size];
        let ahead = Some((view, *view.splits().end()));
        attend(isa, view, split, ahead, &mut next);
        for (query, state) in states.chunks_exact_mut(size).enumerate() {
            let next = &next[query * size..][..size];
            if split == *view.splits_of(query).start() {
                state.copy_from_slice(next);
            } else if view.splits_of(query).contains(&split) {
                merge(isa, state, next);
            }
        }
    }
    let mut out = vec![0.0; view.queries() * head_dim];
    for (state, out) in states
        .chunks_exact(size)
        .zip(out.chunks_exact_mut(head_dim))
    {
        finish(state, out);
    }
    out
}

/// The same for one query in f64, rounded to f32.
fn oracle(view: &View<'_>, case: &Case, query: usize) -> Vec<f32> {
    let at = |kv: &[Block], position: usize, i: usize| {
        let page = view.table[position / case.block_size] as usize;
        let slot = page * case.block_size + position % case.block_size;
        f64::from(floats(kv)[((slot * KV_HEADS + 1) * view.head_blocks) * 16 + i])
    };
    let head = &floats(view.heads)[query * view.head_blocks * 16..][..case.head_dim];
    let last = case.position + query / HEADS;
    let first = case.first_seen(last);
    let scores: Vec<f64> = (first..=last)
        .map(|p| {
            let products = head.iter().enumerate();
            let dot: f64 = products
                .map(|(i, &q)| f64::from(q) * at(view.keys, p, i))
                .sum();
            dot * f64::from(view.scale)
        })
        .collect();
    let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = scores.iter().map(|s| (s - max).exp()).sum();
    (0..case.head_dim)
        .map(|i| {
            let weighted = scores.iter().enumerate();
            let total: f64 = weighted
                .map(|(j, s)| (s - max).exp() * at(view.values, first + j, i))
                .sum();
            (total / sum) as f32
        })
        .collect()
}

/// Position of the first row, rows and window.
const CASES: [(usize, usize, Option<usize>); 10] = [
    (0, 1, None),
    (15, 1, None),
    (0, 17, None),
    (255, 1, None),
    (250, 8, None),
    (256, 5, None),
    (700, 2, Some(698)),
    (530, 4, Some(31)),
    (254, 8, Some(3)),
    (700, 1, None),
];

#[test]
fn attention_is_close_to_f64_and_blind_to_pages_and_neighbours() {
    let mut random = Random(21);
    for head_dim in [2, 16, 64, 72, 128] {
        for (position, rows, window) in CASES {
            let case = Case {
                head_dim,
                block_size: [1, 16, 7][random.below(3)],
                position,
                rows,
                window,
            };
            let pages = case.last() / case.block_size + 1;
            let plain: Vec<u32> = (0..pages as u32).collect();
            let mut permuted: Vec<u32> = plain.iter().map(|page| page * 2 + 1).collect();
            for i in 0..pages {
                permuted.swap(i, random.below(pages));
            }
            let seed = random.next();
            let memory = Memory::new(&case, seed, &plain, 0.0);
            let view = memory.view(&case, &plain);
            let got = same_everywhere(|isa| attention(isa, &view, head_dim));
            for poison in [f32::NAN, f32::INFINITY] {
                let memory = Memory::new(&case, seed, &permuted, poison);
                let moved = attention(Isa::best(), &memory.view(&case, &permuted), head_dim);
                assert_eq!(difference(&got, &moved), None, "{head_dim} {position}");
            }
            for (query, got) in got.chunks_exact(head_dim).enumerate() {
                let mut alone = view;
                alone.heads = &view.heads[query * view.head_blocks..];
                (alone.group, alone.rows) = (1, 1);
                alone.position += query / HEADS;
                let alone = attention(Isa::best(), &alone, head_dim);
                assert_eq!(
                    difference(got, &alone),
                    None,
                    "{head_dim} {position} {query}"
                );
                for (got, want) in got.iter().zip(oracle(&view, &case, query)) {
                    assert!((got - want).abs() < 2e-6, "{head_dim} {position} {query}");
                }
            }
        }
    }
}

/// A later row's key and value may be anything: an earlier row of the same tile does not see them.
#[test]
fn what_a_row_does_not_see_changes_nothing() {
    let case = Case {
        head_dim: 64,
        block_size: 16,
        position: 250,
        rows: 8,
        window: None,
    };
    let table: Vec<u32> = (0..17).collect();
    for isa in Isa::available() {
        let mut memory = Memory::new(&case, 5, &table, 0.0);
        let want = attention(isa, &memory.view(&case, &table), 64);
        for poison in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            memory.keys[(257 * KV_HEADS + 1) * 4..][..4].fill(Block([poison; 16]));
            memory.values[(257 * KV_HEADS + 1) * 4..][..4].fill(Block([poison; 16]));
            let got = attention(isa, &memory.view(&case, &table), 64);
            let before = 7 * HEADS * 64;
            assert_eq!(difference(&want[..before], &got[..before]), None, "{isa:?}");
            assert!(difference(&want[before..], &got[before..]).is_some());
        }
    }
}
