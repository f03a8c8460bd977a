//! The plan of a step as the runner reads it, and what makes it well-formed.
use super::*;
#[cfg(verus_only)]
use crate::layer_group::*;
#[cfg(verus_only)]
use crate::sequence::*;
use vstd::prelude::*;

verus! {

/// Stands for a token that is sampled by a plan still in flight.
pub const UNKNOWN_TOKEN: u32 = 0xffff_ffff;

/// One row: position `pos` of the sequence at `seat`.
pub struct Row {
    pub seq: u32,
    pub seat: u32,
    pub pos: u32,
}

/// Block table entries that changed: `blocks[u]` is the entry `indices[u]` of seat `seats[u]`.
pub struct Updates {
    pub seats: Vec<u32>,
    pub indices: Vec<u32>,
    pub blocks: Vec<u32>,
}

/// One step. R rows of S sequences, in L of which logits are wanted, N of which are sampled.
pub struct Plan {
    pub id: u64,
    /// `[R]`; `UNKNOWN_TOKEN` where the token is the last one sampled for the row's seat.
    pub token_ids: Vec<u32>,
    /// `[R]`
    pub positions: Vec<u32>,
    /// One `[R]` for each group: block * block_size + offset, where the row's KV goes.
    pub slots: Vec<Vec<u32>>,
    /// `[S + 1]`: sequence `k` has the rows from `query_start[k]` to `query_start[k + 1]`.
    pub query_start: Vec<u32>,
    /// `[S]`: positions that the sequence's last row sees, itself included.
    pub seq_lens: Vec<u32>,
    /// `[S]`: its row of the block tables.
    pub seats: Vec<u32>,
    /// `[S]`
    pub seq_ids: Vec<u64>,
    /// `[L]`: rows whose logits are wanted, ascending.
    pub logits_rows: Vec<u32>,
    /// `[N]`: sequences whose last row is sampled, ascending.
    pub sample_seqs: Vec<u32>,
    /// One for each group.
    pub updates: Vec<Updates>,
    pub rows: Ghost<Seq<Row>>,
}

/// The id by which callers name the sequence in entry `index`.
pub open spec fn spec_seq_id(index: u32, generation: u32) -> u64 {
    (generation as u64 * 0x1_0000_0000 + index as u64) as u64
}

pub fn seq_id(index: u32, generation: u32) -> (id: u64)
    ensures
        id == spec_seq_id(index, generation),
{
    generation as u64 * 0x1_0000_0000 + index as u64
}

pub open spec fn token_at(s: Sequence, pos: u32) -> u32 {
    if pos < s.len() {
        s.tokens@[pos as int]
    } else {
        UNKNOWN_TOKEN
    }
}

impl Scheduler {
    /// A running sequence has this row above what is computed, in its table.
    pub open spec fn row_ok(&self, r: Row) -> bool {
        let s = self.seqs@[r.seq as int];
        &&& r.seq < self.seqs@.len()
        &&& s.phase is Running
        &&& r.seat == s.seat
        &&& s.computed <= r.pos < s.planned
    }

    /// The slot of row `r` in group `g`.
    pub open spec fn row_slot(&self, g: int, r: Row) -> int {
        slot(self.groups@[g].seat(r.seat as int), self.config.block_size as nat, r.pos as int)
    }

    /// The arrays say, row for row, what `rows` say.
    pub open spec fn arrays_ok(&self, p: Plan) -> bool {
        let rows = p.rows@;
        &&& rows.len() <= u32::MAX
        &&& p.token_ids@.len() == rows.len()
        &&& p.positions@.len() == rows.len()
        &&& p.slots@.len() == self.groups@.len()
        &&& forall|r: int| 0 <= r < rows.len() ==> self.row_ok(#[trigger] rows[r])
        &&& forall|r: int| 0 <= r < rows.len() ==> #[trigger] p.positions@[r] == rows[r].pos
        &&& forall|r: int|
            0 <= r < rows.len() ==> #[trigger] p.token_ids@[r] == token_at(
                self.seqs@[rows[r].seq as int],
                rows[r].pos,
            )
        &&& forall|g: int|
            0 <= g < self.groups@.len() ==> self.slots_ok(g, (#[trigger] p.slots@[g])@, rows)
    }

    pub open spec fn slots_ok(&self, g: int, slots: Seq<u32>, rows: Seq<Row>) -> bool {
        &&& slots.len() == rows.len()
        &&& forall|r: int| 0 <= r < rows.len() ==> #[trigger] slots[r] == self.row_slot(g, rows[r])
    }

    /// Row `r` belongs to the `k`-th sequence of the plan: contiguous positions that end at
    /// `seq_lens`.
    pub open spec fn belongs(&self, p: Plan, k: int, r: int) -> bool {
        &&& p.rows@[r].seat == p.seats@[k]
        &&& p.rows@[r].pos == p.seq_lens@[k] - (p.query_start@[k + 1] - r)
        &&& p.seq_ids@[k] == spec_seq_id(
            p.rows@[r].seq,
            self.seqs@[p.rows@[r].seq as int].generation,
        )
    }

    /// The rows are those of `p.seats.len()` sequences, each once, one after the other.
    pub open spec fn sequences_ok(&self, p: Plan) -> bool {
        let n = p.seats@.len() as int;
        &&& p.query_start@.len() == n + 1
        &&& p.query_start@[0] == 0
        &&& p.query_start@[n] == p.rows@.len()
        &&& p.seq_lens@.len() == n
        &&& p.seq_ids@.len() == n
        &&& forall|k: int| 0 <= k < n ==> #[trigger] p.query_start@[k] < p.query_start@[k + 1]
        &&& forall|k: int, r: int|
            #![trigger p.seats@[k], p.rows@[r]]
            0 <= k < n && p.query_start@[k] <= r < p.query_start@[k + 1] ==> self.belongs(p, k, r)
        &&& forall|j: int, k: int|
            #![trigger p.seats@[j], p.seats@[k]]
            0 <= j < k < n ==> p.seats@[j] != p.seats@[k]
    }

    /// Logits are wanted of exactly the rows from `need_from` on.
    pub open spec fn logits_ok(&self, p: Plan) -> bool {
        &&& forall|a: int|
            0 <= a < p.logits_rows@.len() ==> {
                &&& (#[trigger] p.logits_rows@[a]) < p.rows@.len()
                &&& self.wants_logits(p.rows@[p.logits_rows@[a] as int])
            }
        &&& forall|r: int|
            0 <= r < p.rows@.len() && self.wants_logits(#[trigger] p.rows@[r])
                ==> p.logits_rows@.contains(r as u32)
        &&& forall|a: int, b: int|
            #![trigger p.logits_rows@[a], p.logits_rows@[b]]
            0 <= a < b < p.logits_rows@.len() ==> p.logits_rows@[a] < p.logits_rows@[b]
    }

    /// What is sampled is the last row of a sequence, and logits are wanted as `logits_ok` says.
    pub open spec fn wanted_ok(&self, p: Plan) -> bool {
        &&& self.logits_ok(p)
        &&& forall|a: int|
            0 <= a < p.sample_seqs@.len() ==> (#[trigger] p.sample_seqs@[a]) < p.seats@.len()
        &&& forall|a: int, b: int|
            #![trigger p.sample_seqs@[a], p.sample_seqs@[b]]
            0 <= a < b < p.sample_seqs@.len() ==> p.sample_seqs@[a] < p.sample_seqs@[b]
    }

    pub open spec fn wants_logits(&self, r: Row) -> bool {
        r.pos >= self.seqs@[r.seq as int].need_from
    }

    /// Every slot written is in range and written once, and holds nothing that a sequence has
    /// computed and not given back.
    pub open spec fn writes_ok(&self, p: Plan) -> bool {
        &&& forall|g: int, r: int|
            #![trigger self.groups@[g], p.rows@[r]]
            0 <= g < self.groups@.len() && 0 <= r < p.rows@.len() ==> 0 <= self.row_slot(
                g,
                p.rows@[r],
            ) < self.groups@[g].num_blocks() * self.config.block_size
        &&& forall|g: int, r: int, q: int|
            #![trigger self.groups@[g], p.rows@[r], p.rows@[q]]
            0 <= g < self.groups@.len() && 0 <= r < q < p.rows@.len() ==> self.row_slot(
                g,
                p.rows@[r],
            ) != self.row_slot(g, p.rows@[q])
        &&& forall|g: int, r: int, i: int, pos: int|
            #![trigger self.groups@[g], p.rows@[r], self.seqs@[i], self.past(g, i, pos)]
            0 <= g < self.groups@.len() && 0 <= r < p.rows@.len() && 0 <= i < self.seqs@.len()
                && self.seqs@[i].phase is Running && self.kept(g, i) <= pos < self.seqs@[i].computed
                ==> self.row_slot(g, p.rows@[r]) != self.past(g, i, pos)
    }

    /// The slot that holds position `pos` of sequence `i`.
    pub open spec fn past(&self, g: int, i: int, pos: int) -> int {
        slot(self.groups@[g].seat(self.seqs@[i].seat as int), self.config.block_size as nat, pos)
    }

    /// The first position of sequence `i` that is not given back.
    pub open spec fn kept(&self, g: int, i: int) -> int {
        self.groups@[g].seat(self.seqs@[i].seat as int).kept as int
    }

    /// What the kernel contract asks of a plan.
    pub open spec fn plan_wf(&self, p: Plan) -> bool {
        &&& self.arrays_ok(p)
        &&& self.sequences_ok(p)
        &&& self.wanted_ok(p)
        &&& self.writes_ok(p)
    }
}

} // verus!
