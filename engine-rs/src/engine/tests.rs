//! The engine against a simulated device: the KV of a position is a hash of what its row gathers
//! through the block tables, the logits are that hash, and the sampled token is taken from it. A
//! paging mistake changes tokens.
use super::Engine;
use crate::scheduler::{EngineError, Outcome, Plan, UNKNOWN_TOKEN};
use std::collections::BTreeMap;

const VOCAB: u32 = 17;
const POISON: u64 = 0xdead_dead_dead_dead;

fn mix(a: u64, b: u64) -> u64 {
    let x = (a ^ b.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^ (x >> 29)
}

/// A counter-based generator: the tests are the same on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 += 1;
        (mix(self.0, 0x1234_5678) >> 16) % n
    }
}

/// What a request's outputs must be: a function of its prompt alone.
fn reference(prompt: &[u32], outputs: usize) -> Vec<u32> {
    let mut kv = 7;
    for t in prompt {
        kv = mix(kv, u64::from(*t));
    }
    let mut tokens = Vec::new();
    for _ in 0..outputs {
        let token = (kv >> 7) as u32 % VOCAB;
        tokens.push(token);
        kv = mix(kv, u64::from(token));
    }
    tokens
}

struct Device {
    block_size: usize,
    kv: Vec<Vec<u64>>,
    tables: Vec<Vec<Vec<u32>>>,
    last: Vec<u32>,
}

impl Device {
    fn new(blocks: &[u32], block_size: usize, seats: usize, row_len: usize) -> Self {
        Device {
            block_size,
            kv: blocks
                .iter()
                .map(|n| vec![POISON; *n as usize * block_size])
                .collect(),
            tables: vec![vec![vec![u32::MAX; row_len]; seats]; blocks.len()],
            last: vec![0; seats],
        }
    }

    fn slot(&self, g: usize, seat: usize, pos: usize) -> usize {
        self.tables[g][seat][pos / self.block_size] as usize * self.block_size
            + pos % self.block_size
    }

    /// Runs the plan; one token for each of its sampled sequences.
    fn execute(&mut self, plan: &Plan) -> Vec<u32> {
        for (g, updates) in plan.updates.iter().enumerate() {
            for u in 0..updates.seats.len() {
                let row = &mut self.tables[g][updates.seats[u] as usize];
                row[updates.indices[u] as usize] = updates.blocks[u];
            }
        }
        let mut tokens = Vec::new();
        for k in 0..plan.seats.len() {
            let seat = plan.seats[k] as usize;
            let mut hash = 0;
            for r in plan.query_start[k] as usize..plan.query_start[k + 1] as usize {
                let pos = plan.positions[r] as usize;
                let token = match plan.token_ids[r] {
                    UNKNOWN_TOKEN => self.last[seat],
                    token => token,
                };
                for g in 0..self.kv.len() {
                    let slot = self.slot(g, seat, pos);
                    assert_eq!(slot, plan.slots[g][r] as usize);
                    let past = if pos == 0 {
                        7
                    } else {
                        self.kv[g][self.slot(g, seat, pos - 1)]
                    };
                    self.kv[g][slot] = mix(past, u64::from(token));
                    hash = self.kv[g][slot];
                }
            }
            assert_eq!(
                plan.seq_lens[k],
                plan.positions[plan.query_start[k + 1] as usize - 1] + 1
            );
            if plan.sample_seqs.contains(&(k as u32)) {
                self.last[seat] = (hash >> 7) as u32 % VOCAB;
                tokens.push(self.last[seat]);
            }
        }
        tokens
    }
}

struct Job {
    prompt: Vec<u32>,
    max_tokens: usize,
    outputs: Vec<u32>,
}

/// An engine, its device, and what is asked of them.
struct Run {
    engine: Option<Engine>,
    device: Device,
    jobs: BTreeMap<u64, Job>,
    flying: Vec<(u64, Vec<u64>, Vec<u32>)>,
    finished: usize,
}

impl Run {
    fn new(
        blocks: &[u32],
        block_size: u32,
        seats: u32,
        budget: u32,
        max_len: u32,
        cache: bool,
    ) -> Self {
        let engine = Engine::new(
            blocks.to_vec(),
            vec![0; blocks.len()],
            block_size,
            seats,
            budget,
            max_len,
            VOCAB,
            cache,
        );
        let row_len = max_len.div_ceil(block_size) as usize;
        Run {
            engine: engine.ok(),
            device: Device::new(blocks, block_size as usize, seats as usize, row_len),
            jobs: BTreeMap::new(),
            flying: Vec::new(),
            finished: 0,
        }
    }

