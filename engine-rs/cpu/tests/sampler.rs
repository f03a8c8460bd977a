//! The sampler: equal on every instruction set, and equal to a plain definition of it.

mod common;

use common::{difference, Random};
use vosti_cpu::isa::Isa;
use vosti_cpu::sampler::{argmax, log_softmax, sample, Params};

fn params(seed: u64) -> Params {
    Params {
        seed,
        sample_index: 0,
        position: 0,
        temperature: 1.0,
        top_k: 0,
        top_p: 1.0,
        min_p: 0.0,
        repetition_penalty: 1.0,
        presence_penalty: 0.0,
        frequency_penalty: 0.0,
        logit_bias: Vec::new(),
    }
}

fn row(random: &mut Random, len: usize, spread: f32) -> Vec<f32> {
    (0..len)
        .map(|_| (random.unit() + random.unit() + random.unit()) * spread)
        .collect()
}

#[test]
fn argmax_takes_the_lowest_id_and_no_nan() {
    let isas = Isa::available();
    let check = |row: &[f32], want: u32| {
        for &isa in &isas {
            assert_eq!(argmax(isa, row), want, "{isa:?} {row:?}");
        }
    };
    let (nan, low) = (f32::NAN, f32::NEG_INFINITY);
    check(&[1.0, 3.0, 3.0], 1);
    check(&[nan, -5.0, nan], 1);
    check(&[nan, low], 1);
    check(&[nan, nan], 0);
    check(&[low; 40], 0);
    for len in [1, 15, 16, 17, 100] {
        for at in 0..len {
            let mut row = vec![0.5; len];
            row[at] = 2.0;
            check(&row, at as u32);
            let twice = [row.clone(), row].concat();
            check(&twice, at as u32);
        }
    }
}

#[test]
fn log_softmax_is_close_and_equal_everywhere() {
    let mut random = Random(5);
    for len in [1, 2, 16, 31, 1000, 49_152] {
        let logits = row(&mut random, len, 8.0);
        let mut want = vec![0.0; len];
        log_softmax(Isa::named("baseline").unwrap(), &logits, &mut want);
        for isa in Isa::available() {
            let mut got = vec![0.0; len];
            log_softmax(isa, &logits, &mut got);
            assert_eq!(difference(&want, &got), None, "{isa:?}");
        }
        let sum: f64 = logits.iter().map(|&x| f64::from(x).exp()).sum();
        for (got, x) in want.iter().zip(&logits) {
            assert!((f64::from(*got) - (f64::from(*x) - sum.ln())).abs() < 1e-5);
        }
    }
}

/// Sorts everything and keeps the beginnings; the noise is had by sampling two tokens at a time.
fn kept(logits: &[f32], p: &Params) -> Vec<usize> {
    let scores: Vec<f32> = logits.iter().map(|x| x / p.temperature).collect();
    let mut ids: Vec<usize> = (0..scores.len()).collect();
    ids.sort_by(|&a, &b| scores[b].partial_cmp(&scores[a]).unwrap().then(a.cmp(&b)));
    if p.top_k > 0 {
        ids.truncate(p.top_k);
    }
    let max = f64::from(scores[ids[0]]);
    let weight = |id: usize| (f64::from(scores[id]) - max).exp();
    let mass: f64 = ids.iter().map(|&id| weight(id)).sum();
    let mut sum = 0.0;
    let reached = ids.iter().position(|&id| {
        sum += weight(id);
        sum >= f64::from(p.top_p) * mass
    });
    ids.truncate(reached.map_or(ids.len(), |i| i + 1));
    ids.retain(|&id| weight(id) >= f64::from(p.min_p));
    ids
}

#[test]
fn filters_keep_what_sorting_keeps() {
    let mut random = Random(6);
    for round in 0..60 {
        let len = [5, 40, 3000][round % 3];
        let logits = row(&mut random, len, [0.5, 4.0][round % 2]);
        let mut p = params(random.next());
        p.temperature = [0.3, 1.0, 2.5][random.below(3)];
        p.top_k = [0, 1, 7, 5000][random.below(4)];
        p.top_p = [1.0, 0.9, 0.2][random.below(3)];
        p.min_p = [0.0, 0.05, 0.6][random.below(3)];
        let kept = kept(&logits, &p);
        for position in 0..40 {
            p.position = position;
            let token = sample(Isa::best(), &logits, &p, &[], &[]).unwrap();
            assert!(kept.contains(&(token as usize)), "{p:?}");
            // What is not kept may as well be absent.
            let mut only = vec![f32::NEG_INFINITY; len];
            kept.iter().for_each(|&id| only[id] = logits[id]);
            let open = Params {
                top_k: 0,
                top_p: 1.0,
                min_p: 0.0,
                ..p.clone()
            };
            let want = sample(Isa::best(), &only, &open, &[], &[]).unwrap();
            assert_eq!(token, want, "{p:?}");
            for isa in Isa::available() {
                assert_eq!(
                    sample(isa, &logits, &p, &[], &[]).unwrap(),
                    token,
                    "{isa:?}"
                );
            }
        }
    }
}

