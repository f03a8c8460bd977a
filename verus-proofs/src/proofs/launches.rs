//! Launch by launch, all rows at once: the proof behind composition.rs.
use crate::proofs::composition::*;
use crate::trusted::*;
use vstd::prelude::*;

verus! {

/// The launches of a plan, by their contracts.
pub open spec fn launched_all<R: Layers>(x: Execution<Layered<R>>, d: Seq<Device<R>>) -> bool {
    &&& plan_wf(x.shape, x.plan)
    &&& x.shape.windows == R::windows()
    &&& launches_all(x, d)
    &&& forall|k: int|
        0 <= k < R::program().len() ==> (#[trigger] launch_at(x, d, k)).keeps_contract()
}

pub proof fn lemma_launched<R: Layers>(x: Execution<Layered<R>>, d: Seq<Device<R>>)
    requires
        plan_wf(x.shape, x.plan),
        x.shape.windows == R::windows(),
        launches_all(x, d),
    ensures
        launched_all(x, d),
{
    assert forall|k: int| 0 <= k < R::program().len() implies (#[trigger] launch_at(
        x,
        d,
        k,
    )).keeps_contract() by {
        R::launch_contract(launch_at(x, d, k));
    }
}

/// Slot `s` is written by a row of the plan.
pub open spec fn is_written(shape: Shape, plan: Seq<Chunk>, s: Slot) -> bool {
    exists|c: int, p: int| #[trigger] is_row(plan, c, p) && place(shape, plan, c, p, s.group) == s
}

/// A launch keeps sizes, slots that the plan does not write, and other layers' cells.
proof fn lemma_frame<R: Layers>(x: Execution<Layered<R>>, d: Seq<Device<R>>, k: int, s: Slot)
    requires
        launched_all(x, d),
        0 <= k < R::program().len(),
        (d[k].memory)(s).len() == R::depths()[s.group],
    ensures
        (d[k + 1].memory)(s).len() == (d[k].memory)(s).len(),
        !is_written(x.shape, x.plan, s) ==> (d[k + 1].memory)(s) == (d[k].memory)(s),
        forall|l: Layer|
            l.group == s.group && !#[trigger] stores(R::program()[k], l) && 0 <= l.index
                < R::depths()[s.group] ==> (d[k + 1].memory)(s)[l.index] == (d[k].memory)(
                s,
            )[l.index],
{
    R::program_ok();
    assert(launch_at(x, d, k).keeps_contract());
}

/// Slots that the plan does not write stay as they were; sizes stay.
proof fn lemma_kept<R: Layers>(x: Execution<Layered<R>>, d: Seq<Device<R>>, k: int, s: Slot)
    requires
        launched_all(x, d),
        0 <= k <= R::program().len(),
    ensures
        (d[k].memory)(s).len() == R::depths()[s.group],
        !is_written(x.shape, x.plan, s) ==> (d[k].memory)(s) == (d[0].memory)(s),
    decreases k,
{
    if k > 0 {
        lemma_kept(x, d, k - 1, s);
        lemma_frame(x, d, k - 1, s);
    }
}

/// Once a layer is stored, its cells stay.
proof fn lemma_stable<R: Layers>(
    x: Execution<Layered<R>>,
    d: Seq<Device<R>>,
    k: int,
    j: int,
    l: Layer,
    s: Slot,
)
    requires
        launched_all(x, d),
        0 <= k <= j <= R::program().len(),
        stored(R::program(), k, l),
        s.group == l.group,
    ensures
        (d[j].memory)(s)[l.index] == (d[k].memory)(s)[l.index],
    decreases j,
{
    if k < j {
        R::program_ok();
        lemma_stable(x, d, k, j - 1, l, s);
        lemma_kept(x, d, j - 1, s);
        lemma_frame(x, d, j - 1, s);
        assert(!stores(R::program()[j - 1], l));
    }
}

/// The token of row (`c`, `p`).
pub open spec fn row_token(plan: Seq<Chunk>, c: int, p: int) -> Token {
    plan[c].tokens[p - plan[c].first]
}

/// Row (`c`, `p`) as the reference runs it, its past read from the memory after the plan.
pub open spec fn reference_row<R: Layers>(
    x: Execution<Layered<R>>,
    k: int,
    c: int,
    p: int,
) -> RowState<R> {
    run_row::<R>(x.weights, k as nat, x.gather(c, p as nat), row_token(x.plan, c, p))
}

/// After `k` launches the device's row is the reference's: buffers, own cells, logits.
pub open spec fn row_matches<R: Layers>(
    x: Execution<Layered<R>>,
    d: Seq<Device<R>>,
    k: int,
    c: int,
    p: int,
) -> bool {
    let r = reference_row(x, k, c, p);
    &&& forall|b: Buffer| #[trigger]
        defined(R::program(), k, b) ==> (d[k].buffers)(c, p, b) == (r.buffers)(b)
    &&& forall|l: Layer| #[trigger]
        stored(R::program(), k, l) ==> (d[k].memory)(place(x.shape, x.plan, c, p, l.group))[l.index]
            == (r.cells)(l)
    &&& headed(R::program(), k) && p >= x.plan[c].logits_from ==> (d[k].logits)(c, p) == r.logits
}

/// What a launch computes for a row is what the reference computes.
proof fn lemma_value<R: Layers>(x: Execution<Layered<R>>, d: Seq<Device<R>>, k: int, c: int, p: int)
    requires
        launched_all(x, d),
        0 <= k < R::program().len(),
        is_row(x.plan, c, p),
        row_matches(x, d, k, c, p),
    ensures
        ({
            let r = reference_row(x, k, c, p);
            let launch = R::program()[k];
            let cells = cells_of::<R>(x.gather(c, p as nat), (r.cells)(launch.layer), launch.layer);
            launch_at(x, d, k).value(c, p) == value::<R>(
                x.weights,
                launch,
                row_token(x.plan, c, p),
                p as nat,
                r.buffers,
                cells,
            )
        }),
{
    R::program_ok();
    let program = R::program();
    let launch = program[k];
    if launch.kernel is Attention {
        lemma_cells(x, d, k, c, p);
    }
}

/// The cells that attention reads: of the past as they are in the end, and the row's own.
proof fn lemma_cells<R: Layers>(x: Execution<Layered<R>>, d: Seq<Device<R>>, k: int, c: int, p: int)
    requires
        launched_all(x, d),
        0 <= k < R::program().len(),
        R::program()[k].kernel is Attention,
        is_row(x.plan, c, p),
        row_matches(x, d, k, c, p),
    ensures
        ({
            let l = R::program()[k].layer;
            let first = first_seen(R::windows()[l.group], p);
            Seq::new(
                (p + 1 - first) as nat,
                |j: int| (d[k].memory)(place(x.shape, x.plan, c, first + j, l.group))[l.index],
            ) == cells_of::<R>(x.gather(c, p as nat), (reference_row(x, k, c, p).cells)(l), l)
        }),
{
    R::program_ok();
    let n = R::program().len() as int;
    let l = R::program()[k].layer;
    let past = x.gather(c, p as nat);
    let first = first_seen(R::windows()[l.group], p);
    let cells = Seq::new(
        (p + 1 - first) as nat,
        |j: int| (d[k].memory)(place(x.shape, x.plan, c, first + j, l.group))[l.index],
    );
    let reference = cells_of::<R>(past, (reference_row(x, k, c, p).cells)(l), l);
    assert forall|j: int| 0 <= j < p + 1 - first implies #[trigger] cells[j] == reference[j] by {
        let q = first + j;
        let s = place(x.shape, x.plan, c, q, l.group);
        lemma_stable(x, d, k, n, l, s);
    }
}

