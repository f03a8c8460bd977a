//! The whole forward pass: a row's logits and KV do not depend on batch, chunk, pages, threads or
//! instruction set.

mod common;

use common::{difference, Random};
use vosti_cpu::batch::{Batch, Table};
use vosti_cpu::config::Config;
use vosti_cpu::isa::Isa;
use vosti_cpu::kernels::rope::RopeScaling;
use vosti_cpu::load::Tensor;
use vosti_cpu::matrix::Format;
use vosti_cpu::model::Model;

const VOCAB: usize = 50;
const BLOCK: usize = 8;
const SEATS: usize = 80;
const PAGES: usize = 130;
/// More than one split of attention.
const LEN: usize = 300;

/// Two layer groups, one with a window; key-value heads shared; heads and branches normalised;
/// biases; two rotary embeddings; scales.
fn config() -> Config {
    Config {
        n_layers: 3,
        hidden: 32,
        n_heads: 4,
        n_kv_heads: 2,
        head_dim: 24,
        ffn: 96,
        vocab: VOCAB,
        rms_eps: 1e-6,
        ropes: vec![
            (10_000.0, RopeScaling::Linear { factor: 2.0 }),
            (500.0, RopeScaling::None),
        ],
        layer_ropes: vec![0, 1, 0],
        qk_norm: true,
        sandwich_norms: true,
        gelu: true,
        attention_scale: Some(0.3),
        embed_scale: 5.5,
        tie_embeddings: true,
        layer_groups: vec![0, 1, 0],
        group_windows: vec![None, Some(9)],
    }
}

fn model(isa: Isa, threads: usize) -> Model {
    let shapes = |name: &str| match name.rsplit('.').next().unwrap() {
        "embed" => (Format::F32, VOCAB, 32),
        "attn_norm" | "attn_out_norm" | "ffn_norm" | "ffn_out_norm" | "norm" => {
            (Format::F32, 1, 32)
        }
        "q" => (Format::Q4_1, 96, 32),
        "k" | "v" => (Format::Q8_0, 48, 32),
        "o" => (Format::Bf16, 32, 96),
        "gate" | "up" => (Format::Q4_0, 96, 32),
        "down" => (Format::F16, 32, 96),
        "q_norm" | "k_norm" => (Format::F32, 1, 24),
        "q_bias" => (Format::F32, 1, 96),
        _ => (Format::F32, 1, 48),
    };
    let find = |name: &str| {
        let (format, rows, cols) = shapes(name);
        let seed = name
            .bytes()
            .fold(99, |h: u64, b| h.wrapping_mul(31) + u64::from(b));
        let raw = Random(seed).raw(format, rows, cols, false);
        Some(Tensor {
            format,
            rows,
            cols,
            raw: Vec::leak(raw),
        })
    };
    Model::new(config(), find, &[PAGES * BLOCK; 2], BLOCK, threads, isa).unwrap()
}

fn tokens(sequence: usize) -> Vec<u32> {
    let mut random = Random(1000 + sequence as u64);
    (0..LEN).map(|_| random.below(VOCAB) as u32).collect()
}

/// Block tables of two groups: `pages[seat]` from 0 on, shifted in the second group.
struct Pages {
    tables: [Vec<u32>; 2],
}

const COLS: usize = LEN.div_ceil(BLOCK);

impl Pages {
    /// The pages of `seat` begin at `first[seat]`.
    fn new(first: &[usize], reverse: bool) -> Self {
        let mut tables = [vec![u32::MAX; SEATS * COLS], vec![u32::MAX; SEATS * COLS]];
        for (seat, &first) in first.iter().enumerate() {
            for i in 0..COLS.min(PAGES - first) {
                let page = first + if reverse { COLS - 1 - i } else { i };
                tables[0][seat * COLS + i] = page as u32;
                tables[1][seat * COLS + i] = ((page + 7) % PAGES) as u32;
            }
        }
        Self { tables }
    }
}

/// One step: (sequence = seat, first position, number of rows) each; all rows' logits.
fn step(model: &mut Model, pages: &Pages, parts: &[(usize, usize, usize)]) -> Vec<f32> {
    let (mut ids, mut positions, mut starts) = (vec![], vec![], vec![0u32]);
    let (mut lens, mut seats, mut slots) = (vec![], vec![], [vec![], vec![]]);
    for &(seat, first, count) in parts {
        ids.extend(&tokens(seat)[first..first + count]);
        for position in first..first + count {
            positions.push(position as u32);
            for (slots, table) in slots.iter_mut().zip(&pages.tables) {
                let page = table[seat * COLS + position / BLOCK];
                slots.push(page * BLOCK as u32 + (position % BLOCK) as u32);
            }
        }
        starts.push(ids.len() as u32);
        lens.push((first + count) as u32);
        seats.push(seat as u32);
    }
    let wanted: Vec<u32> = (0..ids.len() as u32).collect();
    let table = |group: usize| Table {
        items: &pages.tables[group],
        rows: SEATS,
        cols: COLS,
    };
    let batch = Batch {
        token_ids: &ids,
        positions: &positions,
        slots: slots.iter().map(Vec::as_slice).collect(),
        query_start: &starts,
        seq_lens: &lens,
        seats: &seats,
        tables: vec![table(0), table(1)],
        logits_rows: &wanted,
    };
    let step = batch.check(model.limits()).unwrap();
    let mut logits = vec![0.0; ids.len() * VOCAB];
    model.forward(&step, &mut logits).unwrap();
    logits
}

