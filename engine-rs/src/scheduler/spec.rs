use crate::layer_group::*;
use crate::sequence::*;
use std::collections::VecDeque;
use vstd::prelude::*;

verus! {

/// The rows of one sequence in one plan: positions `from..to`.
#[derive(Clone, Copy)]
pub struct Entry {
    pub seq: u32,
    pub seat: u32,
    pub from: u32,
    pub to: u32,
    /// The last row's logits choose the sequence's next token.
    pub sampled: bool,
}

/// A plan in flight: its entries are the next `entries` of the queue.
#[derive(Clone, Copy)]
pub struct PlanRecord {
    pub id: u64,
    pub entries: usize,
}

/// All that the engine knows. The queue holds the entries of the plans in flight, oldest first,
/// then the `draft` entries of the plan being made.
pub struct Scheduler {
    pub config: Config,
    pub groups: Vec<LayerGroup>,
    pub seqs: Vec<Sequence>,
    pub free_entries: Vec<u32>,
    pub free_seats: Vec<u32>,
    pub waiting: VecDeque<u32>,
    /// In order of arrival.
    pub running: Vec<u32>,
    pub queue: VecDeque<Entry>,
    pub plans: VecDeque<PlanRecord>,
    pub draft: usize,
    /// Rows of the plan being made.
    pub draft_rows: u32,
    pub next_plan: u64,
    /// Sequences preempted since the engine was made, modulo 2^64.
    pub preemptions: u64,
    /// Blocks (of one group) that sequences did not have to compute when they got their seat,
    /// modulo 2^64.
    pub hits: u64,
}

/// How far a sequence gets when the entries of a queue are committed in turn.
pub struct Track {
    /// Each entry began where the one before ended, and sampled exactly at the last known token.
    pub ok: bool,
    /// Positions computed.
    pub pos: int,
    /// Tokens known.
    pub len: int,
}

pub open spec fn advance(t: Track, e: Entry) -> Track {
    Track {
        ok: t.ok && e.from == t.pos && t.pos < e.to <= t.len && (e.sampled <==> e.to == t.len),
        pos: e.to as int,
        len: if e.sampled {
            t.len + 1
        } else {
            t.len
        },
    }
}

/// `t` moved by the entries of sequence `i` in `q`, first to last.
pub open spec fn track(q: Seq<Entry>, i: int, t: Track) -> Track
    decreases q.len(),
{
    if q.len() == 0 {
        t
    } else {
        track(
            q.drop_first(),
            i,
            if q[0].seq == i {
                advance(t, q[0])
            } else {
                t
            },
        )
    }
}

/// Entries of sequence `i` in `q`.
pub open spec fn entries_of(q: Seq<Entry>, i: int) -> nat
    decreases q.len(),
{
    if q.len() == 0 {
        0
    } else {
        entries_of(q.drop_first(), i) + if q[0].seq == i {
            1nat
        } else {
            0nat
        }
    }
}

/// Entries of all plans in flight.
pub open spec fn entries_in(plans: Seq<PlanRecord>) -> nat
    decreases plans.len(),
{
    if plans.len() == 0 {
        0
    } else {
        entries_in(plans.drop_first()) + plans[0].entries as nat
    }
}

/// Rows of the entries from `a` on.
pub open spec fn span(q: Seq<Entry>, a: int) -> int
    decreases q.len() - a,
{
    if a < 0 || a >= q.len() {
        0
    } else {
        q[a].to - q[a].from + span(q, a + 1)
    }
}

} // verus!
