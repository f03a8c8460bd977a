//! What the kernels owe: for a well-formed plan, each row is the reference model's `forward` of what its
//! own block tables hold, whatever else is in the batch, and no other slot changes.
use crate::trusted::*;
use vstd::prelude::*;

verus! {

/// The rows of one sequence in one plan: tokens at positions `first..end()`. Their KV goes to, and the KV
/// of earlier positions comes from, where `tables` (one for each group) puts them. Rows at positions >=
/// `logits_from` yield logits (the others' are never looked at).
pub struct Chunk { pub tables: Seq<Seq<int>>, pub first: nat, pub tokens: Seq<Token>, pub logits_from: nat }

impl Chunk {
    pub open spec fn end(self) -> nat { self.first + self.tokens.len() }
}

/// The slot of group `g` where chunk `c` of the plan has its position `p`.
pub open spec fn place(shape: Shape, plan: Seq<Chunk>, c: int, p: int, g: int) -> Slot {
    shape.slot(g, plan[c].tables[g], p)
}

/// Chunk `c` has a row at position `p`.
pub open spec fn is_row(plan: Seq<Chunk>, c: int, p: int) -> bool {
    0 <= c < plan.len() && plan[c].first <= p < plan[c].end()
}

/// In group `g`, position `p` of chunk `c` is a row, or a row sees it.
pub open spec fn is_read(shape: Shape, plan: Seq<Chunk>, c: int, p: int, g: int) -> bool {
    0 <= c < plan.len() && first_seen(shape.windows[g], plan[c].first as int) <= p < plan[c].end()
}

/// Tables in range cover every row and its past; and a slot that a row writes is no other row's, nor seen by
/// another sequence (in its own, later rows see it). Proved of every plan that the engine makes
/// (`theorem_memory`); the kernels rely on it.
pub open spec fn plan_wf(shape: Shape, plan: Seq<Chunk>) -> bool {
    &&& shape.block_size > 0
    &&& forall|c: int, g: int| 0 <= c < plan.len() && 0 <= g < shape.groups()
        ==> shape.covers(g, #[trigger] plan[c].tables[g], plan[c].end())
    &&& forall|c: int, p: int, d: int, q: int, g: int|
        #![trigger place(shape, plan, c, p, g), place(shape, plan, d, q, g)]
        is_row(plan, c, p) && is_read(shape, plan, d, q, g) && 0 <= g < shape.groups() && (c, p) != (d, q)
            ==> place(shape, plan, c, p, g) != place(shape, plan, d, q, g)
}

/// A plan run on a device. `padding`: rows that a captured graph adds; they have no slot. `logits[c][j]`
/// belongs to the row at position `plan[c].first + j`.
pub struct Execution<D: Model> {
    pub weights: D::Weights, pub shape: Shape, pub plan: Seq<Chunk>, pub padding: nat,
    pub before: spec_fn(Slot) -> D::Kv, pub after: spec_fn(Slot) -> D::Kv,
    pub logits: Seq<Seq<D::Logits>>,
}

impl<D: Model> Execution<D> {
    /// The KV of positions `0..n` of chunk `c`, read through its block tables from the memory *after* the
    /// plan: of earlier rows of the same chunk it holds what they wrote; elsewhere, the plan being
    /// well-formed, what was there before.
    pub open spec fn gather(self, c: int, n: nat) -> Seq<Seq<D::Kv>> {
        Seq::new(n, |p: int| Seq::new(self.shape.groups(),
            |g: int| (self.after)(place(self.shape, self.plan, c, p, g))))
    }
    /// What `forward` makes of row (`c`, `p`).
    pub open spec fn row(self, c: int, p: int) -> (Seq<D::Kv>, D::Logits) {
        let token = self.plan[c].tokens[p - self.plan[c].first];
        D::forward(self.weights, self.gather(c, p as nat), token)
    }
    /// The contract: every row's KV, every row's logits, and nothing else.
    pub open spec fn rows_computed(self) -> bool {
        let plan = self.plan;
        &&& forall|c: int, p: int, g: int| is_row(plan, c, p) && 0 <= g < self.shape.groups()
            ==> (self.after)(#[trigger] place(self.shape, self.plan, c, p, g)) == self.row(c, p).0[g]
        &&& forall|c: int| 0 <= c < plan.len() ==> #[trigger] self.logits[c].len() == plan[c].tokens.len()
        &&& forall|c: int, p: int| #[trigger] is_row(plan, c, p) && p >= plan[c].logits_from
            ==> self.logits[c][p - plan[c].first] == self.row(c, p).1
        &&& forall|s: Slot| (forall|c: int, p: int| #[trigger] is_row(plan, c, p) ==>
            place(self.shape, plan, c, p, s.group) != s) ==> #[trigger] (self.after)(s) == (self.before)(s)
    }
}

/// The device: which executions can happen, and the obligation that those of well-formed plans keep the
/// contract. On a CPU it rests on the row kernels of vosti-cpu (trusted Rust), on a GPU on one analyzer
/// certificate for each kernel: row_functions.rs.
pub trait Kernels: Model {
    spec fn executes(x: Execution<Self>) -> bool;
    proof fn contract(x: Execution<Self>)
        requires x.shape.windows == Self::windows(), plan_wf(x.shape, x.plan), Self::executes(x),
        ensures x.rows_computed();
}

} // verus!
