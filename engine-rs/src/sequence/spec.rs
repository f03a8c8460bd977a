use vstd::prelude::*;

verus! {

/// What is fixed when the engine is made.
#[derive(Clone, Copy)]
pub struct Config {
    /// Tokens a block holds.
    pub block_size: u32,
    /// Sequences that may run at once: seats, and rows of each block table.
    pub max_seqs: u32,
    /// Token budget of one step.
    pub max_batched_tokens: u32,
    /// Most tokens of one sequence, prompt and output together.
    pub max_model_len: u32,
    /// Token ids are below this.
    pub vocab_size: u32,
    /// Blocks that every group has at least.
    pub capacity: u32,
}

impl Config {
    pub open spec fn wf(self) -> bool {
        &&& self.block_size > 0
        &&& self.max_seqs > 0
        &&& self.max_batched_tokens > 0
        &&& 2 <= self.max_model_len < 0x8000_0000
        &&& self.vocab_size > 0
    }
}

/// Where a sequence is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Structural)]
pub enum Phase {
    /// The entry holds no sequence.
    Free,
    /// In the waiting queue: no seat, no block.
    Waiting,
    /// Aborted while waiting; leaves the queue when it comes to the front.
    Dropped,
    /// Has a seat and blocks.
    Running,
    /// Finished or aborted, but rows of it are in flight: its blocks stay until those are over.
    Draining,
}

/// ```text
/// position   0 ........ computed ........ planned ....... len ........ len + pending .. max_len
///            KV committed  rows in flight   still to plan   sampled tokens in flight
/// ```
pub struct Sequence {
    pub phase: Phase,
    /// Distinguishes the sequences that use this entry one after another.
    pub generation: u32,
    /// Known tokens: the prompt, then what was committed.
    pub tokens: Vec<u32>,
    pub prompt_len: u32,
    /// The sequence is finished when it has this many tokens.
    pub max_len: u32,
    /// It is also finished by any of these.
    pub stop: Vec<u32>,
    /// Prefixes are shared only under the same salt.
    pub salt: u64,
    /// First position whose logits have not been delivered.
    pub need_from: u32,
    /// Positions whose KV is committed.
    pub computed: u32,
    /// Positions whose KV is committed or in flight.
    pub planned: u32,
    /// Sampled tokens in flight.
    pub pending: u32,
    /// Entries of plans in flight that name this sequence.
    pub in_flight: usize,
    /// Row of the block tables, while running or draining.
    pub seat: u32,
    /// The sequence whose prompt this one has, if it was forked: entry and generation.
    pub parent: Option<(u32, u32)>,
}

impl Sequence {
    pub fn is_running(&self) -> (b: bool)
        ensures
            b == (self.phase is Running),
    {
        matches!(self.phase, Phase::Running)
    }

    /// Known tokens.
    pub open spec fn len(&self) -> int {
        self.tokens@.len() as int
    }

    /// Has a seat.
    pub open spec fn live(&self) -> bool {
        self.phase is Running || self.phase is Draining
    }

    /// Every token is in the vocabulary, the lengths are in order, and the blocks can hold them.
    pub open spec fn tokens_ok(&self, c: Config) -> bool {
        &&& 0 < self.prompt_len <= self.len() < self.max_len <= c.max_model_len
        &&& self.max_len <= c.capacity * c.block_size
        &&& forall|p: int| 0 <= p < self.len() ==> #[trigger] self.tokens@[p] < c.vocab_size
    }

    /// Logits still to come start at a known token that is not computed.
    pub open spec fn need_ok(&self) -> bool {
        self.computed <= self.need_from < self.len()
    }

    pub open spec fn counters_ok(&self) -> bool {
        &&& self.computed <= self.planned <= self.len() + self.pending <= self.max_len
        &&& self.planned < self.max_len
        &&& self.computed <= self.len()
    }

    pub open spec fn wf(&self, c: Config) -> bool {
        match self.phase {
            Phase::Waiting => {
                &&& self.tokens_ok(c)
                &&& self.need_ok()
                &&& self.computed == 0 && self.planned == 0 && self.pending == 0
            },
            Phase::Running => {
                &&& self.tokens_ok(c)
                &&& self.need_ok()
                &&& self.counters_ok()
            },
            Phase::Draining => true,
            Phase::Dropped | Phase::Free => self.emptied(),
        }
    }

    /// Nothing is kept of it.
    pub open spec fn emptied(&self) -> bool {
        self.tokens@.len() == 0 && self.stop@.len() == 0
    }
}

} // verus!