/// Each launch keeps the row in step with the reference.
proof fn lemma_row_matches<R: Layers>(
    x: Execution<Layered<R>>,
    d: Seq<Device<R>>,
    k: int,
    c: int,
    p: int,
)
    requires
        launched_all(x, d),
        0 <= k <= R::program().len(),
        is_row(x.plan, c, p),
    ensures
        row_matches(x, d, k, c, p),
    decreases k,
{
    if k > 0 {
        lemma_row_matches(x, d, k - 1, c, p);
        lemma_row_step(x, d, k - 1, c, p);
    }
}

proof fn lemma_row_step<R: Layers>(
    x: Execution<Layered<R>>,
    d: Seq<Device<R>>,
    k: int,
    c: int,
    p: int,
)
    requires
        launched_all(x, d),
        0 <= k < R::program().len(),
        is_row(x.plan, c, p),
        row_matches(x, d, k, c, p),
    ensures
        row_matches(x, d, k + 1, c, p),
{
    let program = R::program();
    let launch = program[k];
    let run = launch_at(x, d, k);
    let r2 = reference_row(x, k + 1, c, p);
    R::program_ok();
    lemma_value(x, d, k, c, p);
    assert forall|b: Buffer| #[trigger] defined(program, k + 1, b) implies (d[k + 1].buffers)(
        c,
        p,
        b,
    ) == (r2.buffers)(b) by {
        if launch.out != Some(b) {
            let m = choose|m: int| 0 <= m < k + 1 && (#[trigger] program[m]).out == Some(b);
            assert(defined(program, k, b));
        }
    }
    assert forall|l: Layer| #[trigger] stored(program, k + 1, l) implies (d[k + 1].memory)(
        place(x.shape, x.plan, c, p, l.group),
    )[l.index] == (r2.cells)(l) by {
        let s = place(x.shape, x.plan, c, p, l.group);
        let m = choose|m: int| 0 <= m < k + 1 && stores(#[trigger] program[m], l);
        assert(stores(program[m], l));
        assert(is_layer(R::depths(), l));
        lemma_kept(x, d, k, s);
        lemma_frame(x, d, k, s);
        if stores(launch, l) {
            assert(run.stores_to(c, p, s));
            assert((d[k + 1].memory)(s) == run.store(c, p, s));
        } else {
            assert(stored(program, k, l));
        }
    }
    if headed(program, k + 1) && p >= x.plan[c].logits_from && !(launch.kernel is Head) {
    }
}