fn poison(model: &mut Model) {
    for group in 0..2 {
        for slot in 0..PAGES * BLOCK {
            model.fill_slot(group, slot, f32::NAN).unwrap();
        }
    }
}

/// Sequence 0 alone, in one chunk.
fn whole() -> Vec<f32> {
    let logits = step(
        &mut model(Isa::best(), 1),
        &Pages::new(&[0], false),
        &[(0, 0, LEN)],
    );
    assert!(logits.iter().all(|x| x.is_finite()));
    logits
}

#[test]
fn isa_and_threads_change_nothing() {
    let want = whole();
    for isa in Isa::available() {
        for threads in 1..=3 {
            let mut model = model(isa, threads);
            let got = step(&mut model, &Pages::new(&[0], false), &[(0, 0, LEN)]);
            assert_eq!(difference(&want, &got), None, "{isa:?} {threads}");
        }
    }
}

#[test]
fn chunks_and_pages_change_nothing() {
    let want = whole();
    let mut model = model(Isa::best(), 2);
    for chunk in [1, 3, 16, 64] {
        for reverse in [false, true] {
            poison(&mut model);
            let pages = Pages::new(&[11], reverse);
            let mut got = Vec::new();
            for first in (0..LEN).step_by(chunk) {
                let part = (0, first, chunk.min(LEN - first));
                got.extend(step(&mut model, &pages, &[part]));
            }
            assert_eq!(difference(&want, &got), None, "chunk {chunk}");
        }
    }
}

#[test]
fn neighbours_change_nothing() {
    let want = whole();
    let mut model = model(Isa::best(), 2);
    for neighbours in [1, 2, 5, 40, 69] {
        poison(&mut model);
        let first: Vec<usize> = (0..=neighbours)
            .map(|s| if s == 0 { 0 } else { 41 + s })
            .collect();
        let pages = Pages::new(&first, false);
        let mut got = Vec::new();
        for chunk in [0..1, 1..40, 40..290, 290..291, 291..LEN] {
            // The neighbours' first row, again and again, on a page each; ours in the middle.
            let mut parts: Vec<_> = (1..=neighbours).map(|s| (s, 0, 1)).collect();
            let at = neighbours / 2;
            parts.insert(at, (0, chunk.start, chunk.len()));
            let logits = step(&mut model, &pages, &parts);
            got.extend_from_slice(&logits[at * VOCAB..(at + chunk.len()) * VOCAB]);
        }
        assert_eq!(difference(&want, &got), None, "{neighbours} neighbours");
    }
}

#[test]
fn a_planted_difference_is_noticed() {
    let want = whole();
    let mut model = model(Isa::best(), 1);
    let pages = Pages::new(&[0], false);
    step(&mut model, &pages, &[(0, 0, LEN - 1)]);
    model.fill_slot(0, 5, 0.125).unwrap();
    let got = step(&mut model, &pages, &[(0, LEN - 1, 1)]);
    assert!(difference(&want[(LEN - 1) * VOCAB..], &got).is_some());
}

#[test]
fn bad_batches_are_refused() {
    let model = model(Isa::best(), 1);
    let table: Vec<u32> = (0..COLS as u32).collect();
    let table = || Table {
        items: &table,
        rows: 1,
        cols: COLS,
    };
    let good = Batch {
        token_ids: &[1, 2],
        positions: &[0, 1],
        slots: vec![&[0, 1], &[0, 1]],
        query_start: &[0, 2],
        seq_lens: &[2],
        seats: &[0],
        tables: vec![table(), table()],
        logits_rows: &[1],
    };
    assert!(good.check(model.limits()).is_ok());
    let wrong_table = Table {
        items: &[PAGES as u32],
        rows: 1,
        cols: 1,
    };
    type Change<'a> = Box<dyn Fn(&mut Batch<'a>) + 'a>;
    let changes: Vec<(&str, Change<'_>)> = vec![
        ("token", Box::new(|b| b.token_ids = &[1, VOCAB as u32])),
        ("positions", Box::new(|b| b.positions = &[0, 2])),
        ("positions", Box::new(|b| b.positions = &[0])),
        ("slot", Box::new(|b| b.slots[1] = &[0, 9])),
        ("slots", Box::new(|b| b.slots.truncate(1))),
        ("query_start", Box::new(|b| b.query_start = &[0, 1])),
        ("query_start", Box::new(|b| b.query_start = &[0, 0, 2])),
        ("seq_lens", Box::new(|b| b.seq_lens = &[3])),
        ("seat", Box::new(|b| b.seats = &[1])),
        ("block", Box::new(move |b| b.tables[0] = wrong_table)),
        ("logits_rows", Box::new(|b| b.logits_rows = &[1, 1])),
        ("logits_rows", Box::new(|b| b.logits_rows = &[2])),
    ];
    for (word, change) in changes {
        let mut batch = good.clone();
        change(&mut batch);
        let message = batch.check(model.limits()).unwrap_err().to_string();
        assert!(message.contains(word), "{word}: {message}");
    }
}
