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

struct Case {
    head_dim: usize,
    block_size: usize,
    first: usize,
    last: usize,
}

const KV_HEADS: usize = 2;

/// Output of one head, with the pages in the order of `table`; pages of nobody hold `poison`.
fn attention(isa: Isa, case: &Case, seed: u64, table: &[u32], poison: f32) -> Vec<f32> {
    let blocks = case.head_dim.div_ceil(16);
    let slots = (table.iter().max().unwrap() + 2) as usize * case.block_size;
    let mut keys = vec![Block([poison; 16]); slots * KV_HEADS * blocks];
    let mut values = keys.clone();
    let mut random = Random(seed);
    let fill = |row: &mut [Block], random: &mut Random| {
        row.copy_from_slice(&random.rows(1, case.head_dim)[..blocks]);
    };
    let mut query = vec![Block::ZERO; blocks];
    fill(&mut query, &mut random);
    for position in 0..=case.last {
        let slot = table[position / case.block_size] as usize * case.block_size
            + position % case.block_size;
        for head in 0..KV_HEADS {
            let at = (slot * KV_HEADS + head) * blocks;
            let (mut key, mut value) = (vec![Block::ZERO; blocks], vec![Block::ZERO; blocks]);
            fill(&mut key, &mut random);
            fill(&mut value, &mut random);
            if position >= case.first {
                keys[at..at + blocks].copy_from_slice(&key);
                values[at..at + blocks].copy_from_slice(&value);
            }
        }
    }
    let view = View {
        keys: &keys,
        values: &values,
        kv_heads: KV_HEADS,
        head_blocks: blocks,
        table,
        block_size: case.block_size,
        first: case.first,
        last: case.last,
        scale: 1.0 / (case.head_dim as f32).sqrt(),
    };
    let mut state = vec![Block::ZERO; partial_blocks(blocks)];
    for split in view.splits() {
        let mut next = vec![Block([f32::NAN; 16]); partial_blocks(blocks)];
        attend(isa, &view, 1, &query, split, &mut next);
        if split == *view.splits().start() {
            state = next;
        } else {
            merge(isa, &mut state, &next);
        }
    }
    let mut out = vec![0.0; case.head_dim];
    finish(&state, &mut out);
    [out, oracle(&view, &query, case)].concat()
}

/// The same in f64, rounded to f32.
fn oracle(view: &View<'_>, query: &[Block], case: &Case) -> Vec<f32> {
    let at = |kv: &[Block], position: usize, i: usize| {
        let slot = view.table[position / case.block_size] as usize * case.block_size
            + position % case.block_size;
        f64::from(floats(kv)[((slot * KV_HEADS + 1) * view.head_blocks) * 16 + i])
    };
    let scores: Vec<f64> = (case.first..=case.last)
        .map(|p| {
            let dot: f64 = (0..case.head_dim)
                .map(|i| f64::from(floats(query)[i]) * at(view.keys, p, i))
                .sum();
            dot * f64::from(view.scale)
        })
        .collect();
    let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = scores.iter().map(|s| (s - max).exp()).sum();
    (0..case.head_dim)
        .map(|i| {
            let total: f64 = scores
                .iter()
                .enumerate()
                .map(|(j, s)| (s - max).exp() * at(view.values, case.first + j, i))
                .sum();
            (total / sum) as f32
        })
        .collect()
}

#[test]
fn attention_is_close_to_f64_and_blind_to_pages() {
    let mut random = Random(21);
    for head_dim in [2, 16, 64, 72, 128] {
        for (first, last) in [
            (0, 0),
            (0, 15),
            (0, 16),
            (0, 255),
            (0, 256),
            (3, 700),
            (500, 530),
        ] {
            let case = Case {
                head_dim,
                block_size: [1, 16, 7][random.below(3)],
                first,
                last,
            };
            let pages = last / case.block_size + 1;
            let plain: Vec<u32> = (0..pages as u32).collect();
            let mut permuted: Vec<u32> = plain.iter().map(|page| page * 2 + 1).collect();
            for i in 0..pages {
                permuted.swap(i, random.below(pages));
            }
            let seed = random.next();
            let got = same_everywhere(|isa| attention(isa, &case, seed, &plain, 0.0));
            for poison in [f32::NAN, f32::INFINITY] {
                let moved = attention(Isa::best(), &case, seed, &permuted, poison);
                let (got, moved) = (&got[..head_dim], &moved[..head_dim]);
                assert_eq!(difference(got, moved), None, "{head_dim} {first} {last}");
            }
            for i in 0..head_dim {
                let error = (got[i] - got[head_dim + i]).abs();
                assert!(error < 2e-6, "{head_dim} {first} {last}: {error}");
            }
        }
    }
}
