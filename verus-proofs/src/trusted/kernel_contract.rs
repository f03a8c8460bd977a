//! What the kernels owe: for a well-formed plan, each row is the reference model's `forward` of what
//! its own block tables hold, whatever else is in the batch, and no other slot changes.
//!
//! For a CPU this rests on the row kernels of vosti-cpu (trusted Rust); for a GPU on one analyzer
//! certificate per schedule class. `proofs/composition.rs` derives it from one row function per class.
use vstd::prelude::*;
use crate::trusted::deployment::*;
use crate::trusted::reference::*;

verus! {

/// The rows of one sequence in one plan: tokens at positions `first..end()`. Their KV goes to, and the
/// KV of all earlier positions comes from, where `tables` (one for each group) puts them.
/// Rows at positions >= `logits_from` yield logits (the others' are never looked at).
pub struct Chunk {
    pub tables: Seq<Seq<int>>,
    pub first: nat,
    pub tokens: Seq<Token>,
    pub logits_from: nat,
}

impl Chunk {
    pub open spec fn end(self) -> nat {
        self.first + self.tokens.len()
    }
}

/// The slot of group `g` where chunk `c` of `plan` has its position `p`.
pub open spec fn place(shape: Shape, plan: Seq<Chunk>, c: int, p: int, g: int) -> Slot {
    shape.slot(g, plan[c].tables[g], p)
}

/// Row (chunk `c`, position `p`) is one of the plan's.
pub open spec fn is_row(plan: Seq<Chunk>, c: int, p: int) -> bool {
    0 <= c < plan.len() && plan[c].first <= p < plan[c].end()
}

/// Position `p` of chunk `c` is read by the plan: it is one of its rows, or in the past of one.
pub open spec fn is_read(plan: Seq<Chunk>, c: int, p: int) -> bool {
    0 <= c < plan.len() && 0 <= p < plan[c].end()
}

/// A slot that a row writes is no other row's, and not in the past of another sequence.
/// (In its own sequence the rows after it read it: a chunk's rows see each other.)
pub open spec fn writes_private(shape: Shape, plan: Seq<Chunk>) -> bool {
    forall|c: int, p: int, d: int, q: int, g: int|
        #![trigger place(shape, plan, c, p, g), place(shape, plan, d, q, g)]
        is_row(plan, c, p) && is_read(plan, d, q) && 0 <= g < shape.groups() && (c, p) != (d, q)
            ==> place(shape, plan, c, p, g) != place(shape, plan, d, q, g)
}

/// Well-formed: tables in range cover every row and its past, and writes are private.
/// Proved of every plan that the engine makes (`theorem_memory`); the kernels rely on it.
pub open spec fn plan_wf(shape: Shape, plan: Seq<Chunk>) -> bool {
    &&& shape.block_size > 0
    &&& forall|c: int, g: int|
        0 <= c < plan.len() && 0 <= g < shape.groups() ==> shape.covers(
            g,
            #[trigger] plan[c].tables[g],
            plan[c].end(),
        )
    &&& writes_private(shape, plan)
}

/// The KV of positions `0..n` of chunk `c`, read through its block tables.
pub open spec fn gather<D: Model>(
    shape: Shape,
    memory: spec_fn(Slot) -> D::Kv,
    plan: Seq<Chunk>,
    c: int,
    n: nat,
) -> Seq<Seq<D::Kv>> {
    Seq::new(n, |p: int| Seq::new(shape.groups(), |g: int| memory(place(shape, plan, c, p, g))))
}

/// What `forward` makes of row (`c`, `p`) when its past is read from `memory`.
pub open spec fn row<D: Model>(
    weights: D::Weights,
    shape: Shape,
    memory: spec_fn(Slot) -> D::Kv,
    plan: Seq<Chunk>,
    c: int,
    p: int,
) -> (Seq<D::Kv>, D::Logits) {
    D::forward(
        weights,
        gather::<D>(shape, memory, plan, c, p as nat),
        plan[c].tokens[p - plan[c].first],
    )
}

/// The contract. `logits[c][j]` belongs to the row at position `plan[c].first + j`. The past is read
/// from the memory *after* the plan: of earlier rows of the same chunk it holds what they wrote,
/// and elsewhere, the plan being well-formed, what was there before.
pub open spec fn rows_computed<D: Model>(
    weights: D::Weights,
    shape: Shape,
    before: spec_fn(Slot) -> D::Kv,
    plan: Seq<Chunk>,
    after: spec_fn(Slot) -> D::Kv,
    logits: Seq<Seq<D::Logits>>,
) -> bool {
    &&& forall|c: int, p: int, g: int|
        is_row(plan, c, p) && 0 <= g < shape.groups() ==> after(
            #[trigger] place(shape, plan, c, p, g),
        ) == row::<D>(weights, shape, after, plan, c, p).0[g]
    &&& forall|c: int| 0 <= c < plan.len() ==> #[trigger] logits[c].len() == plan[c].tokens.len()
    &&& forall|c: int, p: int| #[trigger]
        is_row(plan, c, p) && p >= plan[c].logits_from ==> logits[c][p - plan[c].first] == row::<D>(
            weights,
            shape,
            after,
            plan,
            c,
            p,
        ).1
    &&& forall|s: Slot|
        (forall|c: int, p: int| #[trigger]
            is_row(plan, c, p) ==> place(shape, plan, c, p, s.group) != s) ==> #[trigger] after(s)
            == before(s)
}

/// The device: `executes` says which outcomes running a plan may have. `padding` counts the rows that
/// a captured graph adds; they have no slot, and no influence.
pub trait Kernels: Model {
    spec fn executes(
        weights: Self::Weights,
        shape: Shape,
        before: spec_fn(Slot) -> Self::Kv,
        plan: Seq<Chunk>,
        padding: nat,
        after: spec_fn(Slot) -> Self::Kv,
        logits: Seq<Seq<Self::Logits>>,
    ) -> bool;

    /// Obligation: the contract, for well-formed plans.
    proof fn contract(
        weights: Self::Weights,
        shape: Shape,
        before: spec_fn(Slot) -> Self::Kv,
        plan: Seq<Chunk>,
        padding: nat,
        after: spec_fn(Slot) -> Self::Kv,
        logits: Seq<Seq<Self::Logits>>,
    )
        requires
            shape.groups() == Self::groups(),
            plan_wf(shape, plan),
            Self::executes(weights, shape, before, plan, padding, after, logits),
        ensures
            rows_computed::<Self>(weights, shape, before, plan, after, logits),
    ;
}

} // verus!
