//! A launch sequence of a decoder-only transformer (Llama, Qwen, Mistral): twelve launches a layer,
//! and well-formed however many layers there are, in whatever groups. The GPU runner fuses some of
//! them into one kernel: `just verify` replays the launches that it makes (launches.json) and finds
//! these, buffer by buffer.
use crate::proofs::composition::*;
use crate::trusted::theorem::*;
use crate::trusted::*;
use vstd::prelude::*;

verus! {

/// Launches of one buffer into one.
pub open spec fn unary(kernel: Kernel, weight: int, input: Buffer, out: Buffer) -> Launch {
    Launch { kernel, weight, layer: no_layer(), reads: seq![input], out: Some(out) }
}

/// For kernels without a layer.
pub open spec fn no_layer() -> Layer {
    Layer { group: -1, index: -1 }
}

/// The residual stream takes a projection in.
pub open spec fn add_projected() -> Launch {
    Launch {
        kernel: Kernel::Add,
        weight: -1,
        layer: no_layer(),
        reads: seq![Buffer::Residual, Buffer::Projected],
        out: Some(Buffer::Residual),
    }
}

/// Launch `j` of layer number `i`, which is `layer` of its group. Weights are numbered 12 a layer.
pub open spec fn layer_launch(i: int, layer: Layer, j: int) -> Launch {
    let weight = 12 * i + j;
    let reads = seq![Buffer::Qkv];
    if j == 0 {
        unary(Kernel::Norm, weight, Buffer::Residual, Buffer::Normed)
    } else if j == 1 {
        unary(Kernel::Linear, weight, Buffer::Normed, Buffer::Qkv)
    } else if j == 2 {
        unary(Kernel::Rope, weight, Buffer::Qkv, Buffer::Qkv)
    } else if j == 3 {
        Launch { kernel: Kernel::Store, weight: -1, layer, reads, out: None }
    } else if j == 4 {
        Launch { kernel: Kernel::Attention, weight: -1, layer, reads, out: Some(Buffer::Attended) }
    } else if j == 5 {
        unary(Kernel::Linear, weight, Buffer::Attended, Buffer::Projected)
    } else if j == 6 {
        add_projected()
    } else if j == 7 {
        unary(Kernel::Norm, weight, Buffer::Residual, Buffer::Normed)
    } else if j == 8 {
        unary(Kernel::Linear, weight, Buffer::Normed, Buffer::GateUp)
    } else if j == 9 {
        unary(Kernel::Gate, -1, Buffer::GateUp, Buffer::Gated)
    } else if j == 10 {
        unary(Kernel::Linear, weight, Buffer::Gated, Buffer::Projected)
    } else {
        add_projected()
    }
}

pub open spec fn embedding() -> Launch {
    Launch {
        kernel: Kernel::Embed,
        weight: -1,
        layer: no_layer(),
        reads: Seq::empty(),
        out: Some(Buffer::Residual),
    }
}

pub open spec fn head(weight: int) -> Launch {
    let reads = seq![Buffer::Normed];
    Launch { kernel: Kernel::Head, weight, layer: no_layer(), reads, out: None }
}

/// Embedding, the layers in order, final norm and head.
pub open spec fn decoder(layers: Seq<Layer>) -> Seq<Launch> {
    let body = 12 * layers.len() as int;
    Seq::new(
        (body + 3) as nat,
        |k: int|
            if k == 0 {
                embedding()
            } else if k <= body {
                layer_launch((k - 1) / 12, layers[(k - 1) / 12], (k - 1) % 12)
            } else if k == body + 1 {
                unary(Kernel::Norm, body, Buffer::Residual, Buffer::Normed)
            } else {
                head(body + 1)
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

/// Launch `j` of a layer reads what the embedding or an earlier launch of the layer wrote.
proof fn lemma_layer_reads(layers: Seq<Layer>, k: int, i: int)
    requires
        0 < k <= 12 * layers.len(),
        0 <= i < decoder(layers)[k].reads.len(),
    ensures
        defined(decoder(layers), k, decoder(layers)[k].reads[i]),
{
    let program = decoder(layers);
    let start = 12 * ((k - 1) / 12) + 1;
    let at = (k - 1) / 12;
    assert(program[0].out == Some(Buffer::Residual));
    assert(k == start + (k - 1) % 12);
    lemma_launch(layers, at, (k - 1) % 12);
    lemma_launch(layers, at, 0);
    lemma_launch(layers, at, 1);
    lemma_launch(layers, at, 4);
    lemma_launch(layers, at, 5);
    lemma_launch(layers, at, 7);
    lemma_launch(layers, at, 8);
    lemma_launch(layers, at, 9);
    lemma_launch(layers, at, 10);
    assert(program[start].out == Some(Buffer::Normed));
    assert(program[start + 1].out == Some(Buffer::Qkv));
    assert(program[start + 4].out == Some(Buffer::Attended));
    assert(program[start + 5].out == Some(Buffer::Projected));
    assert(program[start + 7].out == Some(Buffer::Normed));
    assert(program[start + 8].out == Some(Buffer::GateUp));
    assert(program[start + 9].out == Some(Buffer::Gated));
    assert(program[start + 10].out == Some(Buffer::Projected));
}

/// Before launch `k`, what it reads is defined.
proof fn lemma_reads(layers: Seq<Layer>, k: int, i: int)
    requires
        0 <= k < decoder(layers).len(),
        0 <= i < decoder(layers)[k].reads.len(),
    ensures
        defined(decoder(layers), k, decoder(layers)[k].reads[i]),
{
    let program = decoder(layers);
    let body = 12 * layers.len() as int;
    assert(program[0].out == Some(Buffer::Residual));
    if 0 < k <= body {
        lemma_layer_reads(layers, k, i);
    } else if k > body {
        assert(program[body + 1].out == Some(Buffer::Normed));
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
    assert forall|k: int| 0 <= k < program.len()
        implies (#[trigger] program[k]).reads.len() == arity(
        program[k].kernel,
    ) by {}
    assert forall|k: int, i: int| 0 <= k < program.len() && 0 <= i < program[k].reads.len() implies
        defined(program, k, #[trigger] program[k].reads[i]) by {
        lemma_reads(layers, k, i);
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
        0 <= k < program.len() && (#[trigger] program[k]).kernel is Attention implies is_layer(
        depths,
        program[k].layer,
    ) && stored(program, k, program[k].layer) by {
        let i = (k - 1) / 12;
        lemma_launch(layers, i, 3);
        assert(program[k].layer == layers[i]);
        assert(stores(program[12 * i + 4], layers[i]));
    }
    assert forall|k: int|
        0 <= k < program.len() && (#[trigger] program[k]).kernel is Store implies is_layer(
        depths,
        program[k].layer,
    ) by {
        assert(program[k].layer == layers[(k - 1) / 12]);
    }
    assert(program[body + 2].kernel is Head);
}

/// Determinism of a model of layers, from the contracts of its kernels.
pub proof fn corollary_layers<R: Layers>(a: At<Layered<R>>, b: At<Layered<R>>)
    requires
        a.ok(),
        b.ok(),
        same_request(a.record(), b.record()),
    ensures
        agree(a.record(), b.record()),
{
    theorem_determinism(a, b);
}

} // verus!
