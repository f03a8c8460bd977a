//! A launch sequence of a decoder-only transformer (Llama, Qwen, Mistral; with *sandwich* norms,
//! Gemma 3): twelve or fourteen launches a layer, and well-formed however many layers there are, in
//! whatever groups. The GPU runner fuses some of them into one kernel: `just verify` replays the
//! launches that it makes (launches.json) and finds these, buffer by buffer.
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

/// Launch `j` of layer number `i`, which is `layer` of its group, of a model with sandwich norms:
/// the others have no launches 6 and 12. Weights are numbered 14 a layer.
pub open spec fn layer_launch(i: int, layer: Layer, j: int) -> Launch {
    let weight = 14 * i + j;
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
        unary(Kernel::Norm, weight, Buffer::Projected, Buffer::Projected)
    } else if j == 7 {
        add_projected()
    } else if j == 8 {
        unary(Kernel::Norm, weight, Buffer::Residual, Buffer::Normed)
    } else if j == 9 {
        unary(Kernel::Linear, weight, Buffer::Normed, Buffer::GateUp)
    } else if j == 10 {
        unary(Kernel::Gate, -1, Buffer::GateUp, Buffer::Gated)
    } else if j == 11 {
        unary(Kernel::Linear, weight, Buffer::Gated, Buffer::Projected)
    } else if j == 12 {
        unary(Kernel::Norm, weight, Buffer::Projected, Buffer::Projected)
    } else {
        add_projected()
    }
}

/// Launches of a layer.
pub open spec fn layer_len(sandwich: bool) -> int {
    if sandwich {
        14
    } else {
        12
    }
}

