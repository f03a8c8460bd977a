//! The launch sequence of a decoder-only transformer (Llama, Qwen, Mistral): twelve launches a layer.
//! The runner executes exactly this list, as data; `just verify` compares the two.
use vstd::prelude::*;
use crate::trusted::kernel_contract::*;
use crate::trusted::row_functions::*;
use crate::trusted::runner::*;
use crate::trusted::theorem::*;
use crate::proofs::composition::*;

verus! {

/// Launch `j` of layer number `i`, which is `layer` of its group. Weights are numbered 12 a layer.
pub open spec fn layer_launch(i: int, layer: Layer, j: int) -> Launch {
    let weight = 12 * i + j;
    if j == 0 {
        Launch::Norm { weight, input: Buffer::Residual, out: Buffer::Normed }
    } else if j == 1 {
        Launch::Linear { weight, input: Buffer::Normed, out: Buffer::Qkv }
    } else if j == 2 {
        Launch::Rope { weight, input: Buffer::Qkv, out: Buffer::Qkv }
    } else if j == 3 {
        Launch::Store { layer, input: Buffer::Qkv }
    } else if j == 4 {
        Launch::Attention { layer, input: Buffer::Qkv, out: Buffer::Attended }
    } else if j == 5 {
        Launch::Linear { weight, input: Buffer::Attended, out: Buffer::Projected }
    } else if j == 6 {
        Launch::Add { left: Buffer::Residual, right: Buffer::Projected, out: Buffer::Residual }
    } else if j == 7 {
        Launch::Norm { weight, input: Buffer::Residual, out: Buffer::Normed }
    } else if j == 8 {
        Launch::Linear { weight, input: Buffer::Normed, out: Buffer::GateUp }
    } else if j == 9 {
        Launch::Gate { input: Buffer::GateUp, out: Buffer::Gated }
    } else if j == 10 {
        Launch::Linear { weight, input: Buffer::Gated, out: Buffer::Projected }
    } else {
        Launch::Add { left: Buffer::Residual, right: Buffer::Projected, out: Buffer::Residual }
    }
}

/// Embedding, the layers in order, final norm and head.
pub open spec fn decoder(layers: Seq<Layer>) -> Seq<Launch> {
    let body = 12 * layers.len() as int;
    Seq::new(
        (body + 3) as nat,
        |k: int|
            if k == 0 {
                Launch::Embed { weight: -1, out: Buffer::Residual }
            } else if k <= body {
                layer_launch((k - 1) / 12, layers[(k - 1) / 12], (k - 1) % 12)
            } else if k == body + 1 {
                Launch::Norm { weight: body, input: Buffer::Residual, out: Buffer::Normed }
            } else {
                Launch::Head { weight: body + 1, input: Buffer::Normed }
            },
    )
}

/// `layers` lists each layer of each group once.
pub open spec fn lists_layers(layers: Seq<Layer>, depths: Seq<nat>) -> bool {
    &&& layers.no_duplicates()
    &&& forall|i: int| 0 <= i < layers.len() ==> is_layer(depths, #[trigger] layers[i])
    &&& forall|l: Layer| #[trigger] is_layer(depths, l) ==> layers.contains(l)
}

/// Launch `j` of layer `i` is where it should be.
proof fn lemma_launch(layers: Seq<Layer>, i: int, j: int)
    requires
        0 <= i < layers.len(),
        0 <= j < 12,
    ensures
        0 < 12 * i + j + 1 <= 12 * layers.len(),
        decoder(layers)[12 * i + j + 1] == layer_launch(i, layers[i], j),
{
    assert((12 * i + j) / 12 == i && (12 * i + j) % 12 == j);
}

/// The layer's store is the only launch that stores it.
proof fn lemma_store(layers: Seq<Layer>, k: int, l: Layer)
    requires
        0 <= k < decoder(layers).len(),
        stores(decoder(layers)[k], l),
    ensures
        0 <= (k - 1) / 12 < layers.len(),
        layers[(k - 1) / 12] == l,
        k == 12 * ((k - 1) / 12) + 4,
{
}

/// Before launch `k`, what it reads is defined: within its layer, or by the embedding.
proof fn lemma_reads(layers: Seq<Layer>, k: int, b: Buffer)
    requires
        0 <= k < decoder(layers).len(),
        reads(decoder(layers)[k], b),
    ensures
        defined(decoder(layers), k, b),
{
    let program = decoder(layers);
    let body = 12 * layers.len() as int;
    assert(out(program[0]) == Some(Buffer::Residual));
    if 0 < k <= body {
        let i = (k - 1) / 12;
        let j = (k - 1) % 12;
        let start = 12 * i + 1;
        lemma_launch(layers, i, j);
        lemma_launch(layers, i, 0);
        lemma_launch(layers, i, 1);
        lemma_launch(layers, i, 4);
        lemma_launch(layers, i, 5);
        lemma_launch(layers, i, 7);
        lemma_launch(layers, i, 8);
        lemma_launch(layers, i, 9);
        lemma_launch(layers, i, 10);
        assert(out(program[start]) == Some(Buffer::Normed));
        assert(out(program[start + 1]) == Some(Buffer::Qkv));
        assert(out(program[start + 4]) == Some(Buffer::Attended));
        assert(out(program[start + 5]) == Some(Buffer::Projected));
        assert(out(program[start + 7]) == Some(Buffer::Normed));
        assert(out(program[start + 8]) == Some(Buffer::GateUp));
        assert(out(program[start + 9]) == Some(Buffer::Gated));
        assert(out(program[start + 10]) == Some(Buffer::Projected));
        assert(k == start + j);
    } else if k > body {
        assert(out(program[body + 1]) == Some(Buffer::Normed));
    }
}

/// The decoder's launch sequence is well-formed, however many layers, in whatever groups.
pub proof fn lemma_decoder_wf(layers: Seq<Layer>, depths: Seq<nat>)
    requires
        lists_layers(layers, depths),
    ensures
        program_wf(decoder(layers), depths),
{
    let program = decoder(layers);
    let body = 12 * layers.len() as int;
    assert forall|k: int, b: Buffer|
        0 <= k < program.len() && #[trigger] reads(program[k], b) implies defined(program, k, b) by {
        lemma_reads(layers, k, b);
    }
    assert forall|l: Layer| #[trigger] is_layer(depths, l) implies stored(
        program,
        program.len() as int,
        l,
    ) by {
        let i = choose|i: int| 0 <= i < layers.len() && layers[i] == l;
        lemma_launch(layers, i, 3);
        assert(stores(program[12 * i + 4], l));
    }
    assert forall|k: int, m: int, l: Layer|
        0 <= m < k < program.len() && #[trigger] stores(program[k], l) implies !#[trigger] stores(
        program[m],
        l,
    ) by {
        if stores(program[m], l) {
            lemma_store(layers, k, l);
            lemma_store(layers, m, l);
        }
    }
    assert forall|k: int|
        0 <= k < program.len() implies (#[trigger] program[k] matches Launch::Attention { layer, .. }
        ==> is_layer(depths, layer) && stored(program, k, layer)) by {
        if let Launch::Attention { layer, .. } = program[k] {
            let i = (k - 1) / 12;
            lemma_launch(layers, i, 3);
            assert(layer == layers[i]);
            assert(stores(program[12 * i + 4], layer));
        }
    }
    assert forall|k: int|
        0 <= k < program.len() implies (#[trigger] program[k] matches Launch::Store { layer, .. }
        ==> is_layer(depths, layer)) by {
        if let Launch::Store { layer, .. } = program[k] {
            assert(layer == layers[(k - 1) / 12]);
        }
    }
    assert(program[body + 2] is Head);
    assert forall|k: int, m: int|
        0 <= m < k < program.len() && #[trigger] program[k] is Head implies !(
    #[trigger] program[m] is Head) by {}
}

/// Determinism of a model of layers, from the contracts of its kernels.
pub proof fn corollary_layers<R: Layers>(
    x: Seq<System<Layered<R>>>,
    i: int,
    a: int,
    y: Seq<System<Layered<R>>>,
    j: int,
    b: int,
)
    requires
        recorded(x, i, a),
        recorded(y, j, b),
        same_request(x[i].log[a], y[j].log[b]),
    ensures
        agree(x[i].log[a], y[j].log[b]),
{
    theorem_determinism(x, i, a, y, j, b);
}

} // verus!