    fn with<T>(&mut self, call: impl FnOnce(Engine) -> (Engine, T)) -> T {
        let (engine, out) = call(self.engine.take().expect("an engine"));
        self.engine = Some(engine);
        out
    }

    fn add(&mut self, prompt: Vec<u32>, max_tokens: usize) -> u64 {
        let (last, text) = (prompt.len() as u32 - 1, prompt.clone());
        let added = self.with(|e| e.add(text, max_tokens as u32, Vec::new(), last, 0));
        let id = added.unwrap_or_else(|_| panic!("refused"));
        self.jobs.insert(
            id,
            Job {
                prompt,
                max_tokens,
                outputs: Vec::new(),
            },
        );
        id
    }

    fn fork(&mut self, parent: u64) {
        if let Ok(id) = self.with(|e| e.fork(parent)) {
            let (prompt, max_tokens) = (
                self.jobs[&parent].prompt.clone(),
                self.jobs[&parent].max_tokens,
            );
            self.jobs.insert(
                id,
                Job {
                    prompt,
                    max_tokens,
                    outputs: Vec::new(),
                },
            );
        }
    }

    fn schedule(&mut self) -> bool {
        let Some(plan) = self.with(|e| e.schedule()) else {
            return false;
        };
        let tokens = self.device.execute(&plan);
        let ids = plan
            .sample_seqs
            .iter()
            .map(|k| plan.seq_ids[*k as usize])
            .collect();
        self.flying.push((plan.id, ids, tokens));
        true
    }

    fn commit(&mut self) {
        let (id, ids, tokens) = self.flying.remove(0);
        let sampled = tokens.clone();
        let outcomes = self
            .with(|e| e.commit(id, tokens))
            .unwrap_or_else(|_| panic!("refused"));
        for ((id, token), outcome) in ids.iter().zip(sampled).zip(outcomes) {
            if outcome == Outcome::Dropped {
                continue;
            }
            let job = self.jobs.get_mut(id).expect("a job");
            job.outputs.push(token);
            if outcome == Outcome::Length {
                assert_eq!(job.outputs, reference(&job.prompt, job.max_tokens));
                self.jobs.remove(id);
                self.finished += 1;
            }
        }
        self.audit();
    }

    /// The plan is cancelled after it ran: what it wrote must not matter.
    fn cancel(&mut self) {
        if let Some((id, _, _)) = self.flying.pop() {
            self.with(|e| e.cancel(id))
                .unwrap_or_else(|_| panic!("refused"));
            self.rewind();
        }
    }

    /// The device's last sampled tokens are those of the plans still in flight, or committed.
    fn rewind(&mut self) {
        while !self.flying.is_empty() {
            self.commit();
        }
    }

    fn audit(&self) {
        let engine = self.engine.as_ref().expect("an engine");
        for g in 0..engine.groups() {
            let c = engine.block_counts(g).expect("a group");
            let total = self.device.kv[g].len() / self.device.block_size;
            assert_eq!((c.free + c.cached + c.referenced) as usize, total);
        }
    }

    fn drain(&mut self) {
        while self.schedule() || !self.flying.is_empty() {
            self.commit();
        }
        assert!(self.jobs.is_empty());
        let engine = self.engine.as_ref().expect("an engine");
        assert_eq!(
            (0..engine.groups())
                .map(|g| engine.block_counts(g).unwrap().referenced)
                .sum::<u32>(),
            0
        );
    }
}

fn random_run(seed: u64, blocks: &[u32], cache: bool, steps: usize) -> (usize, u64, u64) {
    let mut random = Random(seed << 32);
    let mut run = Run::new(blocks, 3, 5, 11, 40, cache);
    for _ in 0..steps {
        match random.below(10) {
            0 | 1 if run.jobs.len() < 12 => {
                // few distinct beginnings, so that prefixes are shared
                let own = random.below(8) as usize;
                let mut prompt: Vec<u32> = (0..1 + random.below(3) as u32 * 5).collect();
                prompt.extend((0..own).map(|_| random.below(u64::from(VOCAB)) as u32));
                run.add(prompt, 1 + random.below(12) as usize);
            }
            2 => {
                if let Some(parent) = run.jobs.keys().next().copied() {
                    run.fork(parent);
                }
            }
            3 if random.below(4) == 0 => {
                if let Some(id) = run.jobs.keys().last().copied() {
                    assert!(run.with(|e| e.abort(id)));
                    run.jobs.remove(&id);
                }
            }
            4 if random.below(6) == 0 => run.with(|e| (e.reset_cache(), ())),
            5 if random.below(3) == 0 => run.cancel(),
            _ if run.flying.len() < 1 + random.below(3) as usize => {
                if !run.schedule() && !run.flying.is_empty() {
                    run.commit();
                }
            }
            _ => run.commit(),
        }
    }
    run.drain();
    let counts = run.engine.as_ref().expect("an engine").counts();
    (run.finished, counts.preemptions, counts.hits)
}