#[test]
fn draws_follow_the_probabilities() {
    let weights: [f32; 5] = [0.4, 0.3, 0.2, 0.07, 0.03];
    let logits = weights.map(f32::ln);
    let mut counts = [0u32; 5];
    for position in 0..20_000 {
        let p = Params {
            position,
            ..params(77)
        };
        counts[sample(Isa::best(), &logits, &p, &[], &[]).unwrap() as usize] += 1;
    }
    for (count, weight) in counts.iter().zip(weights) {
        let deviation = (20_000.0 * weight * (1.0 - weight)).sqrt();
        assert!(
            (*count as f32 - 20_000.0 * weight).abs() < 4.5 * deviation,
            "{counts:?}"
        );
    }
}

#[test]
fn seed_sample_and_position_each_change_the_draw() {
    let logits = vec![0.0; 5000];
    let draw = |p: &Params| sample(Isa::best(), &logits, p, &[], &[]).unwrap();
    let first = draw(&params(1));
    assert_eq!(first, draw(&params(1)));
    assert_ne!(first, draw(&params(2)));
    assert_ne!(first, draw(&params(1 << 32 | 1)));
    assert_ne!(
        first,
        draw(&Params {
            sample_index: 1,
            ..params(1)
        })
    );
    assert_ne!(
        first,
        draw(&Params {
            position: 1,
            ..params(1)
        })
    );
}

#[test]
fn penalties_and_bias() {
    let logits = [1.0, 0.9, -1.0, 0.0];
    let greedy = Params {
        temperature: 0.0,
        ..params(0)
    };
    let draw = |p: &Params, prompt: &[u32], output: &[u32]| {
        sample(Isa::best(), &logits, p, prompt, output).unwrap()
    };
    assert_eq!(draw(&greedy, &[], &[]), 0);
    let p = Params {
        repetition_penalty: 2.0,
        ..greedy.clone()
    };
    assert_eq!(draw(&p, &[0], &[]), 1);
    let p = Params {
        presence_penalty: 0.2,
        ..greedy.clone()
    };
    assert_eq!((draw(&p, &[0], &[]), draw(&p, &[], &[0])), (0, 1));
    let p = Params {
        frequency_penalty: 0.06,
        ..greedy.clone()
    };
    assert_eq!((draw(&p, &[], &[0]), draw(&p, &[], &[0, 3, 0])), (0, 1));
    let p = Params {
        logit_bias: vec![(2, 100.0), (0, -1.0)],
        ..greedy.clone()
    };
    assert_eq!(draw(&p, &[], &[]), 2);
}

#[test]
fn odd_rows_and_bad_parameters() {
    let isa = Isa::best();
    let (nan, high, low) = (f32::NAN, f32::INFINITY, f32::NEG_INFINITY);
    for p in [
        params(3),
        Params {
            top_p: 0.5,
            ..params(3)
        },
        Params {
            top_k: 2,
            ..params(3)
        },
    ] {
        assert_eq!(sample(isa, &[nan, low, 1.0, nan], &p, &[], &[]).unwrap(), 2);
        assert_eq!(sample(isa, &[0.0, high, 1.0], &p, &[], &[]).unwrap(), 1);
        assert!(sample(isa, &[nan, nan], &p, &[], &[]).unwrap() < 2);
        assert!(sample(isa, &[low, low], &p, &[], &[]).unwrap() < 2);
    }
    let bad = [
        Params {
            temperature: -1.0,
            ..params(0)
        },
        Params {
            temperature: nan,
            ..params(0)
        },
        Params {
            top_p: 0.0,
            ..params(0)
        },
        Params {
            min_p: 1.5,
            ..params(0)
        },
        Params {
            repetition_penalty: 0.0,
            ..params(0)
        },
        Params {
            presence_penalty: high,
            ..params(0)
        },
        Params {
            logit_bias: vec![(2, 0.0)],
            ..params(0)
        },
    ];
    for p in bad {
        assert!(sample(isa, &[0.0, 0.0], &p, &[], &[]).is_err(), "{p:?}");
    }
    assert!(sample(isa, &[], &params(0), &[], &[]).is_err());
    assert!(sample(isa, &[0.0], &params(0), &[1], &[]).is_err());
}
