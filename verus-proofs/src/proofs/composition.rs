//! A model made of layers: forward is *defined* by its launch sequence, row by row; and the
//! contract of a whole plan is proved from the contracts of its launches.
//!
//! Outside, induction over the launches; inside, all rows. A launch of layer l changes the cells of
//! layer l alone, each layer is stored once and before its attention, so what attention reads of
//! other rows is what the memory holds in the end: the reference needs no order of rows.
use crate::proofs::launches::*;
use crate::trusted::*;
use vstd::prelude::*;

verus! {

/// A model: row functions, its launch sequence, and of each group how many layers it has and how
/// far back they see.
pub trait Layers: Launches {
    spec fn depths() -> Seq<nat>;

    spec fn windows() -> Seq<nat>;

    spec fn program() -> Seq<Launch>;

    proof fn program_ok()
        ensures
            program_wf(Self::program(), Self::depths()),
            Self::windows().len() == Self::depths().len(),
    ;
}

pub open spec fn is_layer(depths: Seq<nat>, l: Layer) -> bool {
    0 <= l.group < depths.len() && 0 <= l.index < depths[l.group]
}

pub open spec fn stores(launch: Launch, l: Layer) -> bool {
    launch.kernel is Store && launch.layer == l
}

/// How many buffers a kernel reads.
pub open spec fn arity(kernel: Kernel) -> nat {
    match kernel {
        Kernel::Embed => 0,
        Kernel::Add => 2,
        _ => 1,
    }
}

/// Buffer `b` has a value before launch `k`.
pub open spec fn defined(program: Seq<Launch>, k: int, b: Buffer) -> bool {
    exists|m: int| 0 <= m < k && (#[trigger] program[m]).out == Some(b)
}

/// Layer `l` is stored before launch `k`.
pub open spec fn stored(program: Seq<Launch>, k: int, l: Layer) -> bool {
    exists|m: int| 0 <= m < k && stores(#[trigger] program[m], l)
}

/// Logits are written before launch `k`.
pub open spec fn headed(program: Seq<Launch>, k: int) -> bool {
    exists|m: int| 0 <= m < k && (#[trigger] program[m]).kernel is Head
}

/// Every buffer is defined before it is used; every layer is stored once, before its attention; the
/// logits are written once.
pub open spec fn program_wf(program: Seq<Launch>, depths: Seq<nat>) -> bool {
    &&& forall|k: int|
        0 <= k < program.len() ==> (#[trigger] program[k]).reads.len() == arity(program[k].kernel)
    &&& forall|k: int, i: int|
        0 <= k < program.len() && 0 <= i < program[k].reads.len() ==> defined(
            program,
            k,
            #[trigger] program[k].reads[i],
        )
    &&& forall|l: Layer| #[trigger] is_layer(depths, l) ==> stored(program, program.len() as int, l)
    &&& forall|k: int, m: int, l: Layer|
        0 <= m < k < program.len() && #[trigger] stores(program[k], l) ==> !#[trigger] stores(
            program[m],
            l,
        )
    &&& forall|k: int|
        0 <= k < program.len() && (#[trigger] program[k]).kernel is Attention ==> is_layer(
            depths,
            program[k].layer,
        ) && stored(program, k, program[k].layer)
    &&& forall|k: int|
        0 <= k < program.len() && (#[trigger] program[k]).kernel is Store ==> is_layer(
            depths,
            program[k].layer,
        )
    &&& headed(program, program.len() as int)
    &&& forall|k: int, m: int|
        0 <= m < k < program.len() && (#[trigger] program[k]).kernel is Head ==> !((
        #[trigger] program[m]).kernel is Head)
}

/// One row on its way through the launches.
pub struct RowState<R: RowFunctions> {
    pub buffers: spec_fn(Buffer) -> R::Row,
    pub cells: spec_fn(Layer) -> R::Cell,
    pub logits: R::Logits,
}

/// The cells of layer `l` at the positions that the row after `past` sees: of the past, and its
/// own.
pub open spec fn cells_of<R: Layers>(past: Seq<Seq<Seq<R::Cell>>>, own: R::Cell, l: Layer) -> Seq<
    R::Cell,
> {
    let first = first_seen(R::windows()[l.group], past.len() as int);
    Seq::new((past.len() - first) as nat, |j: int| past[first + j][l.group][l.index]).push(own)
}

/// One launch, for one row.
pub open spec fn step_row<R: Layers>(
    w: R::Weights,
    launch: Launch,
    past: Seq<Seq<Seq<R::Cell>>>,
    token: Token,
    s: RowState<R>,
) -> RowState<R> {
    let cells = cells_of::<R>(past, (s.cells)(launch.layer), launch.layer);
    let x = value::<R>(w, launch, token, past.len(), s.buffers, cells);
    RowState {
        buffers: |b: Buffer|
            if launch.out == Some(b) {
                x
            } else {
                (s.buffers)(b)
            },
        cells: |l: Layer|
            if stores(launch, l) {
                R::store(x)
            } else {
                (s.cells)(l)
            },
        logits: if launch.kernel is Head {
            R::head(w, launch.weight, x)
        } else {
            s.logits
        },
    }
}

/// One row through the first `k` launches.
pub open spec fn run_row<R: Layers>(
    w: R::Weights,
    k: nat,
    past: Seq<Seq<Seq<R::Cell>>>,
    token: Token,
) -> RowState<R>
    decreases k,
{
    if k == 0 {
        RowState {
            buffers: |b: Buffer| arbitrary(),
            cells: |l: Layer| arbitrary(),
            logits: arbitrary(),
        }
    } else {
        step_row::<R>(w, R::program()[k - 1], past, token, run_row(w, (k - 1) as nat, past, token))
    }
}

/// The model, as `Model`.
pub struct Layered<R> {
    pub row_functions: R,
}

impl<R: Layers> Model for Layered<R> {
    type Weights = R::Weights;

    type Kv = Seq<R::Cell>;

    type Logits = R::Logits;

    open spec fn windows() -> Seq<nat> {
        R::windows()
    }

    open spec fn forward(w: R::Weights, past: Seq<Seq<Seq<R::Cell>>>, token: Token) -> (
        Seq<Seq<R::Cell>>,
        R::Logits,
    ) {
        let s = run_row::<R>(w, R::program().len(), past, token);
        (
            Seq::new(
                R::depths().len(),
                |group: int|
                    Seq::new(R::depths()[group], |index: int| (s.cells)(Layer { group, index })),
            ),
            s.logits,
        )
    }

    proof fn forward_fills_groups(w: R::Weights, past: Seq<Seq<Seq<R::Cell>>>, token: Token) {
        R::program_ok();
    }

    proof fn forward_sees_windows(
        w: R::Weights,
        past: Seq<Seq<Seq<R::Cell>>>,
        other: Seq<Seq<Seq<R::Cell>>>,
        token: Token,
    ) {
        lemma_run_sees_windows::<R>(w, R::program().len(), past, other, token);
    }
}

/// Attention looks at the cells that the row sees, and no other launch looks at any.
proof fn lemma_run_sees_windows<R: Layers>(
    w: R::Weights,
    k: nat,
    past: Seq<Seq<Seq<R::Cell>>>,
    other: Seq<Seq<Seq<R::Cell>>>,
    token: Token,
)
    requires
        same_seen(R::windows(), past, other),
        k <= R::program().len(),
    ensures
        run_row::<R>(w, k, past, token) == run_row::<R>(w, k, other, token),
    decreases k,
{
    if k > 0 {
        R::program_ok();
        lemma_run_sees_windows::<R>(w, (k - 1) as nat, past, other, token);
        let launch = R::program()[k - 1];
        let l = launch.layer;
        let own = (run_row::<R>(w, (k - 1) as nat, past, token).cells)(l);
        if launch.kernel is Attention {
            assert(cells_of::<R>(past, own, l) =~= cells_of::<R>(other, own, l));
        }
    }
}

impl<R: Layers> Sampler for Layered<R> {
    type State = R::State;

    open spec fn sample(l: R::Logits, s: R::State, history: Seq<Token>) -> (Token, R::State) {
        R::sample(l, s, history)
    }
}

/// Launch `k` of an execution, between two states of the device.
pub open spec fn launch_at<R: Layers>(
    x: Execution<Layered<R>>,
    d: Seq<Device<R>>,
    k: int,
) -> Launched<R> {
    Launched {
        weights: x.weights,
        shape: x.shape,
        plan: x.plan,
        padding: x.padding,
        launch: R::program()[k],
        before: d[k],
        after: d[k + 1],
    }
}

/// A slot has one cell for each layer of its group.
pub open spec fn sized<R: Layers>(memory: spec_fn(Slot) -> Seq<R::Cell>) -> bool {
    forall|s: Slot| #[trigger] memory(s).len() == R::depths()[s.group]
}

pub open spec fn logits_are<R: Layers>(
    plan: Seq<Chunk>,
    d: Device<R>,
    logits: Seq<Seq<R::Logits>>,
) -> bool {
    &&& forall|c: int| 0 <= c < plan.len() ==> #[trigger] logits[c].len() == plan[c].tokens.len()
    &&& forall|c: int, p: int| #[trigger]
        is_row(plan, c, p) ==> logits[c][p - plan[c].first] == (d.logits)(c, p)
}

/// `d`: the states of the device before, between and after the launches of the plan.
pub open spec fn launches_all<R: Layers>(x: Execution<Layered<R>>, d: Seq<Device<R>>) -> bool {
    &&& d.len() == R::program().len() + 1
    &&& d[0].memory == x.before && d.last().memory == x.after
    &&& sized::<R>(x.before)
    &&& logits_are(x.plan, d.last(), x.logits)
    &&& forall|k: int| 0 <= k < R::program().len() ==> R::launches(#[trigger] launch_at(x, d, k))
}

impl<R: Layers> Kernels for Layered<R> {
    open spec fn executes(x: Execution<Layered<R>>) -> bool {
        exists|d: Seq<Device<R>>| launches_all(x, d)
    }

    proof fn contract(x: Execution<Layered<R>>) {
        let d = choose|d: Seq<Device<R>>| launches_all(x, d);
        lemma_launched(x, d);
        lemma_rows_computed(x, d);
    }
}

} // verus!
