//! Launch by launch, all rows at once: the proof behind composition.rs.
use vstd::prelude::*;
use crate::trusted::deployment::*;
use crate::trusted::kernel_contract::*;
use crate::trusted::reference::*;
use crate::trusted::row_functions::*;
use crate::proofs::composition::*;

verus! {

/// The launches of a plan, by their contracts.
pub open spec fn launched_all<R: Layers>(
    w: R::Weights,
    shape: Shape,
    plan: Seq<Chunk>,
    d: Seq<Device<R>>,
) -> bool {
    &&& plan_wf(shape, plan)
    &&& shape.groups() == R::depths().len()
    &&& d.len() == R::program().len() + 1
    &&& sized::<R>(d[0].memory)
    &&& forall|k: int|
        0 <= k < R::program().len() ==> #[trigger] launched_at(w, shape, plan, d, k)
}

pub open spec fn launched_at<R: Layers>(
    w: R::Weights,
    shape: Shape,
    plan: Seq<Chunk>,
    d: Seq<Device<R>>,
    k: int,
) -> bool {
    launched(w, shape, plan, R::program()[k], d[k], d[k + 1])
}

pub proof fn lemma_launched<R: Layers>(
    w: R::Weights,
    shape: Shape,
    plan: Seq<Chunk>,
    padding: nat,
    d: Seq<Device<R>>,
)
    requires
        plan_wf(shape, plan),
        shape.groups() == R::depths().len(),
        launches_all(w, shape, plan, padding, d),
        sized::<R>(d[0].memory),
    ensures
        launched_all(w, shape, plan, d),
{
    assert forall|k: int| 0 <= k < R::program().len() implies #[trigger] launched_at(
        w,
        shape,
        plan,
        d,
        k,
    ) by {
        assert(R::launches(w, shape, plan, padding, R::program()[k], d[k], d[k + 1]));
        R::launch_contract(w, shape, plan, padding, R::program()[k], d[k], d[k + 1]);
    }
}

/// Slot `s` is written by a row of the plan.
pub open spec fn is_written(shape: Shape, plan: Seq<Chunk>, s: Slot) -> bool {
    exists|c: int, p: int| #[trigger] is_row(plan, c, p) && place(shape, plan, c, p, s.group) == s
}

/// A launch keeps sizes, slots that the plan does not write, and other layers' cells.
proof fn lemma_frame<R: Layers>(
    w: R::Weights,
    shape: Shape,
    plan: Seq<Chunk>,
    d: Seq<Device<R>>,
    k: int,
    s: Slot,
)
    requires
        launched_all(w, shape, plan, d),
        0 <= k < R::program().len(),
        (d[k].memory)(s).len() == R::depths()[s.group],
    ensures
        (d[k + 1].memory)(s).len() == (d[k].memory)(s).len(),
        !is_written(shape, plan, s) ==> (d[k + 1].memory)(s) == (d[k].memory)(s),
        forall|l: Layer|
            l.group == s.group && !#[trigger] stores(R::program()[k], l) && l.index >= 0 && l.index
                < (d[k].memory)(s).len() ==> (d[k + 1].memory)(s)[l.index] == (d[k].memory)(
                s,
            )[l.index],
{
    R::program_ok();
    assert(launched_at(w, shape, plan, d, k));
    let launch = R::program()[k];
    if let Launch::Store { layer, input } = launch {
        if s.group == layer.group && is_written(shape, plan, s) {
            let (c, p) = choose|c: int, p: int| #[trigger]
                is_row(plan, c, p) && place(shape, plan, c, p, s.group) == s;
            assert(is_row(plan, c, p));
            assert((d[k + 1].memory)(s) == (d[k].memory)(s).update(
                layer.index,
                R::store((d[k].buffers)(c, p, input)),
            ));
            assert forall|l: Layer|
                l.group == s.group && !#[trigger] stores(launch, l) && l.index >= 0 && l.index
                    < (d[k].memory)(s).len() implies (d[k + 1].memory)(s)[l.index] == (d[k].memory)(
                s,
            )[l.index] by {
                assert(l.index != layer.index);
            }
        }
    }
}

