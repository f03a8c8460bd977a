//! Every abstract step that writes, seals or registers a block keeps the invariant.
#[cfg(verus_only)]
use super::inv::*;
#[cfg(verus_only)]
use super::NO_ANCHOR;
#[cfg(verus_only)]
use crate::block_pool::proof::*;
#[cfg(verus_only)]
use crate::block_pool::Holder;
#[cfg(verus_only)]
use crate::prefix_tree::proof::*;
use vstd::prelude::*;

verus! {

pub proof fn lemma_put(st: State, s: int, p: int, v: Option<Seq<u32>>)
    requires
        st.ok(),
        0 <= s < st.rows.len(),
        st.sealed[s] <= p / st.size < st.rows[s].len(),
        0 <= p,
    ensures
        st.put(s, p, v).ok(),
{
    let now = st.put(s, p, v);
    let i = p / st.size;
    let b = st.rows[s][i] as int;
    assert(st.entry(s, i));
    assert(st.private(s, i));
    assert(0 <= p % st.size < st.size) by (nonlinear_arith)
        requires
            st.size >= 1,
            0 <= p,
    ;
    assert forall|t: int, j: int|
        #![trigger now.rows[t][j]]
        now.entry(t, j) && now.sealed[t] <= j implies now.private(t, j) by {
        assert(st.entry(t, j) && st.private(t, j));
    }
    assert forall|c: int| 0 <= c < now.n() && (#[trigger] now.tree.nodes[c]) is Some implies filled(
        now.content[c],
        now.tree.prefixes[(now.tree.nodes[c]->0).id as int],
        now.size,
    ) by {
        assert(st.tree.nodes[c] is Some);
        assert(c != b);
    }
    assert forall|t: int| 0 <= t < now.rows.len() implies now.anchor_ok(
        t,
        now.sealed[t] as int,
        #[trigger] now.anchor[t],
    ) by {
        assert(st.anchor_ok(t, st.sealed[t] as int, st.anchor[t]));
        let j = st.sealed[t] - 1;
        if j >= 0 {
            assert(st.entry(t, j));
            assert(st.pool.holders[st.rows[t][j] as int].contains((t, j)));
            assert(st.rows[t][j] != b);
        }
    }
}

pub proof fn lemma_seal(st: State, s: int, a: u64)
    requires
        st.ok(),
        0 <= s < st.rows.len(),
        st.sealed[s] < st.rows[s].len(),
        st.rows[s].len() <= usize::MAX,
        st.anchors(a, st.rows[s][st.sealed[s] as int] as int),
    ensures
        st.seal(s, a).ok(),
{
    let now = st.seal(s, a);
    assert forall|t: int, i: int|
        #![trigger now.rows[t][i]]
        now.entry(t, i) && now.sealed[t] <= i implies now.private(t, i) by {
        assert(st.entry(t, i));
        assert(st.private(t, i));
    }
    assert forall|t: int| 0 <= t < now.rows.len() implies now.anchor_ok(
        t,
        now.sealed[t] as int,
        #[trigger] now.anchor[t],
    ) by {
        if t != s {
            assert(st.anchor_ok(t, st.sealed[t] as int, st.anchor[t]));
        }
    }
}

pub proof fn lemma_register_step(
    st: State,
    b: u32,
    parent: u64,
    salt: u64,
    toks: Seq<u32>,
    h: Holder,
)
    requires
        st.ok(),
        b < st.n(),
        st.tree.nodes[b as int] is None,
        st.pool.holders[b as int].contains(h),
        h.1 < st.sealed[h.0],
        parent < st.tree.prefixes.len() < u64::MAX,
        toks.len() == st.size,
        !st.tree.has(parent, salt, toks),
        filled(st.content[b as int], st.tree.prefixes[parent as int] + toks, st.size),
    ensures
        st.register(b, parent, salt, toks).ok(),
{
    let now = st.register(b, parent, salt, toks);
    lemma_register_view(st.tree, st.size, b, parent, salt, toks);
    lemma_queued(st.pool, b);
    assert forall|t: int, i: int|
        #![trigger now.rows[t][i]]
        now.entry(t, i) && now.sealed[t] <= i implies now.private(t, i) by {
        assert(st.entry(t, i));
        assert(st.private(t, i));
        if st.rows[t][i] == b {
            assert(h == (t, i));
        }
    }
    assert forall|k: int| 0 <= k < now.pool.order.len() implies (now.pool.plain <= k
        <==> now.tree.nodes[(#[trigger] now.pool.order[k]) as int] is Some) by {
        assert(st.pool.order[k] != b);
    }
    assert forall|c: int| 0 <= c < now.n() && (#[trigger] now.tree.nodes[c]) is Some implies filled(
        now.content[c],
        now.tree.prefixes[(now.tree.nodes[c]->0).id as int],
        now.size,
    ) by {
        if c != b {
            assert(st.tree.nodes[c] is Some);
            assert(st.tree.node_ok(st.size, st.tree.nodes[c]->0));
        }
    }
    assert forall|t: int| 0 <= t < now.rows.len() implies now.anchor_ok(
        t,
        now.sealed[t] as int,
        #[trigger] now.anchor[t],
    ) by {
        assert(st.anchor_ok(t, st.sealed[t] as int, st.anchor[t]));
    }
}

pub proof fn lemma_set_anchor(st: State, s: int, a: u64)
    requires
        st.ok(),
        0 <= s < st.rows.len(),
        st.anchor_ok(s, st.sealed[s] as int, a),
    ensures
        st.set_anchor(s, a).ok(),
{
    let now = st.set_anchor(s, a);
    assert forall|t: int, i: int|
        #![trigger now.rows[t][i]]
        now.entry(t, i) && now.sealed[t] <= i implies now.private(t, i) by {
        assert(st.entry(t, i));
        assert(st.private(t, i));
    }
    assert forall|t: int| 0 <= t < now.rows.len() implies now.anchor_ok(
        t,
        now.sealed[t] as int,
        #[trigger] now.anchor[t],
    ) by {
        assert(st.anchor_ok(t, st.sealed[t] as int, st.anchor[t]));
    }
}

pub proof fn lemma_reset(st: State)
    requires
        st.ok(),
    ensures
        st.reset().ok(),
{
    let now = st.reset();
    assert forall|t: int, i: int|
        #![trigger now.rows[t][i]]
        now.entry(t, i) && now.sealed[t] <= i implies now.private(t, i) by {
        assert(st.entry(t, i));
        assert(st.private(t, i));
    }
    assert forall|k: int| 0 <= k < now.pool.order.len() implies (now.pool.plain <= k
        <==> now.tree.nodes[(#[trigger] now.pool.order[k]) as int] is Some) by {
        assert(st.pool.order[k] < st.n());
    }
    assert forall|t: int| 0 <= t < now.rows.len() implies now.anchor_ok(
        t,
        now.sealed[t] as int,
        #[trigger] now.anchor[t],
    ) by {
        assert(st.rows[t].len() >= st.sealed[t]);
    }
}

} // verus!
