//! Below the kernel contract: one row function for each kernel (schedule class), backed by the certificate
//! named beside it. How `forward` is made of them, and why the contract of a whole plan follows from those
//! of its launches: proofs/composition.rs.
use crate::trusted::*;
use vstd::prelude::*;

verus! {

/// One layer's KV: number `index` among the layers of group `group`.
pub struct Layer { pub group: int, pub index: int }
/// The activations of a row, by name.
pub enum Buffer { Residual, Normed, Qkv, Attended, Projected, GateUp, Gated }
pub enum Kernel { Embed, Norm, Linear, Rope, Store, Attention, Add, Gate, Head }

/// One entry of the launch sequence: a kernel over all rows of a plan, its weight, the layer (of Store and
/// Attention), and the buffers it reads and writes.
pub struct Launch {
    pub kernel: Kernel, pub weight: int, pub layer: Layer, pub reads: Seq<Buffer>, pub out: Option<Buffer>,
}

/// Uninterpreted functions of one row (`Row`: its activations; `Cell`: its K and V in one layer).
pub trait RowFunctions: Sized {
    type Weights; type Row; type Cell; type Logits; type State;
    spec fn embed(w: Self::Weights, weight: int, token: Token) -> Self::Row; // cert: embed
    spec fn norm(w: Self::Weights, weight: int, x: Self::Row) -> Self::Row; // cert: norm
    spec fn linear(w: Self::Weights, weight: int, x: Self::Row) -> Self::Row; // cert: linear
    spec fn rope(w: Self::Weights, weight: int, position: nat, x: Self::Row) -> Self::Row; // cert: rope
    spec fn store(x: Self::Row) -> Self::Cell; // cert: store
    /// `cells`: of the positions that a row at position `p` sees, its own last.
    spec fn attention(l: Layer, p: nat, x: Self::Row, cells: Seq<Self::Cell>) -> Self::Row; // cert: attention
    spec fn add(x: Self::Row, y: Self::Row) -> Self::Row; // cert: add
    spec fn gate(x: Self::Row) -> Self::Row; // cert: gate
    spec fn head(w: Self::Weights, weight: int, x: Self::Row) -> Self::Logits; // cert: head
    // cert: sampler
    spec fn sample(l: Self::Logits, s: Self::State, history: Seq<Token>) -> (Token, Self::State);
}

/// What a launch makes of a row: of its token, position `p`, own buffers, and the cells of one layer.
pub open spec fn value<R: RowFunctions>(
    w: R::Weights, l: Launch, token: Token, p: nat, read: spec_fn(Buffer) -> R::Row, cells: Seq<R::Cell>,
) -> R::Row {
    let x = read(l.reads[0]);
    match l.kernel {
        Kernel::Embed => R::embed(w, l.weight, token), Kernel::Norm => R::norm(w, l.weight, x),
        Kernel::Linear => R::linear(w, l.weight, x), Kernel::Rope => R::rope(w, l.weight, p, x),
        Kernel::Attention => R::attention(l.layer, p, x, cells), Kernel::Add => R::add(x, read(l.reads[1])),
        Kernel::Gate => R::gate(x), Kernel::Store | Kernel::Head => x,
    }
}

/// All that launches read and write: KV memory, and buffers and logits by (chunk, position).
pub struct Device<R: RowFunctions> {
    pub memory: spec_fn(Slot) -> Seq<R::Cell>,
    pub buffers: spec_fn(int, int, Buffer) -> R::Row,
    pub logits: spec_fn(int, int) -> R::Logits,
}

/// A launch over a plan.
pub struct Launched<R: RowFunctions> {
    pub weights: R::Weights, pub shape: Shape, pub plan: Seq<Chunk>, pub padding: nat,
    pub launch: Launch, pub before: Device<R>, pub after: Device<R>,
}

impl<R: RowFunctions> Launched<R> {
    /// The launch's value for row (`c`, `p`); attention reads the row's own block tables.
    pub open spec fn value(self, c: int, p: int) -> R::Row {
        let (l, shape) = (self.launch.layer, self.shape);
        let first = first_seen(shape.windows[l.group], p);
        let cell = |j: int| (self.before.memory)(place(shape, self.plan, c, first + j, l.group))[l.index];
        let token = self.plan[c].tokens[p - self.plan[c].first];
        let read = |b: Buffer| (self.before.buffers)(c, p, b);
        value::<R>(self.weights, self.launch, token, p as nat, read, Seq::new((p + 1 - first) as nat, cell))
    }
    pub open spec fn stores_to(self, c: int, p: int, s: Slot) -> bool {
        is_row(self.plan, c, p) && place(self.shape, self.plan, c, p, self.launch.layer.group) == s
    }
    /// Slot `s` after the launch, if it is that of row (`c`, `p`).
    pub open spec fn store(self, c: int, p: int, s: Slot) -> Seq<R::Cell> {
        (self.before.memory)(s).update(self.launch.layer.index, R::store(self.value(c, p)))
    }
    /// The contract: each row gets its value, and nothing else changes.
    pub open spec fn keeps_contract(self) -> bool {
        let (d, d2, plan, launch) = (self.before, self.after, self.plan, self.launch);
        &&& forall|c: int, p: int, b: Buffer| is_row(plan, c, p) ==> #[trigger] (d2.buffers)(c, p, b)
            == if launch.out == Some(b) { self.value(c, p) } else { (d.buffers)(c, p, b) }
        &&& launch.kernel is Store || d2.memory == d.memory
        &&& launch.kernel is Store ==> forall|c: int, p: int, s: Slot|
            #[trigger] self.stores_to(c, p, s) ==> (d2.memory)(s) == self.store(c, p, s)
        &&& launch.kernel is Store ==> forall|s: Slot| (exists|c: int, p: int| self.stores_to(c, p, s))
            || #[trigger] (d2.memory)(s) == (d.memory)(s)
        &&& launch.kernel is Head || d2.logits == d.logits
        &&& launch.kernel is Head ==> forall|c: int, p: int| is_row(plan, c, p)
            && p >= plan[c].logits_from ==> #[trigger] (d2.logits)(c, p)
            == R::head(self.weights, launch.weight, self.value(c, p))
    }
}

/// The kernels themselves: what a launch may do, and the obligation that each certificate discharges.
pub trait Launches: RowFunctions {
    spec fn launches(x: Launched<Self>) -> bool;
    proof fn launch_contract(x: Launched<Self>)
        requires plan_wf(x.shape, x.plan), Self::launches(x), ensures x.keeps_contract();
}

} // verus!
