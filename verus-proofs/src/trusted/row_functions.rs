//! Below the kernel contract: one row function for each kernel (schedule class), each backed by the
//! analyzer's certificate named beside it (on a CPU: by trusted Rust of vosti-cpu). What forward is for a
//! model made of them, and that the contract of a whole plan follows: proofs/composition.rs.
use vstd::prelude::*;
use crate::trusted::deployment::*;
use crate::trusted::kernel_contract::*;

verus! {

/// One layer's KV: number `index` among the layers of group `group`.
pub struct Layer { pub group: int, pub index: int }

/// The activations of a row, by name.
pub enum Buffer { Residual, Normed, Qkv, Attended, Projected, GateUp, Gated }

/// One entry of the launch sequence: a kernel over all rows of a plan, its weight and its buffers.
pub enum Launch {
    Embed { weight: int, out: Buffer },
    Norm { weight: int, input: Buffer, out: Buffer },
    Linear { weight: int, input: Buffer, out: Buffer },
    Rope { weight: int, input: Buffer, out: Buffer },
    Store { layer: Layer, input: Buffer },
    Attention { layer: Layer, input: Buffer, out: Buffer },
    Add { left: Buffer, right: Buffer, out: Buffer },
    Gate { input: Buffer, out: Buffer },
    Head { weight: int, input: Buffer },
}

/// Uninterpreted functions of one row. `Row`: an activation vector; `Cell`: K and V of one position in
/// one layer.
pub trait RowFunctions: Sized {
    type Weights;
    type Row;
    type Cell;
    type Logits;
    type State;

    /// certificate: embed
    spec fn embed(w: Self::Weights, weight: int, token: Token) -> Self::Row;

    /// certificate: norm
    spec fn norm(w: Self::Weights, weight: int, x: Self::Row) -> Self::Row;

    /// certificate: linear
    spec fn linear(w: Self::Weights, weight: int, x: Self::Row) -> Self::Row;

    /// certificate: rope
    spec fn rope(w: Self::Weights, weight: int, position: nat, x: Self::Row) -> Self::Row;

    /// certificate: store
    spec fn store(x: Self::Row) -> Self::Cell;

    /// certificate: attention. `cells`: of positions `0..=position`, its own last.
    spec fn attention(layer: Layer, x: Self::Row, cells: Seq<Self::Cell>) -> Self::Row;

    /// certificate: add
    spec fn add(x: Self::Row, y: Self::Row) -> Self::Row;

    /// certificate: gate
    spec fn gate(x: Self::Row) -> Self::Row;

    /// certificate: head
    spec fn head(w: Self::Weights, weight: int, x: Self::Row) -> Self::Logits;

    /// certificate: sampler
    spec fn sample(l: Self::Logits, s: Self::State, history: Seq<Token>) -> (Token, Self::State);
}

/// All that a plan's launches read and write; buffers and logits by (chunk, position).
pub struct Device<R: RowFunctions> {
    pub memory: spec_fn(Slot) -> Seq<R::Cell>,
    pub buffers: spec_fn(int, int, Buffer) -> R::Row,
    pub logits: spec_fn(int, int) -> R::Logits,
}

/// What a launch writes for a row: from its token, position, own buffers, and cells of one layer.
pub open spec fn value<R: RowFunctions>(
    w: R::Weights,
    launch: Launch,
    token: Token,
    position: nat,
    read: spec_fn(Buffer) -> R::Row,
    cells: Seq<R::Cell>,
) -> R::Row {
    match launch {
        Launch::Embed { weight, .. } => R::embed(w, weight, token),
        Launch::Norm { weight, input, .. } => R::norm(w, weight, read(input)),
        Launch::Linear { weight, input, .. } => R::linear(w, weight, read(input)),
        Launch::Rope { weight, input, .. } => R::rope(w, weight, position, read(input)),
        Launch::Attention { layer, input, .. } => R::attention(layer, read(input), cells),
        Launch::Add { left, right, .. } => R::add(read(left), read(right)),
        Launch::Gate { input, .. } => R::gate(read(input)),
        Launch::Store { input, .. } => read(input),
        Launch::Head { input, .. } => read(input),
    }
}

/// The buffer that a launch writes.
pub open spec fn out(launch: Launch) -> Option<Buffer> {
    match launch {
        Launch::Embed { out, .. } => Some(out),
        Launch::Norm { out, .. } => Some(out),
        Launch::Linear { out, .. } => Some(out),
        Launch::Rope { out, .. } => Some(out),
        Launch::Attention { out, .. } => Some(out),
        Launch::Add { out, .. } => Some(out),
        Launch::Gate { out, .. } => Some(out),
        Launch::Store { .. } => None,
        Launch::Head { .. } => None,
    }
}

/// The value of a launch for row (`c`, `p`), read through its block tables.
pub open spec fn row_value<R: RowFunctions>(
    w: R::Weights,
    shape: Shape,
    plan: Seq<Chunk>,
    launch: Launch,
    d: Device<R>,
    c: int,
    p: int,
) -> R::Row {
    let cells = match launch {
        Launch::Attention { layer, .. } => Seq::new(
            (p + 1) as nat,
            |q: int| (d.memory)(place(shape, plan, c, q, layer.group))[layer.index],
        ),
        _ => Seq::empty(),
    };
    let token = plan[c].tokens[p - plan[c].first];
    value::<R>(w, launch, token, p as nat, |b: Buffer| (d.buffers)(c, p, b), cells)
}

/// The contract of one launch: each row gets its value, and nothing else changes.
pub open spec fn launched<R: RowFunctions>(
    w: R::Weights,
    shape: Shape,
    plan: Seq<Chunk>,
    launch: Launch,
    d: Device<R>,
    d2: Device<R>,
) -> bool {
    &&& forall|c: int, p: int, b: Buffer| is_row(plan, c, p) ==> #[trigger] (d2.buffers)(c, p, b)
        == if out(launch) == Some(b) {
        row_value(w, shape, plan, launch, d, c, p)
    } else {
        (d.buffers)(c, p, b)
    }
    &&& match launch {
        Launch::Store { layer, input } => {
            &&& forall|c: int, p: int| #[trigger] is_row(plan, c, p) ==> {
                let s = place(shape, plan, c, p, layer.group);
                (d2.memory)(s) == (d.memory)(s).update(layer.index, R::store((d.buffers)(c, p, input)))
            }
            &&& forall|s: Slot| s.group != layer.group || (forall|c: int, p: int| #[trigger]
                is_row(plan, c, p) ==> place(shape, plan, c, p, layer.group) != s)
                ==> #[trigger] (d2.memory)(s) == (d.memory)(s)
        },
        _ => d2.memory == d.memory,
    }
    &&& match launch {
        Launch::Head { weight, input } => forall|c: int, p: int|
            is_row(plan, c, p) && p >= plan[c].logits_from ==> #[trigger] (d2.logits)(c, p) == R::head(
                w,
                weight,
                (d.buffers)(c, p, input),
            ),
        _ => d2.logits == d.logits,
    }
}

/// The kernels themselves: what a launch may do (`padding` rows of a captured graph included), and the
/// obligation that each certificate discharges.
pub trait Launches: RowFunctions {
    spec fn launches(
        w: Self::Weights,
        shape: Shape,
        plan: Seq<Chunk>,
        padding: nat,
        launch: Launch,
        d: Device<Self>,
        d2: Device<Self>,
    ) -> bool;

    proof fn launch_contract(
        w: Self::Weights,
        shape: Shape,
        plan: Seq<Chunk>,
        padding: nat,
        launch: Launch,
        d: Device<Self>,
        d2: Device<Self>,
    )
        requires
            plan_wf(shape, plan),
            Self::launches(w, shape, plan, padding, launch, d, d2),
        ensures
            launched(w, shape, plan, launch, d, d2),
    ;
}

} // verus!