/// Which of `layer_launch` a layer's launch `k` is.
pub open spec fn nth(sandwich: bool, k: int) -> int {
    if sandwich || k < 6 {
        k
    } else if k < 11 {
        k + 1
    } else {
        k + 2
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
pub open spec fn decoder(layers: Seq<Layer>, sandwich: bool) -> Seq<Launch> {
    let n = layer_len(sandwich);
    let body = n * layers.len() as int;
    Seq::new(
        (body + 3) as nat,
        |k: int|
            if k == 0 {
                embedding()
            } else if k <= body {
                layer_launch((k - 1) / n, layers[(k - 1) / n], nth(sandwich, (k - 1) % n))
            } else if k == body + 1 {
                unary(Kernel::Norm, 14 * layers.len() as int, Buffer::Residual, Buffer::Normed)
            } else {
                head(14 * layers.len() as int + 1)
            },
    )
}

/// `layers` lists each layer of each group once.
pub open spec fn lists_layers(layers: Seq<Layer>, depths: Seq<nat>) -> bool {
    &&& layers.no_duplicates()
    &&& forall|i: int| 0 <= i < layers.len() ==> is_layer(depths, #[trigger] layers[i])
    &&& forall|l: Layer| #[trigger] is_layer(depths, l) ==> layers.contains(l)
}

/// Launch `k` of layer `i` is where it should be.
proof fn lemma_launch(layers: Seq<Layer>, sandwich: bool, i: int, k: int)
    requires
        0 <= i < layers.len(),
        0 <= k < layer_len(sandwich),
    ensures
        0 < layer_len(sandwich) * i + k + 1 <= layer_len(sandwich) * layers.len(),
        decoder(layers, sandwich)[layer_len(sandwich) * i + k + 1] == layer_launch(
            i,
            layers[i],
            nth(sandwich, k),
        ),
{
    if sandwich {
        assert((14 * i + k) / 14 == i && (14 * i + k) % 14 == k);
    } else {
        assert((12 * i + k) / 12 == i && (12 * i + k) % 12 == k);
    }
}

/// Launch `at` of the sequence is launch `k` of layer `i`.
proof fn lemma_at(layers: Seq<Layer>, sandwich: bool, at: int) -> (ik: (int, int))
    requires
        0 < at <= layer_len(sandwich) * layers.len(),
    ensures
        0 <= ik.0 < layers.len(),
        0 <= ik.1 < layer_len(sandwich),
        at == layer_len(sandwich) * ik.0 + ik.1 + 1,
        decoder(layers, sandwich)[at] == layer_launch(ik.0, layers[ik.0], nth(sandwich, ik.1)),
{
    let n = layer_len(sandwich);
    if sandwich {
        assert(0 <= (at - 1) / 14 < layers.len());
    } else {
        assert(0 <= (at - 1) / 12 < layers.len());
    }
    ((at - 1) / n, (at - 1) % n)
}

/// The layer's store is the only launch that stores it.
proof fn lemma_store(layers: Seq<Layer>, sandwich: bool, at: int, l: Layer) -> (i: int)
    requires
        0 <= at < decoder(layers, sandwich).len(),
        stores(decoder(layers, sandwich)[at], l),
    ensures
        0 <= i < layers.len(),
        layers[i] == l,
        at == layer_len(sandwich) * i + 4,
{
    if 0 < at <= layer_len(sandwich) * layers.len() {
        lemma_at(layers, sandwich, at).0
    } else {
        0
    }
}

/// Launch `k` of layer `i` writes to `out`.
spec fn writes(layers: Seq<Layer>, sandwich: bool, i: int, k: int, out: Buffer) -> bool {
    decoder(layers, sandwich)[layer_len(sandwich) * i + k + 1].out == Some(out)
}

/// Where a layer's launches write what later ones of it read.
proof fn lemma_writes(layers: Seq<Layer>, sandwich: bool, i: int)
    requires
        0 <= i < layers.len(),
    ensures
        writes(layers, sandwich, i, 0, Buffer::Normed),
        writes(layers, sandwich, i, 1, Buffer::Qkv),
        writes(layers, sandwich, i, 4, Buffer::Attended),
        writes(layers, sandwich, i, 5, Buffer::Projected),
        !sandwich ==> writes(layers, sandwich, i, 8, Buffer::GateUp),
        !sandwich ==> writes(layers, sandwich, i, 9, Buffer::Gated),
        sandwich ==> writes(layers, sandwich, i, 9, Buffer::GateUp),
        sandwich ==> writes(layers, sandwich, i, 10, Buffer::Gated),
{
    let last = if sandwich {
        10int
    } else {
        9
    };
    lemma_launch(layers, sandwich, i, 0);
    lemma_launch(layers, sandwich, i, 1);
    lemma_launch(layers, sandwich, i, 4);
    lemma_launch(layers, sandwich, i, 5);
    lemma_launch(layers, sandwich, i, last - 1);
    lemma_launch(layers, sandwich, i, last);
}

/// What a launch reads is defined: by the embedding or an earlier launch of its layer.
proof fn lemma_reads(layers: Seq<Layer>, sandwich: bool, at: int, r: int)
    requires
        0 <= at < decoder(layers, sandwich).len(),
        0 <= r < decoder(layers, sandwich)[at].reads.len(),
    ensures
        defined(decoder(layers, sandwich), at, decoder(layers, sandwich)[at].reads[r]),
{
    let program = decoder(layers, sandwich);
    let n = layer_len(sandwich);
    assert(program[0].out == Some(Buffer::Residual));
    if 0 < at <= n * layers.len() {
        let (i, k) = lemma_at(layers, sandwich, at);
        lemma_writes(layers, sandwich, i);
    } else if at > n * layers.len() {
        assert(program[n * layers.len() + 1].out == Some(Buffer::Normed));
    }
}

/// The head comes last.
proof fn lemma_head(layers: Seq<Layer>, sandwich: bool)
    ensures
        decoder(layers, sandwich).len() > 0,
        decoder(layers, sandwich)[decoder(layers, sandwich).len() - 1].kernel is Head,
{
    assert(layer_len(sandwich) * layers.len() >= 0) by (nonlinear_arith)
        requires
            layer_len(sandwich) >= 0,
            layers.len() >= 0,
    ;
}

/// A launch has as many inputs as its kernel; what stores or attends is a layer's.
proof fn lemma_kernel(layers: Seq<Layer>, sandwich: bool, depths: Seq<nat>, at: int)
    requires
        lists_layers(layers, depths),
        0 <= at < decoder(layers, sandwich).len(),
    ensures
        decoder(layers, sandwich)[at].reads.len() == arity(decoder(layers, sandwich)[at].kernel),
        decoder(layers, sandwich)[at].kernel is Head ==> at == decoder(layers, sandwich).len() - 1,
        decoder(layers, sandwich)[at].kernel is Store ==> is_layer(
            depths,
            decoder(layers, sandwich)[at].layer,
        ),
        decoder(layers, sandwich)[at].kernel is Attention ==> is_layer(
            depths,
            decoder(layers, sandwich)[at].layer,
        ) && stored(decoder(layers, sandwich), at, decoder(layers, sandwich)[at].layer),
{
    if 0 < at <= layer_len(sandwich) * layers.len() {
        let (i, k) = lemma_at(layers, sandwich, at);
        lemma_launch(layers, sandwich, i, 3);
        assert(stores(decoder(layers, sandwich)[layer_len(sandwich) * i + 4], layers[i]));
    }
}

/// Each layer is stored, once.
proof fn lemma_stored(layers: Seq<Layer>, sandwich: bool, depths: Seq<nat>, l: Layer)
    requires
        lists_layers(layers, depths),
        is_layer(depths, l),
    ensures
        stored(decoder(layers, sandwich), decoder(layers, sandwich).len() as int, l),
{
    let i = choose|i: int| 0 <= i < layers.len() && layers[i] == l;
    lemma_launch(layers, sandwich, i, 3);
    assert(stores(decoder(layers, sandwich)[layer_len(sandwich) * i + 4], l));
}

proof fn lemma_stored_once(layers: Seq<Layer>, sandwich: bool, at: int, before: int, l: Layer)
    requires
        layers.no_duplicates(),
        0 <= before < at < decoder(layers, sandwich).len(),
        stores(decoder(layers, sandwich)[at], l),
    ensures
        !stores(decoder(layers, sandwich)[before], l),
{
    if stores(decoder(layers, sandwich)[before], l) {
        let i = lemma_store(layers, sandwich, at, l);
        let j = lemma_store(layers, sandwich, before, l);
        assert(i == j);
    }
}

/// The decoder's launch sequence is well-formed, however many layers, in whatever groups.
pub proof fn lemma_decoder_wf(layers: Seq<Layer>, sandwich: bool, depths: Seq<nat>)
    requires
        lists_layers(layers, depths),
    ensures
        program_wf(decoder(layers, sandwich), depths),
{
    hide(decoder);
    let program = decoder(layers, sandwich);
    lemma_head(layers, sandwich);
    assert forall|at: int| 0 <= at < program.len() implies (#[trigger] program[at]).reads.len()
        == arity(program[at].kernel) && (program[at].kernel is Head ==> at == program.len() - 1)
        && (program[at].kernel is Store ==> is_layer(depths, program[at].layer)) && (
    program[at].kernel is Attention ==> is_layer(depths, program[at].layer) && stored(
        program,
        at,
        program[at].layer,
    )) by {
        lemma_kernel(layers, sandwich, depths, at);
    }
    assert forall|at: int, r: int|
        0 <= at < program.len() && 0 <= r < program[at].reads.len() implies defined(
        program,
        at,
        #[trigger] program[at].reads[r],
    ) by {
        lemma_reads(layers, sandwich, at, r);
    }
    assert forall|l: Layer| #[trigger] is_layer(depths, l) implies stored(
        program,
        program.len() as int,
        l,
    ) by {
        lemma_stored(layers, sandwich, depths, l);
    }
    assert forall|at: int, before: int, l: Layer|
        0 <= before < at < program.len() && #[trigger] stores(
            program[at],
            l,
        ) implies !#[trigger] stores(program[before], l) by {
        lemma_stored_once(layers, sandwich, at, before, l);
    }
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
