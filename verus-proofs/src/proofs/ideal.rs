//! The kernel contract can be kept: for every model and every well-formed plan there is an outcome
//! that satisfies it. (So the contract is not contradictory; the toy device below is this one.)
use crate::trusted::*;
use vstd::prelude::*;

verus! {

/// The KV of positions `0..n` of chunk `c`: read before the plan, or computed by it.
pub open spec fn ideal_kv<D: Model>(
    w: D::Weights,
    shape: Shape,
    before: spec_fn(Slot) -> D::Kv,
    plan: Seq<Chunk>,
    c: int,
    n: nat,
) -> Seq<Seq<D::Kv>>
    decreases n,
{
    if n == 0 {
        Seq::empty()
    } else {
        let past = ideal_kv::<D>(w, shape, before, plan, c, (n - 1) as nat);
        let p = n - 1;
        past.push(
            if p < plan[c].first {
                Seq::new(shape.groups(), |g: int| before(place(shape, plan, c, p, g)))
            } else {
                D::forward(w, past, plan[c].tokens[p - plan[c].first]).0
            },
        )
    }
}

/// Row (`c`, `p`) writes slot `s`.
pub open spec fn row_writes(shape: Shape, plan: Seq<Chunk>, s: Slot, c: int, p: int) -> bool {
    is_row(plan, c, p) && place(shape, plan, c, p, s.group) == s
}

pub open spec fn ideal_memory<D: Model>(
    w: D::Weights,
    shape: Shape,
    before: spec_fn(Slot) -> D::Kv,
    plan: Seq<Chunk>,
) -> spec_fn(Slot) -> D::Kv {
    |s: Slot|
        if exists|c: int, p: int| row_writes(shape, plan, s, c, p) {
            let (c, p) = choose|c: int, p: int| row_writes(shape, plan, s, c, p);
            ideal_kv::<D>(w, shape, before, plan, c, (p + 1) as nat)[p][s.group]
        } else {
            before(s)
        }
}

pub open spec fn ideal_logits<D: Model>(
    w: D::Weights,
    shape: Shape,
    before: spec_fn(Slot) -> D::Kv,
    plan: Seq<Chunk>,
) -> Seq<Seq<D::Logits>> {
    Seq::new(
        plan.len(),
        |c: int|
            Seq::new(
                plan[c].tokens.len(),
                |j: int|
                    D::forward(
                        w,
                        ideal_kv::<D>(w, shape, before, plan, c, (plan[c].first + j) as nat),
                        plan[c].tokens[j],
                    ).1,
            ),
    )
}

/// The execution that computes every row by `forward`.
pub open spec fn ideal<D: Model>(
    weights: D::Weights,
    shape: Shape,
    plan: Seq<Chunk>,
    padding: nat,
    before: spec_fn(Slot) -> D::Kv,
) -> Execution<D> {
    Execution {
        weights,
        shape,
        plan,
        padding,
        before,
        after: ideal_memory::<D>(weights, shape, before, plan),
        logits: ideal_logits::<D>(weights, shape, before, plan),
    }
}

proof fn lemma_ideal_len<D: Model>(
    w: D::Weights,
    shape: Shape,
    before: spec_fn(Slot) -> D::Kv,
    plan: Seq<Chunk>,
    c: int,
    n: nat,
    q: int,
)
    requires
        0 <= q < n,
    ensures
        ideal_kv::<D>(w, shape, before, plan, c, n).len() == n,
        ideal_kv::<D>(w, shape, before, plan, c, n)[q] == ideal_kv::<D>(
            w,
            shape,
            before,
            plan,
            c,
            (q + 1) as nat,
        )[q],
    decreases n,
{
    if n == 1 {
        assert(ideal_kv::<D>(w, shape, before, plan, c, 0).len() == 0);
    } else if q == n - 1 {
        lemma_ideal_len::<D>(w, shape, before, plan, c, (n - 1) as nat, 0);
    } else {
        lemma_ideal_len::<D>(w, shape, before, plan, c, (n - 1) as nat, q);
    }
}

/// What the ideal memory holds at a position that the plan reads.
proof fn lemma_ideal_at<D: Model>(
    w: D::Weights,
    shape: Shape,
    before: spec_fn(Slot) -> D::Kv,
    plan: Seq<Chunk>,
    c: int,
    p: int,
    g: int,
)
    requires
        plan_wf(shape, plan),
        is_read(shape, plan, c, p, g),
        0 <= g < shape.groups(),
    ensures
        ideal_memory::<D>(w, shape, before, plan)(place(shape, plan, c, p, g)) == ideal_kv::<D>(
            w,
            shape,
            before,
            plan,
            c,
            (p + 1) as nat,
        )[p][g],
{
    let s = place(shape, plan, c, p, g);
    lemma_ideal_len::<D>(w, shape, before, plan, c, (p + 1) as nat, p);
    if !exists|d: int, q: int| row_writes(shape, plan, s, d, q) {
        assert(!row_writes(shape, plan, s, c, p));
    }
}

pub proof fn lemma_ideal<D: Model>(
    w: D::Weights,
    shape: Shape,
    plan: Seq<Chunk>,
    padding: nat,
    before: spec_fn(Slot) -> D::Kv,
)
    requires
        shape.windows == D::windows(),
        plan_wf(shape, plan),
    ensures
        ideal::<D>(w, shape, plan, padding, before).rows_computed(),
{
    let x = ideal::<D>(w, shape, plan, padding, before);
    let after = x.after;
    assert forall|c: int, p: int| #[trigger] is_row(plan, c, p) implies x.row(c, p) == D::forward(
        w,
        ideal_kv::<D>(w, shape, before, plan, c, p as nat),
        plan[c].tokens[p - plan[c].first],
    ) by {
        lemma_ideal_gather::<D>(x, c, p);
        D::forward_sees_windows(
            w,
            x.gather(c, p as nat),
            ideal_kv::<D>(w, shape, before, plan, c, p as nat),
            plan[c].tokens[p - plan[c].first],
        );
    }
    assert forall|c: int, p: int, g: int|
        is_row(plan, c, p) && 0 <= g < shape.groups() implies after(
        #[trigger] place(shape, plan, c, p, g),
    ) == x.row(c, p).0[g] by {
        lemma_ideal_at::<D>(w, shape, before, plan, c, p, g);
        if p > 0 {
            lemma_ideal_len::<D>(w, shape, before, plan, c, p as nat, 0);
        }
    }
}

