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
    lemma_register_view(st.tree, st.size, b, parent, salt, toks);
}

pub proof fn lemma_set_anchor(st: State, s: int, a: u64)
    requires
        st.ok(),
        0 <= s < st.rows.len(),
        st.anchor_ok(s, st.sealed[s] as int, a),
    ensures
        st.set_anchor(s, a).ok(),
{
}

} // verus!
