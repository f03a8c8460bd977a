//! An engine, its device, and what is known of both from the calls and the plans alone.
use super::blocks::Group;
use super::device::{Device, Executed, Fault};
use super::model::Model;
use super::sequence::{Phase, Sequence};
use super::Check;
use crate::check;
use std::collections::{BTreeMap, VecDeque};
use vosti_engine::engine::{Counts, Engine};
use vosti_engine::Plan;

pub const VOCAB: u32 = 4;

/// Sizes of an engine, and what the layers of each group see.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Blocks of each group, and its window.
    pub groups: Vec<(u32, Option<usize>)>,
    pub block_size: u32,
    pub max_seqs: u32,
    pub budget: u32,
    pub max_len: u32,
    pub prefix_cache: bool,
}

/// A plan in flight; `executed` once the device has run it.
pub struct Flight {
    pub plan: Plan,
    pub executed: Option<Executed>,
    /// The device's last tokens before it ran.
    pub last: Vec<u32>,
}

/// How often each kind of thing happened.
#[derive(Default, Debug)]
pub struct Seen {
    pub calls: usize,
    pub plans: usize,
    pub rows: usize,
    pub delivered: usize,
    pub placeholders: usize,
    pub finished: usize,
    pub aborted: usize,
    pub cancelled: usize,
    pub forked: usize,
    pub resets: usize,
    pub loads: usize,
    pub refused: usize,
    pub preempted_with_output: usize,
    pub hits: usize,
    pub resumed_with_hit: usize,
    /// Blocks given back as no later row sees them.
    pub slid: usize,
}

pub struct World {
    pub shape: Shape,
    pub model: Model,
    engine: Option<Engine>,
    pub device: Device,
    pub groups: Vec<Group>,
    /// The windows that the engine was told.
    pub told: Vec<Option<usize>>,
    /// Those that are not over.
    pub sequences: BTreeMap<u64, Sequence>,
    pub waiting: VecDeque<u64>,
    /// Those with a seat, oldest first.
    pub running: Vec<u64>,
    pub flights: VecDeque<Flight>,
    /// The engine's tables have not changed since the last plan told them.
    pub tables_known: bool,
    pub preemptions: u64,
    pub seen: Seen,
}

impl World {
    pub fn new(shape: Shape, fault: Option<Fault>) -> Self {
        let (blocks, windows): (Vec<u32>, Vec<_>) = shape.groups.iter().copied().unzip();
        let (size, seats) = (shape.block_size as usize, shape.max_seqs as usize);
        let narrow = if fault == Some(Fault::NarrowWindow) {
            size
        } else {
            0
        };
        let narrowed = |w: Option<usize>| w.map(|w| w.saturating_sub(narrow).max(1));
        let told: Vec<Option<usize>> = windows.iter().copied().map(narrowed).collect();
        let engine = Engine::new(
            blocks.clone(),
            told.iter().map(|w| w.unwrap_or(0) as u32).collect(),
            shape.block_size,
            shape.max_seqs,
            shape.budget,
            shape.max_len,
            VOCAB,
            shape.prefix_cache,
        );
        let mut device = Device::new(&blocks, size, seats, shape.max_len as usize);
        device.fault = fault;
        device.planted = usize::from(narrow > 0);
        World {
            model: Model {
                windows,
                vocab: VOCAB,
                weights: 0,
            },
            engine: engine.ok(),
            device,
            told,
            groups: blocks.iter().map(|n| Group::new(*n, seats)).collect(),
            sequences: BTreeMap::new(),
            waiting: VecDeque::new(),
            running: Vec::new(),
            flights: VecDeque::new(),
            tables_known: true,
            preemptions: 0,
            seen: Seen::default(),
            shape,
        }
    }

    pub fn engine(&self) -> &Engine {
        self.engine.as_ref().expect("the shape is one of an engine")
    }

    pub fn counts(&self) -> Counts {
        self.engine().counts()
    }

    /// A call, which takes and returns the engine.
    pub fn with<T>(&mut self, call: impl FnOnce(Engine) -> (Engine, T)) -> T {
        let engine = self.engine.take().expect("the shape is one of an engine");
        let (engine, out) = call(engine);
        self.engine = Some(engine);
        out
    }

    pub fn sequence(&mut self, id: u64) -> &mut Sequence {
        self.sequences
            .get_mut(&id)
            .expect("a sequence that is not over")
    }

    /// Ids of those that are to go on, oldest first.
    pub fn unfinished(&self) -> Vec<u64> {
        let running = self.running.iter().filter(|id| self.sequences[id].live());
        running.chain(&self.waiting).copied().collect()
    }

    /// The `count` youngest running sequences lost their seats and wait, first in line.
    pub fn preempted(&mut self, count: usize) -> Check {
        let oldest = self.unfinished().first().copied();
        for _ in 0..count {
            let id = self.running.pop().ok_or("preempted, and none ran")?;
            check!(Some(id) != oldest, "the oldest sequence was preempted");
            self.leave(id);
            let sequence = self.sequence(id);
            let idle = sequence.phase == Phase::Running && sequence.in_flight == 0;
            check!(idle, "a sequence with rows in flight was preempted");
            (sequence.phase, sequence.computed, sequence.planned) = (Phase::Waiting, 0, 0);
            self.seen.preempted_with_output += usize::from(self.sequences[&id].resumes());
            self.waiting.push_front(id);
        }
        Ok(())
    }

    /// Sequences that are over, and have no row in flight, give their blocks back.
    pub fn settle(&mut self) {
        let (sequences, mut over) = (&self.sequences, Vec::new());
        self.running.retain(|id| {
            let ends = sequences[id].phase == Phase::Draining && sequences[id].in_flight == 0;
            over.extend(ends.then_some(*id));
            !ends
        });
        for id in over {
            self.leave(id);
            self.sequences.remove(&id);
        }
    }

    fn leave(&mut self, id: u64) {
        let seat = self.sequences[&id].seat;
        for group in &mut self.groups {
            group.release(seat);
        }
    }

    /// The engine counts what is known here; no block is lost, and none is held by nobody.
    pub fn audit(&self) -> Check {
        let (engine, counts) = (self.engine(), self.counts());
        let plans: Vec<u64> = self.flights.iter().map(|f| f.plan.id).collect();
        check!(engine.plan_ids() == plans, "other plans are in flight");
        check!(counts.plans == plans.len(), "plans are counted otherwise");
        let running = self.running.len();
        check!(counts.running == running, "{running} sequences have seats");
        check!(counts.waiting >= self.waiting.len(), "some do not wait");
        for (g, group) in self.groups.iter().enumerate() {
            let blocks = engine.block_counts(g).ok_or("a group is missing")?;
            let total = (blocks.free + blocks.cached + blocks.referenced) as usize;
            let (all, held) = (group.holders.len(), group.held());
            check!(total == all, "{total} blocks of {all} are accounted for");
            let referenced = blocks.referenced as usize;
            let leaks = self.tables_known && referenced != held || referenced < held;
            check!(!leaks, "{referenced} blocks are referenced, {held} held");
            let cached = blocks.cached > 0 && !self.shape.prefix_cache;
            check!(!cached, "blocks are cached without a cache");
        }
        Ok(())
    }
}