/// Slots that the plan does not write stay as they were; sizes stay.
proof fn lemma_kept<R: Layers>(
    w: R::Weights,
    shape: Shape,
    plan: Seq<Chunk>,
    d: Seq<Device<R>>,
    k: int,
    s: Slot,
)
    requires
        launched_all(w, shape, plan, d),
        0 <= k <= R::program().len(),
    ensures
        (d[k].memory)(s).len() == R::depths()[s.group],
        !is_written(shape, plan, s) ==> (d[k].memory)(s) == (d[0].memory)(s),
    decreases k,
{
    if k > 0 {
        lemma_kept(w, shape, plan, d, k - 1, s);
        lemma_frame(w, shape, plan, d, k - 1, s);
        assert(d[k] == d[k - 1 + 1]);
    }
}

/// Once a layer is stored, its cells stay.
proof fn lemma_stable<R: Layers>(
    w: R::Weights,
    shape: Shape,
    plan: Seq<Chunk>,
    d: Seq<Device<R>>,
    k: int,
    j: int,
    l: Layer,
    s: Slot,
)
    requires
        launched_all(w, shape, plan, d),
        0 <= k <= j <= R::program().len(),
        stored(R::program(), k, l),
        is_layer(R::depths(), l),
        s.group == l.group,
    ensures
        (d[j].memory)(s)[l.index] == (d[k].memory)(s)[l.index],
    decreases j,
{
    if k < j {
        R::program_ok();
        lemma_stable(w, shape, plan, d, k, j - 1, l, s);
        lemma_kept(w, shape, plan, d, j - 1, s);
        lemma_frame(w, shape, plan, d, j - 1, s);
        let m = choose|m: int| 0 <= m < k && stores(#[trigger] R::program()[m], l);
        assert(stores(R::program()[m], l));
        assert(!stores(R::program()[j - 1], l));
        assert(d[j] == d[j - 1 + 1]);
    }
}

/// Row (`c`, `p`) as the reference runs it, its past read from the memory after the plan.
pub open spec fn reference_row<R: Layers>(
    w: R::Weights,
    shape: Shape,
    plan: Seq<Chunk>,
    d: Seq<Device<R>>,
    k: int,
    c: int,
    p: int,
) -> RowState<R> {
    let past = gather::<Layered<R>>(shape, d.last().memory, plan, c, p as nat);
    run_row::<R>(w, k as nat, past, plan[c].tokens[p - plan[c].first])
}

/// After `k` launches the device's row is the reference's: buffers, own cells, logits.
pub open spec fn row_matches<R: Layers>(
    w: R::Weights,
    shape: Shape,
    plan: Seq<Chunk>,
    d: Seq<Device<R>>,
    k: int,
    c: int,
    p: int,
) -> bool {
    let r = reference_row(w, shape, plan, d, k, c, p);
    &&& forall|b: Buffer| #[trigger]
        defined(R::program(), k, b) ==> (d[k].buffers)(c, p, b) == (r.buffers)(b)
    &&& forall|l: Layer| #[trigger]
        stored(R::program(), k, l) ==> (d[k].memory)(place(shape, plan, c, p, l.group))[l.index]
            == (r.cells)(l)
    &&& headed(R::program(), k) && p >= plan[c].logits_from ==> (d[k].logits)(c, p) == r.logits
}

/// What a launch computes for a row is what the reference computes.
proof fn lemma_value<R: Layers>(
    w: R::Weights,
    shape: Shape,
    plan: Seq<Chunk>,
    d: Seq<Device<R>>,
    k: int,
    c: int,
    p: int,
)
    requires
        launched_all(w, shape, plan, d),
        0 <= k < R::program().len(),
        is_row(plan, c, p),
        row_matches(w, shape, plan, d, k, c, p),
    ensures
        ({
            let r = reference_row(w, shape, plan, d, k, c, p);
            let past = gather::<Layered<R>>(shape, d.last().memory, plan, c, p as nat);
            let launch = R::program()[k];
            let token = plan[c].tokens[p - plan[c].first];
            let cells = match launch {
                Launch::Attention { layer, .. } => cells_of::<R>(past, (r.cells)(layer), layer),
                _ => Seq::empty(),
            };
            row_value(w, shape, plan, launch, d[k], c, p) == value::<R>(
                w,
                launch,
                token,
                p as nat,
                r.buffers,
                cells,
            )
        }),
{
    R::program_ok();
    let program = R::program();
    let launch = program[k];
    let r = reference_row(w, shape, plan, d, k, c, p);
    let past = gather::<Layered<R>>(shape, d.last().memory, plan, c, p as nat);
    assert forall|b: Buffer| #[trigger] reads(launch, b) implies (d[k].buffers)(c, p, b)
        == (r.buffers)(b) by {
        assert(defined(program, k, b));
    }
    match launch {
        Launch::Norm { input, .. } => assert(reads(launch, input)),
        Launch::Linear { input, .. } => assert(reads(launch, input)),
        Launch::Rope { input, .. } => assert(reads(launch, input)),
        Launch::Store { input, .. } => assert(reads(launch, input)),
        Launch::Add { left, right, .. } => assert(reads(launch, left) && reads(launch, right)),
        Launch::Gate { input, .. } => assert(reads(launch, input)),
        Launch::Head { input, .. } => assert(reads(launch, input)),
        Launch::Attention { layer, input, .. } => {
            assert(reads(launch, input));
            assert(stored(program, k, layer));
            let g = layer.group;
            let cells = Seq::new(
                (p + 1) as nat,
                |q: int| (d[k].memory)(place(shape, plan, c, q, g))[layer.index],
            );
            let reference = cells_of::<R>(past, (r.cells)(layer), layer);
            assert forall|q: int| 0 <= q < p + 1 implies #[trigger] cells[q] == reference[q] by {
                let n = program.len() as int;
                lemma_stable(w, shape, plan, d, k, n, layer, place(shape, plan, c, q, g));
                assert(d.last() == d[n]);
                if q < p {
                    assert(past[q][g] == (d.last().memory)(place(shape, plan, c, q, g)));
                }
            }
            assert(cells =~= reference);
        },
        _ => {},
    }
}

