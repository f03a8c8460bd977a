//! Linear maps: one order of summation, whatever the format, batch, tile or instruction set.

mod common;

use common::{difference, Random, FORMATS};
use vosti_cpu::isa::Isa;
use vosti_cpu::kernels::linear::{linear, read_row, scratch_blocks, Linear};
use vosti_cpu::lanes::{Block, CANONICAL_NAN};
use vosti_cpu::matrix::Matrix;
use vosti_cpu::memory::{floats, SharedFloats};

/// `[rows, outputs]`, computed in tiles of `tile` columns.
fn apply(
    isa: Isa,
    x: &[Block],
    rows: usize,
    weight: &Matrix,
    bias: Option<&[f32]>,
    tile: usize,
) -> Vec<f32> {
    let mut out = vec![f32::NAN; rows * weight.rows()];
    let mut scratch = vec![Block([f32::NAN; 16]); scratch_blocks(weight.cols())];
    let shared = SharedFloats::new(&mut out);
    let job = Linear {
        x,
        rows,
        weight,
        bias,
        out: shared,
        out_stride: weight.rows(),
    };
    for first in (0..weight.rows()).step_by(tile) {
        linear(
            isa,
            &job,
            first..weight.rows().min(first + tile),
            &mut scratch,
        );
    }
    out
}

/// The definition, one product at a time.
fn reference(x: &[f32], weights: &[f32], bias: Option<f32>) -> f32 {
    let mut lanes = [0.0f32; 16];
    for (k, (x, w)) in x.iter().zip(weights).enumerate() {
        lanes[k % 16] += x * w;
    }
    for width in [8, 4, 2, 1] {
        for lane in 0..width {
            lanes[lane] += lanes[lane + width];
        }
    }
    let y = bias.map_or(lanes[0], |bias| lanes[0] + bias);
    if y.is_nan() {
        CANONICAL_NAN
    } else {
        y
    }
}

fn widths(weights_per_block: usize) -> &'static [usize] {
    match weights_per_block {
        1 => &[1, 15, 16, 17, 33, 64, 100],
        32 => &[32, 64, 96, 576],
        _ => &[256, 768],
    }
}

#[test]
fn every_format_batch_tile_and_isa_gives_the_defined_bits() {
    let mut random = Random(7);
    for format in FORMATS {
        for &cols in widths(format.block().0) {
            for (outputs, rows, wild) in
                [(1, 1, false), (5, 2, false), (37, 11, false), (6, 5, true)]
            {
                let weight = random.matrix(format, outputs, cols, wild);
                let x = random.rows(rows, cols);
                let bias: Vec<f32> = (0..outputs).map(|_| random.unit()).collect();
                let stride = cols.next_multiple_of(32);
                let mut want = Vec::new();
                let mut weights = vec![Block::ZERO; stride / 16];
                let mut scratch = vec![Block::ZERO; scratch_blocks(cols)];
                for row in 0..rows {
                    for (output, &bias) in bias.iter().enumerate() {
                        let isa = Isa::named("baseline").unwrap();
                        read_row(isa, &weight, output, &mut weights, &mut scratch);
                        let x = &floats(&x)[row * stride..][..cols];
                        want.push(reference(x, floats(&weights), Some(bias)));
                    }
                }
                for isa in Isa::available() {
                    for tile in [16, 32, 64] {
                        let got = apply(isa, &x, rows, &weight, Some(&bias), tile);
                        let found = difference(&want, &got);
                        assert_eq!(found, None, "{format:?} {isa:?} {cols} {outputs} {rows}");
                    }
                }
            }
        }
    }
}

#[test]
fn weights_read_the_same_on_every_isa() {
    let mut random = Random(8);
    for format in FORMATS {
        let cols = 256;
        let weight = random.matrix(format, 9, cols, true);
        for row in 0..9 {
            let read = |isa| {
                let mut out = vec![Block::ZERO; cols / 16];
                let mut scratch = vec![Block::ZERO; scratch_blocks(cols)];
                read_row(isa, &weight, row, &mut out, &mut scratch);
                floats(&out)
                    .iter()
                    .map(|x| if x.is_nan() { CANONICAL_NAN } else { *x })
                    .collect()
            };
            let want: Vec<f32> = read(Isa::available()[0]);
            for isa in Isa::available() {
                assert_eq!(difference(&want, &read(isa)), None, "{format:?} {isa:?}");
            }
        }
    }
}

#[test]
fn a_row_does_not_depend_on_its_batch() {
    let mut random = Random(9);
    for format in FORMATS {
        let weight = random.matrix(format, 21, 256, false);
        let x = random.rows(70, 256);
        let alone: Vec<Vec<f32>> = (0..70)
            .map(|r| apply(Isa::best(), &x[r * 16..][..16], 1, &weight, None, 16))
            .collect();
        for rows in 1..=70 {
            let together = apply(Isa::best(), &x, rows, &weight, None, 32);
            assert_eq!(
                difference(&alone[..rows].concat(), &together),
                None,
                "{format:?} {rows}"
            );
        }
    }
}

/// The comparison is not blind: a sum that uses more lanes in a larger batch is found out.
#[test]
fn a_sum_that_depends_on_the_batch_is_noticed() {
    let mut random = Random(10);
    let (x, w) = (random.rows(1, 576), random.rows(1, 576));
    let planted = |batch: usize| {
        let mut lanes = [0.0f32; 32];
        let width = if batch < 4 { 16 } else { 32 };
        for (k, (x, w)) in floats(&x).iter().zip(floats(&w)).enumerate() {
            lanes[k % width] += x * w;
        }
        lanes.iter().sum::<f32>()
    };
    assert!(difference(&[planted(1)], &[planted(8)]).is_some());
}
