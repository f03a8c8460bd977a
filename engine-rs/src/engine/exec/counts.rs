//! What an engine holds at the moment, in numbers.
use super::Engine;
#[cfg(verus_only)]
use crate::scheduler::*;
use vstd::prelude::*;

verus! {

/// Sizes of what an engine holds at the moment.
#[derive(Clone, Copy)]
pub struct Counts {
    /// Sequences without a seat; those aborted while waiting count until they come to the front.
    pub waiting: usize,
    /// Sequences with a seat.
    pub running: usize,
    /// Plans scheduled, and neither committed nor cancelled.
    pub plans: usize,
    /// Preemptions so far.
    pub preemptions: u64,
    /// Blocks reused so far, counted in one group.
    pub hits: u64,
}

/// Blocks of one group of layers.
#[derive(Clone, Copy)]
pub struct BlockCounts {
    /// Held by no sequence and not cached.
    pub free: u32,
    /// Held by no sequence, but found by a prefix that is equal.
    pub cached: u32,
    /// Held by some sequence.
    pub referenced: u32,
}

impl Engine {
    pub fn counts(&self) -> (c: Counts)
        ensures
            c.waiting == self.state().waiting@.len(),
            c.running == self.state().running@.len(),
            c.plans == self.state().plans@.len(),
    {
        Counts {
            waiting: self.s.waiting.len(),
            running: self.s.running.len(),
            plans: self.s.plans.len(),
            preemptions: self.s.preemptions,
            hits: self.s.hits,
        }
    }

    /// Ids of the plans in flight, oldest first.
    pub fn plan_ids(&self) -> (ids: Vec<u64>)
        ensures
            ids@ == self.state().plans@.map_values(|p: PlanRecord| p.id),
    {
        self.s.plan_ids()
    }

    /// Groups of layers.
    pub fn groups(&self) -> (n: usize)
        ensures
            n == self.state().groups@.len(),
    {
        self.s.groups.len()
    }

    /// Blocks of group `g`; `None` when there is no such group.
    pub fn block_counts(&self, g: usize) -> (c: Option<BlockCounts>)
        ensures
            c is Some <==> g < self.state().groups@.len(),
            c matches Some(c) ==> {
                &&& c.free + c.cached == self.state().groups@[g as int].num_free()
                &&& c.free + c.cached + c.referenced == self.state().groups@[g as int].num_blocks()
            },
    {
        proof {
            use_type_invariant(self);
        }
        if g >= self.s.groups.len() {
            return None;
        }
        proof {
            assert(group_ok(self.s.config, self.s.groups@[g as int]));
            self.s.groups@[g as int].lemma_bounds(0);
        }
        let group = &self.s.groups[g];
        let cached = group.count_cached();
        let unused = group.count_free();
        Some(
            BlockCounts {
                free: unused - cached,
                cached,
                referenced: group.count_blocks() - unused,
            },
        )
    }
}

} // verus!
