//! The launches' contract can be kept, for all row functions and every well-formed plan; and a toy
//! model of two layers in two groups keeps every obligation of a model of layers.
use crate::proofs::composition::*;
use crate::proofs::decoder::*;
use crate::trusted::*;
use vstd::prelude::*;

verus! {

/// The device after a launch that does what it has to.
pub open spec fn ideal_launch<R: RowFunctions>(x: Launched<R>) -> Device<R> {
    Device {
        memory: if x.launch.kernel is Store {
            |s: Slot|
                if exists|c: int, p: int| x.stores_to(c, p, s) {
                    let (c, p) = choose|c: int, p: int| x.stores_to(c, p, s);
                    x.store(c, p, s)
                } else {
                    (x.before.memory)(s)
                }
        } else {
            x.before.memory
        },
        buffers: |c: int, p: int, b: Buffer|
            if x.launch.out == Some(b) {
                x.value(c, p)
            } else {
                (x.before.buffers)(c, p, b)
            },
        logits: if x.launch.kernel is Head {
            |c: int, p: int| R::head(x.weights, x.launch.weight, x.value(c, p))
        } else {
            x.before.logits
        },
    }
}

/// Row functions that keep, as a number, a trace of what they were given.
pub struct ToyLayers;

impl RowFunctions for ToyLayers {
    type Weights = int;

    type Row = int;

    type Cell = int;

    type Logits = int;

    type State = int;

    open spec fn embed(w: int, weight: int, token: Token) -> int {
        w + token
    }

    open spec fn norm(w: int, weight: int, x: int) -> int {
        x + weight
    }

    open spec fn linear(w: int, weight: int, x: int) -> int {
        3 * x + weight
    }

    open spec fn rope(w: int, weight: int, position: nat, x: int) -> int {
        x + 5 * position
    }

    open spec fn store(x: int) -> int {
        x
    }

    open spec fn attention(layer: Layer, position: nat, x: int, cells: Seq<int>) -> int {
        cells.fold_left(x, |sum: int, cell: int| 7 * sum + cell)
    }

    open spec fn add(x: int, y: int) -> int {
        x + y
    }

    open spec fn gate(x: int) -> int {
        2 * x
    }

    open spec fn head(w: int, weight: int, x: int) -> int {
        x
    }

    open spec fn sample(l: int, s: int, history: Seq<Token>) -> (Token, int) {
        (l + s, s + 1)
    }
}

impl Launches for ToyLayers {
    open spec fn launches(x: Launched<ToyLayers>) -> bool {
        &&& x.launch.kernel is Store ==> 0 <= x.launch.layer.group < x.shape.groups()
        &&& x.after == ideal_launch(x)
    }

    proof fn launch_contract(x: Launched<ToyLayers>) {
    }
}

/// One layer in each of two groups, of which the second has a window.
pub open spec fn two_layers() -> Seq<Layer> {
    seq![Layer { group: 0, index: 0 }, Layer { group: 1, index: 0 }]
}

impl Layers for ToyLayers {
    open spec fn depths() -> Seq<nat> {
        seq![1nat, 1]
    }

    open spec fn windows() -> Seq<nat> {
        seq![0nat, 3]
    }

    open spec fn program() -> Seq<Launch> {
        decoder(two_layers(), false)
    }

    proof fn program_ok() {
        let layers = two_layers();
        lemma_decoder_wf(layers, false, Self::depths());
    }
}

/// So theorem 1 speaks of something: for a whole plan the toy's launches keep the kernel contract.
pub proof fn lemma_toy_layers(x: Execution<Layered<ToyLayers>>)
    requires
        x.shape.windows == ToyLayers::windows(),
        plan_wf(x.shape, x.plan),
        Layered::<ToyLayers>::executes(x),
    ensures
        x.rows_computed(),
{
    Layered::<ToyLayers>::contract(x);
}

} // verus!