/// What a row sees of the past as read from the ideal memory.
proof fn lemma_ideal_gather<D: Model>(x: Execution<D>, c: int, p: int)
    requires
        x == ideal::<D>(x.weights, x.shape, x.plan, x.padding, x.before),
        x.shape.windows == D::windows(),
        plan_wf(x.shape, x.plan),
        is_row(x.plan, c, p),
    ensures
        same_seen(
            D::windows(),
            x.gather(c, p as nat),
            ideal_kv::<D>(x.weights, x.shape, x.before, x.plan, c, p as nat),
        ),
{
    let (w, shape, before, plan) = (x.weights, x.shape, x.before, x.plan);
    let read = x.gather(c, p as nat);
    let kv = ideal_kv::<D>(w, shape, before, plan, c, p as nat);
    if p > 0 {
        lemma_ideal_len::<D>(w, shape, before, plan, c, p as nat, 0);
    }
    assert forall|g: int, q: int|
        0 <= g < shape.groups() && first_seen(shape.windows[g], p) <= q
            < p implies #[trigger] read[q][g] == kv[q][g] by {
        lemma_ideal_len::<D>(w, shape, before, plan, c, p as nat, q);
        lemma_ideal_at::<D>(w, shape, before, plan, c, q, g);
    }
}

} // verus!
