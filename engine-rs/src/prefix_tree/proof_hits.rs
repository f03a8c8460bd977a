//! While nothing is evicted, what a lookup finds depends on the prefixes of its salt alone.
#[cfg(verus_only)]
use super::block_of;
#[cfg(verus_only)]
use super::proof::*;
use super::TreeView;
use vstd::prelude::*;

verus! {

impl TreeView {
    /// Block `b` is the node of this id, under this salt.
    pub open spec fn is_node(self, b: int, id: u64, salt: u64) -> bool {
        &&& 0 <= b < self.nodes.len()
        &&& self.nodes[b] matches Some(x) && x.id == id && x.salt == salt
    }

    /// The root, or a node of this salt.
    pub open spec fn reaches(self, id: u64, salt: u64) -> bool {
        id == 0 || exists|b: int| #[trigger] self.is_node(b, id, salt)
    }

    /// The parents of all nodes of this salt are still there: none was evicted.
    pub open spec fn rooted(self, salt: u64) -> bool {
        forall|b: int|
            0 <= b < self.nodes.len() && (#[trigger] self.nodes[b] matches Some(x) && x.salt
                == salt) ==> self.reaches((self.nodes[b]->0).parent, salt)
    }

    /// Block `b` is registered as the end of `prefix`.
    pub open spec fn ends(self, b: int, salt: u64, prefix: Seq<u32>) -> bool {
        &&& 0 <= b < self.nodes.len()
        &&& self.nodes[b] matches Some(x) && x.salt == salt && self.prefixes[x.id as int] == prefix
    }
}

/// The way through the tree leads to a node that ends its prefix.
pub proof fn lemma_walk_prefix(v: TreeView, size: int, salt: u64, way: Seq<u32>, k: int) -> (b: int)
    requires
        v.ok(size),
        size >= 1,
        0 <= k,
        k * size <= way.len(),
        v.walk(size, salt, way, k) is Some,
    ensures
        v.walk(size, salt, way, k)->0 < v.prefixes.len(),
        v.prefixes[(v.walk(size, salt, way, k)->0) as int] == way.take(k * size),
        v.reaches(v.walk(size, salt, way, k)->0, salt),
        k > 0 ==> v.ends(b, salt, way.take(k * size)),
    decreases k,
{
    if k == 0 {
        assert(0 * size == 0);
        assert(way.take(0) =~= v.prefixes[0]);
        0
    } else {
        assert((k - 1) * size + size == k * size && 0 <= (k - 1) * size) by (nonlinear_arith)
            requires
                k >= 1,
                size >= 1,
        ;
        lemma_walk_prefix(v, size, salt, way, k - 1);
        let p = v.walk(size, salt, way, k - 1)->0;
        let block = block_of(way, size, k - 1);
        let b = v.find(p, salt, block);
        assert(v.is_at(b, p, salt, block));
        assert(v.node_ok(size, v.nodes[b]->0));
        assert(way.take((k - 1) * size) + block =~= way.take(k * size));
        assert(v.is_node(b, (v.nodes[b]->0).id, salt));
        b
    }
}

/// Where nothing was evicted, a registered prefix is found.
pub proof fn lemma_rooted_walk(v: TreeView, size: int, salt: u64, way: Seq<u32>, k: int, b: int)
    requires
        v.ok(size),
        v.rooted(salt),
        size >= 1,
        1 <= k,
        k * size <= way.len(),
        v.ends(b, salt, way.take(k * size)),
    ensures
        v.walk(size, salt, way, k) == Some((v.nodes[b]->0).id),
    decreases k,
{
    let x = v.nodes[b]->0;
    let block = block_of(way, size, k - 1);
    assert((k - 1) * size + size == k * size && 0 <= (k - 1) * size) by (nonlinear_arith)
        requires
            k >= 1,
            size >= 1,
    ;
    assert(v.node_ok(size, x));
    let before = v.prefixes[x.parent as int];
    let whole = before + x.toks;
    assert(whole == way.take(k * size));
    assert(before.len() == (k - 1) * size);
    assert forall|i: int| 0 <= i < before.len() implies before[i] == #[trigger] way[i] by {
        assert(whole[i] == before[i]);
    }
    assert(before =~= way.take((k - 1) * size));
    assert forall|i: int| 0 <= i < size implies #[trigger] x.toks[i] == block[i] by {
        assert(whole[before.len() + i] == x.toks[i]);
    }
    assert(x.toks =~= block);
    if x.parent == 0 {
        assert(k == 1) by (nonlinear_arith)
            requires
                (k - 1) * size == 0,
                size >= 1,
        ;
    } else {
        let c = choose|c: int| #[trigger] v.is_node(c, x.parent, salt);
        assert(v.node_ok(size, v.nodes[c]->0));
        assert(k >= 2) by (nonlinear_arith)
            requires
                (k - 1) * size >= size,
                size >= 1,
        ;
        lemma_rooted_walk(v, size, salt, way, k - 1, c);
    }
    assert(v.is_at(b, x.parent, salt, block));
    lemma_walk_on(v, size, b, salt, way, k - 1);
}