/// Each launch keeps the row in step with the reference.
proof fn lemma_row_matches<R: Layers>(
    w: R::Weights,
    shape: Shape,
    plan: Seq<Chunk>,
    d: Seq<Device<R>>,
    k: int,
    c: int,
    p: int,
)
    requires
        launched_all(w, shape, plan, d),
        0 <= k <= R::program().len(),
        is_row(plan, c, p),
    ensures
        row_matches(w, shape, plan, d, k, c, p),
    decreases k,
{
    if k > 0 {
        lemma_row_matches(w, shape, plan, d, k - 1, c, p);
        lemma_value(w, shape, plan, d, k - 1, c, p);
        lemma_row_step(w, shape, plan, d, k - 1, c, p);
    }
}

proof fn lemma_row_step<R: Layers>(
    w: R::Weights,
    shape: Shape,
    plan: Seq<Chunk>,
    d: Seq<Device<R>>,
    k: int,
    c: int,
    p: int,
)
    requires
        launched_all(w, shape, plan, d),
        0 <= k < R::program().len(),
        is_row(plan, c, p),
        row_matches(w, shape, plan, d, k, c, p),
    ensures
        row_matches(w, shape, plan, d, k + 1, c, p),
{
    let program = R::program();
    let launch = program[k];
    let r = reference_row(w, shape, plan, d, k, c, p);
    let r2 = reference_row(w, shape, plan, d, k + 1, c, p);
    let past = gather::<Layered<R>>(shape, d.last().memory, plan, c, p as nat);
    let token = plan[c].tokens[p - plan[c].first];
    R::program_ok();
    lemma_value(w, shape, plan, d, k, c, p);
    assert(launched_at(w, shape, plan, d, k));
    assert(r2 == step_row::<R>(w, launch, past, token, r));
    assert forall|b: Buffer| #[trigger] defined(program, k + 1, b) implies (d[k + 1].buffers)(c, p, b)
        == (r2.buffers)(b) by {
        if out(launch) != Some(b) {
            let m = choose|m: int| 0 <= m < k + 1 && out(#[trigger] program[m]) == Some(b);
            assert(out(program[m]) == Some(b));
            assert(defined(program, k, b));
        }
    }
    assert forall|l: Layer| #[trigger] stored(program, k + 1, l) implies (d[k + 1].memory)(
        place(shape, plan, c, p, l.group),
    )[l.index] == (r2.cells)(l) by {
        let s = place(shape, plan, c, p, l.group);
        let m = choose|m: int| 0 <= m < k + 1 && stores(#[trigger] program[m], l);
        assert(stores(program[m], l));
        assert(is_layer(R::depths(), l));
        lemma_kept(w, shape, plan, d, k, s);
        lemma_frame(w, shape, plan, d, k, s);
        if stores(launch, l) {
            assert(reads(launch, launch->Store_input));
            assert(defined(program, k, launch->Store_input));
        } else {
            assert(stored(program, k, l));
        }
    }
    if headed(program, k + 1) && p >= plan[c].logits_from {
        if launch is Head {
            assert(reads(launch, launch->Head_input));
            assert(defined(program, k, launch->Head_input));
        } else {
            let m = choose|m: int| 0 <= m < k + 1 && #[trigger] program[m] is Head;
            assert(program[m] is Head);
            assert(headed(program, k));
        }
    }
}

/// The whole plan.
pub proof fn lemma_rows_computed<R: Layers>(
    w: R::Weights,
    shape: Shape,
    plan: Seq<Chunk>,
    d: Seq<Device<R>>,
    logits: Seq<Seq<R::Logits>>,
)
    requires
        launched_all(w, shape, plan, d),
        logits_are(plan, d.last(), logits),
    ensures
        rows_computed::<Layered<R>>(w, shape, d[0].memory, plan, d.last().memory, logits),
{
    let n = R::program().len() as int;
    let after = d.last().memory;
    assert(d.last() == d[n]);
    R::program_ok();
    assert forall|c: int, p: int, g: int|
        is_row(plan, c, p) && 0 <= g < shape.groups() implies after(
        #[trigger] place(shape, plan, c, p, g),
    ) == row::<Layered<R>>(w, shape, after, plan, c, p).0[g] by {
        let s = place(shape, plan, c, p, g);
        lemma_row_matches(w, shape, plan, d, n, c, p);
        lemma_kept(w, shape, plan, d, n, s);
        let kv = row::<Layered<R>>(w, shape, after, plan, c, p).0[g];
        assert forall|i: int| 0 <= i < R::depths()[g] implies #[trigger] after(s)[i] == kv[i] by {
            let l = Layer { group: g, index: i };
            assert(is_layer(R::depths(), l));
            assert(stored(R::program(), n, l));
        }
        assert(after(s) =~= kv);
    }
    assert forall|c: int, p: int| #[trigger]
        is_row(plan, c, p) && p >= plan[c].logits_from implies logits[c][p - plan[c].first] == row::<
        Layered<R>,
    >(w, shape, after, plan, c, p).1 by {
        lemma_row_matches(w, shape, plan, d, n, c, p);
    }
    assert forall|s: Slot|
        (forall|c: int, p: int| #[trigger]
            is_row(plan, c, p) ==> place(shape, plan, c, p, s.group) != s) implies #[trigger] after(s)
        == (d[0].memory)(s) by {
        lemma_kept(w, shape, plan, d, n, s);
    }
}

} // verus!
