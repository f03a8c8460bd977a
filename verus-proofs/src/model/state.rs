//! The engine's state, at token level: no floats, no device.
use crate::trusted::deployment::*;
use vstd::prelude::*;

verus! {

/// A token prefix and the salt it was computed under: what a slot's KV belongs to.
pub struct Prefix {
    pub salt: Salt,
    pub tokens: Seq<Token>,
}

/// One sequence. `known`: its prompt and the output committed so far. `computed`: the KV of
/// positions `0..computed` is committed. `need_from`: the first position whose logits are still to
/// be delivered. `seat`: its row of the block tables while it is admitted. `freed`: how many
/// leading entries of each table it has given back, as no later row sees their positions; they stay
/// in the table, so that all others keep their places. `alive`: neither finished nor aborted.
pub struct Sequence {
    pub request: Request,
    pub known: Seq<Token>,
    pub computed: nat,
    pub need_from: nat,
    pub seat: Option<int>,
    pub tables: Seq<Seq<int>>,
    pub freed: Seq<nat>,
    pub alive: bool,
}

/// The rows of one sequence in a plan: positions `first..end()`. A token that is not yet known is
/// `None`: the runner puts there the token last sampled for this sequence. `sample`: a token is
/// drawn from the logits of the last row. `tables`: the block tables as of scheduling.
pub struct PlannedChunk {
    pub first: nat,
    pub tokens: Seq<Option<Token>>,
    pub logits_from: nat,
    pub sample: bool,
    pub seat: int,
    pub tables: Seq<Seq<int>>,
}

impl PlannedChunk {
    pub open spec fn end(self) -> nat {
        self.first + self.tokens.len()
    }
}

/// One step of the model: `order` lists the sequences as they lie in the batch.
pub struct Plan {
    pub order: Seq<int>,
    pub chunks: Map<int, PlannedChunk>,
}

impl Plan {
    /// A token is drawn for sequence `id`.
    pub open spec fn samples(self, id: int) -> bool {
        self.chunks.dom().contains(id) && self.chunks[id].sample
    }
}

/// `seqs` and `plans` (in flight, oldest first) are by sequence id; `registered`: the blocks, by
/// (group, block), that a prefix hit may return; `content`: history of each slot's last committed
/// write (no step depends on it); `evicted`: has any block ever left the cache?
pub struct Engine {
    pub shape: Shape,
    pub max_seqs: nat,
    pub next_id: int,
    pub seqs: Map<int, Sequence>,
    pub plans: Seq<Plan>,
    pub registered: Map<(int, int), Prefix>,
    pub content: IMap<Slot, Prefix>,
    pub evicted: bool,
}

impl Engine {
    pub open spec fn groups(self) -> nat {
        self.shape.groups()
    }

    #[verifier::inline]
    pub open spec fn has(self, id: int) -> bool {
        self.seqs.dom().contains(id)
    }

    /// Entry `i` of the block table of sequence `id` in group `g`.
    #[verifier::inline]
    pub open spec fn block(self, id: int, g: int, i: int) -> int {
        self.seqs[id].tables[g][i]
    }

    /// It is a block of that sequence: not given back.
    pub open spec fn has_block(self, id: int, g: int, i: int) -> bool {
        &&& self.has(id) && 0 <= g < self.groups()
        &&& self.seqs[id].freed[g] <= i < self.seqs[id].tables[g].len()
    }

    /// The first position of sequence `id` whose block in group `g` is not given back.
    pub open spec fn kept_from(self, id: int, g: int) -> int {
        (self.seqs[id].freed[g] * self.shape.block_size) as int
    }

    /// The first position that the rows of sequence `id` still to be computed see.
    pub open spec fn seen_from(self, id: int, g: int) -> int {
        first_seen(self.shape.windows[g], self.seqs[id].computed as int)
    }

    /// The slot of position `p` of sequence `id` in group `g`.
    #[verifier::inline]
    pub open spec fn slot(self, id: int, g: int, p: int) -> Slot {
        self.shape.slot(g, self.seqs[id].tables[g], p)
    }

    /// Block `b` of group `g` is in some block table.
    pub open spec fn held(self, g: int, b: int) -> bool {
        exists|id: int, i: int| #[trigger] self.block(id, g, i) == b && self.has_block(id, g, i)
    }

    /// How many leading blocks of sequence `id` are full of committed KV. They may be shared, and
    /// are never written again.
    pub open spec fn sealed(self, id: int) -> int {
        self.seqs[id].computed as int / self.shape.block_size as int
    }

    /// Some plan in flight has rows of sequence `id`.
    pub open spec fn in_flight(self, id: int) -> bool {
        exists|n: int| 0 <= n < self.plans.len()
            && #[trigger] self.plans[n].chunks.dom().contains(id)
    }

    /// The seat `s` is taken.
    pub open spec fn seated(self, s: int) -> bool {
        exists|id: int| #[trigger] self.has(id) && self.seqs[id].seat == Some(s)
    }

    /// The sequence with `s` in place of sequence `id`.
    pub open spec fn put(self, id: int, s: Sequence) -> Engine {
        Engine { seqs: self.seqs.insert(id, s), ..self }
    }
}

impl Sequence {
    /// A request as it comes in.
    pub open spec fn fresh(request: Request, groups: nat) -> Sequence {
        Sequence {
            request,
            known: request.prompt,
            computed: 0,
            need_from: request.logits_from,
            seat: None,
            tables: Seq::new(groups, |g: int| Seq::empty()),
            freed: Seq::new(groups, |g: int| 0),
            alive: true,
        }
    }

    /// Without seat and blocks; what it knows stays.
    pub open spec fn released(self) -> Sequence {
        Sequence {
            computed: 0,
            seat: None,
            tables: Seq::new(self.tables.len(), |g: int| Seq::empty()),
            freed: Seq::new(self.tables.len(), |g: int| 0),
            ..self
        }
    }
}

} // verus!