#[test]
fn outputs_depend_on_the_prompt_alone() {
    for seed in 0..20 {
        let (finished, preemptions, hits) = random_run(seed, &[14], true, 4000);
        assert!(finished > 100 && preemptions > 0 && hits > 0);
        let (finished, preemptions, _) = random_run(seed, &[14, 17], false, 2000);
        assert!(finished > 50 && preemptions > 0);
        let (finished, _, hits) = random_run(seed, &[60, 14], true, 2000);
        assert!(finished > 50 && hits > 0);
    }
}

#[test]
fn the_device_notices_a_misplaced_row() {
    let mut run = Run::new(&[8], 4, 2, 16, 32, true);
    run.add((0..10).collect(), 4);
    assert!(run.schedule());
    run.device.kv[0][9] = POISON;
    run.commit();
    assert!(run.schedule());
    assert_ne!(
        run.flying[0].2,
        reference(&(0..10).collect::<Vec<_>>(), 2)[1..]
    );
}

#[test]
fn a_fork_shares_the_parents_full_blocks_without_a_cache() {
    let mut run = Run::new(&[20], 4, 4, 64, 32, false);
    let parent = run.add((0..13).collect(), 6);
    run.fork(parent);
    run.schedule();
    run.commit();
    assert_eq!(run.engine.as_ref().unwrap().counts().running, 1);
    run.schedule();
    assert_eq!(run.engine.as_ref().unwrap().counts().hits, 3);
    assert_eq!(
        run.engine
            .as_ref()
            .unwrap()
            .block_counts(0)
            .unwrap()
            .referenced,
        5
    );
    run.drain();
    assert_eq!(run.finished, 2);
}

#[test]
fn a_cancelled_plans_table_updates_come_again() {
    let mut run = Run::new(&[20, 20], 4, 4, 64, 32, true);
    run.add((0..13).collect(), 6);
    let lost = run.with(|e| e.schedule()).expect("a plan");
    let ids = run.engine.as_ref().unwrap().plan_ids();
    assert_eq!(ids, [lost.id]);
    assert!(run.with(|e| e.cancel(lost.id)).is_ok());
    run.drain();
    assert_eq!(run.finished, 1);
}

#[test]
fn refused_calls_say_why_and_change_nothing() {
    let mut run = Run::new(&[4], 4, 2, 16, 64, true);
    let refused = |run: &mut Run, prompt: Vec<u32>, max: u32, from: u32| {
        run.with(|e| e.add(prompt, max, Vec::new(), from, 0)).err()
    };
    assert!(refused(&mut run, vec![], 1, 0) == Some(EngineError::EmptyPrompt));
    assert!(refused(&mut run, vec![0; 64], 1, 0) == Some(EngineError::PromptTooLong));
    assert!(refused(&mut run, vec![VOCAB], 1, 0) == Some(EngineError::TokenOutOfRange));
    assert!(refused(&mut run, vec![1], 0, 0) == Some(EngineError::NoOutput));
    assert!(refused(&mut run, vec![1], 1, 1) == Some(EngineError::LogitsFrom));
    assert!(refused(&mut run, vec![1], 16, 0) == Some(EngineError::NeverFits));
    assert!(run.with(|e| e.fork(99)).err() == Some(EngineError::UnknownSequence));
    assert!(run.with(|e| e.commit(0, vec![])).err() == Some(EngineError::NoPlan));
    run.add(vec![1, 2, 3], 5);
    assert!(run.schedule());
    assert!(run.with(|e| e.commit(9, vec![0])).err() == Some(EngineError::WrongPlan));
    assert!(run.with(|e| e.commit(0, vec![])).err() == Some(EngineError::TokenCount));
    assert!(run.with(|e| e.commit(0, vec![VOCAB])).err() == Some(EngineError::TokenOutOfRange));
    assert!(run.with(|e| e.cancel(1)).err() == Some(EngineError::WrongPlan));
    assert!(!run.with(|e| e.abort(77)));
    run.drain();
    assert_eq!(run.finished, 1);
}