/// The whole plan.
pub proof fn lemma_rows_computed<R: Layers>(x: Execution<Layered<R>>, d: Seq<Device<R>>)
    requires
        launched_all(x, d),
    ensures
        x.rows_computed(),
{
    let n = R::program().len() as int;
    R::program_ok();
    assert forall|c: int, p: int, g: int|
        is_row(x.plan, c, p) && 0 <= g < x.shape.groups() implies (x.after)(
        #[trigger] place(x.shape, x.plan, c, p, g),
    ) == x.row(c, p).0[g] by {
        let s = place(x.shape, x.plan, c, p, g);
        lemma_row_matches(x, d, n, c, p);
        lemma_kept(x, d, n, s);
        let kv = x.row(c, p).0[g];
        assert forall|i: int| 0 <= i < R::depths()[g] implies #[trigger] (x.after)(s)[i]
            == kv[i] by {
            let l = Layer { group: g, index: i };
            assert(is_layer(R::depths(), l));
        }
    }
    assert forall|c: int, p: int| #[trigger]
        is_row(x.plan, c, p) && p >= x.plan[c].logits_from implies x.logits[c][p - x.plan[c].first]
        == x.row(c, p).1 by {
        lemma_row_matches(x, d, n, c, p);
    }
    assert forall|s: Slot|
        (forall|c: int, p: int| #[trigger]
            is_row(x.plan, c, p) ==> place(x.shape, x.plan, c, p, s.group)
                != s) implies #[trigger] (x.after)(s) == (x.before)(s) by {
        lemma_kept(x, d, n, s);
    }
}

} // verus!
