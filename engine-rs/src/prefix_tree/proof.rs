//! Why the abstract tree stays sound, and what lookups find in it.
#[cfg(verus_only)]
use super::hash::*;
#[cfg(verus_only)]
use super::inv::*;
#[cfg(verus_only)]
use super::{block_of, Node, PrefixTree, TreeView, NONE};
use vstd::prelude::*;

verus! {

/// A key has one block.
pub proof fn lemma_find(v: TreeView, size: int, b: int, parent: u64, salt: u64, toks: Seq<u32>)
    requires
        v.ok(size),
        v.is_at(b, parent, salt, toks),
    ensures
        v.has(parent, salt, toks),
        v.find(parent, salt, toks) == b,
{
    let c = v.find(parent, salt, toks);
    assert(v.is_at(c, parent, salt, toks));
    if b < c {
        assert(v.nodes[b] is Some && v.nodes[c] is Some);
    } else if c < b {
        assert(v.nodes[c] is Some && v.nodes[b] is Some);
    }
}

/// A new node keeps the tree sound.
pub proof fn lemma_register_view(
    v: TreeView,
    size: int,
    b: u32,
    parent: u64,
    salt: u64,
    toks: Seq<u32>,
)
    requires
        v.ok(size),
        b < v.nodes.len(),
        v.nodes[b as int] is None,
        parent < v.prefixes.len() < u64::MAX,
        toks.len() == size,
        !v.has(parent, salt, toks),
    ensures
        v.register(b, parent, salt, toks).ok(size),
{
    let w = v.register(b, parent, salt, toks);
    assert forall|c: int|
        0 <= c < w.nodes.len() && (#[trigger] w.nodes[c]) is Some implies w.node_ok(
        size,
        w.nodes[c]->0,
    ) by {
        if c != b {
            assert(v.nodes[c] is Some);
            assert(v.node_ok(size, v.nodes[c]->0));
        }
    }
    assert forall|c: int| 0 <= c < v.nodes.len() && (#[trigger] v.nodes[c]) is Some implies !(
    v.nodes[c]->0).is(parent, salt, toks) && (v.nodes[c]->0).id < v.prefixes.len() by {
        assert(!v.is_at(c, parent, salt, toks));
        assert(v.node_ok(size, v.nodes[c]->0));
    }
    assert forall|c: int, d: int|
        #![trigger w.nodes[c], w.nodes[d]]
        0 <= c < d < w.nodes.len() && w.nodes[c] is Some && w.nodes[d] is Some implies ({
        let x = w.nodes[c]->0;
        let y = w.nodes[d]->0;
        x.id != y.id && !x.is(y.parent, y.salt, y.toks)
    }) by {
        assert(c == b || v.nodes[c] is Some);
        assert(d == b || v.nodes[d] is Some);
    }
}

/// A new node leaves every way through the tree as it was.
pub proof fn lemma_walk_register(
    v: TreeView,
    size: int,
    b: u32,
    parent: u64,
    salt: u64,
    toks: Seq<u32>,
    salt2: u64,
    way: Seq<u32>,
    k: int,
)
    requires
        v.ok(size),
        b < v.nodes.len(),
        v.nodes[b as int] is None,
        v.register(b, parent, salt, toks).ok(size),
        v.walk(size, salt2, way, k) is Some,
    ensures
        v.register(b, parent, salt, toks).walk(size, salt2, way, k) == v.walk(size, salt2, way, k),
    decreases k,
{
    if k > 0 {
        let w = v.register(b, parent, salt, toks);
        lemma_walk_register(v, size, b, parent, salt, toks, salt2, way, k - 1);
        let p = v.walk(size, salt2, way, k - 1)->0;
        let block = block_of(way, size, k - 1);
        let c = v.find(p, salt2, block);
        assert(v.is_at(c, p, salt2, block));
        assert(w.is_at(c, p, salt2, block));
        lemma_find(w, size, c, p, salt2, block);
    }
}

/// A new node after a way makes it longer.
pub proof fn lemma_walk_on(v: TreeView, size: int, b: int, salt: u64, way: Seq<u32>, k: int)
    requires
        v.ok(size),
        k >= 0,
        v.walk(size, salt, way, k) is Some,
        v.is_at(b, v.walk(size, salt, way, k)->0, salt, block_of(way, size, k)),
    ensures
        v.walk(size, salt, way, k + 1) == Some((v.nodes[b]->0).id),
{
    lemma_find(v, size, b, v.walk(size, salt, way, k)->0, salt, block_of(way, size, k));
}

/// A lookup follows the way to its end.
pub proof fn lemma_walk_hit(v: TreeView, size: int, salt: u64, way: Seq<u32>, k: int, max: int)
    requires
        0 <= k <= max,
        size >= 1,
        k * size <= way.len(),
        v.walk(size, salt, way, k) is Some,
    ensures
        v.hit(size, salt, way, 0, 0, max) == v.hit(
            size,
            salt,
            way,
            v.walk(size, salt, way, k)->0,
            k,
            max,
        ),
        v.hit(size, salt, way, 0, 0, k) == k,
    decreases k,
{
    if k > 0 {
        assert((k - 1) * size + size == k * size) by (nonlinear_arith);
        lemma_walk_hit(v, size, salt, way, k - 1, max);
        lemma_walk_hit(v, size, salt, way, k - 1, k);
        assert(v.hit(size, salt, way, v.walk(size, salt, way, k)->0, k, k) == k);
    }
}

/// A node less, the tree stays sound.
pub proof fn lemma_unregister_view(v: TreeView, size: int, b: u32)
    requires
        v.ok(size),
        b < v.nodes.len(),
    ensures
        v.unregister(b).ok(size),
{
    let w = v.unregister(b);
    assert forall|c: int|
        0 <= c < w.nodes.len() && (#[trigger] w.nodes[c]) is Some implies w.node_ok(
        size,
        w.nodes[c]->0,
    ) by {
        assert(v.node_ok(size, v.nodes[c]->0));
    }
}

} // verus!