/// A lookup ends where the way does.
pub proof fn lemma_hit_walk(v: TreeView, size: int, salt: u64, way: Seq<u32>, i: int, max: int)
    requires
        0 <= i <= max,
        i * size <= way.len(),
        v.walk(size, salt, way, i) is Some,
    ensures
        ({
            let h = v.hit(size, salt, way, v.walk(size, salt, way, i)->0, i, max);
            &&& i <= h <= max
            &&& h * size <= way.len()
            &&& v.walk(size, salt, way, h) is Some
            &&& h < max && h * size + size <= way.len() ==> v.walk(size, salt, way, h + 1) is None
        }),
    decreases max - i,
{
    let p = v.walk(size, salt, way, i)->0;
    if i < max && i * size + size <= way.len() && v.has(p, salt, block_of(way, size, i)) {
        assert((i + 1) * size == i * size + size) by (nonlinear_arith);
        assert(v.walk(size, salt, way, i + 1) is Some);
        lemma_hit_walk(v, size, salt, way, i + 1, max);
    }
}

/// Two trees that have the same prefixes of a salt, none of them cut off, give the same hits.
pub proof fn lemma_hits_equal(
    v: TreeView,
    w: TreeView,
    size: int,
    salt: u64,
    way: Seq<u32>,
    max: int,
)
    requires
        v.ok(size),
        w.ok(size),
        size >= 1,
        v.rooted(salt),
        w.rooted(salt),
        max >= 0,
        same_prefixes(v, w, salt),
    ensures
        v.hit(size, salt, way, 0, 0, max) == w.hit(size, salt, way, 0, 0, max),
{
    lemma_hit_at_most(v, w, size, salt, way, max);
    lemma_hit_at_most(w, v, size, salt, way, max);
}

pub open spec fn same_prefixes(v: TreeView, w: TreeView, salt: u64) -> bool {
    forall|prefix: Seq<u32>| #[trigger] has_prefix(v, salt, prefix) <==> has_prefix(w, salt, prefix)
}

pub open spec fn has_prefix(v: TreeView, salt: u64, prefix: Seq<u32>) -> bool {
    exists|b: int| #[trigger] v.ends(b, salt, prefix)
}

proof fn lemma_hit_at_most(v: TreeView, w: TreeView, size: int, salt: u64, way: Seq<u32>, max: int)
    requires
        v.ok(size),
        w.ok(size),
        size >= 1,
        w.rooted(salt),
        max >= 0,
        same_prefixes(v, w, salt),
    ensures
        v.hit(size, salt, way, 0, 0, max) <= w.hit(size, salt, way, 0, 0, max),
{
    assert(0 * size == 0);
    lemma_hit_walk(v, size, salt, way, 0, max);
    lemma_hit_walk(w, size, salt, way, 0, max);
    let h = v.hit(size, salt, way, 0, 0, max);
    if h > 0 {
        let b = lemma_walk_prefix(v, size, salt, way, h);
        assert(has_prefix(v, salt, way.take(h * size)));
        assert(has_prefix(w, salt, way.take(h * size)));
        let c = choose|c: int| #[trigger] w.ends(c, salt, way.take(h * size));
        lemma_rooted_walk(w, size, salt, way, h, c);
        lemma_walk_hit(w, size, salt, way, h, max);
        lemma_hit_walk(w, size, salt, way, h, max);
    }
}

/// A node under a node that is there cuts nothing off.
pub proof fn lemma_register_rooted(
    v: TreeView,
    size: int,
    b: u32,
    parent: u64,
    salt: u64,
    toks: Seq<u32>,
    other: u64,
)
    requires
        v.ok(size),
        b < v.nodes.len(),
        v.nodes[b as int] is None,
        v.reaches(parent, salt),
        v.rooted(other),
    ensures
        v.register(b, parent, salt, toks).rooted(other),
{
    let w = v.register(b, parent, salt, toks);
    assert forall|id: u64| #[trigger] v.reaches(id, other) implies w.reaches(id, other) by {
        if id != 0 {
            let c = choose|c: int| #[trigger] v.is_node(c, id, other);
            assert(w.is_node(c, id, other));
        }
    }
    assert forall|c: int|
        0 <= c < w.nodes.len() && (#[trigger] w.nodes[c] matches Some(x) && x.salt
            == other) implies w.reaches((w.nodes[c]->0).parent, other) by {
        if c != b {
            assert(v.nodes[c] == w.nodes[c]);
            assert(v.reaches((v.nodes[c]->0).parent, other));
        } else {
            assert(v.reaches(parent, other));
        }
    }
}

} // verus!
