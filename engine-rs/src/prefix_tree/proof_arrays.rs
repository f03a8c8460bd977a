//! Why the arrays represent the tree after a node is registered or unregistered.
#[cfg(verus_only)]
use super::hash::*;
#[cfg(verus_only)]
use super::inv::*;
#[cfg(verus_only)]
use super::proof::*;
#[cfg(verus_only)]
use super::{block_of, Node, PrefixTree, TreeView, NONE};
use vstd::prelude::*;

verus! {

/// Block `b`'s tokens lie within the array.
pub proof fn lemma_slice(n: int, size: int, b: int)
    requires
        0 <= b < n,
        size >= 1,
    ensures
        0 <= b * size,
        b * size + size <= n * size,
{
    assert(0 <= b * size && b * size + size <= n * size) by (nonlinear_arith)
        requires
            0 <= b < n,
            size >= 1,
    ;
}

/// Two blocks' tokens do not overlap.
pub proof fn lemma_slices_apart(size: int, b: int, c: int)
    requires
        b != c,
        size >= 1,
    ensures
        b * size + size <= c * size || c * size + size <= b * size,
{
    assert(b * size + size <= c * size || c * size + size <= b * size) by (nonlinear_arith)
        requires
            b != c,
            size >= 1,
    ;
}

/// The arrays after `register` represent the tree.
pub(super) proof fn lemma_register(
    was: &PrefixTree,
    now: &PrefixTree,
    b: u32,
    parent: u64,
    salt: u64,
    toks: Seq<u32>,
)
    requires
        was.inv(),
        b < was.state@.nodes.len(),
        was.state@.nodes[b as int] is None,
        now.state@ == was.state@.register(b, parent, salt, toks),
        now.state@.ok(was.block_size as int),
        now.sizes_ok(),
        now.block_size == was.block_size,
        now.mask == was.mask,
        was.next_id < u64::MAX,
        now.next_id == was.next_id + 1,
        now.stored(b as int) == toks,
        forall|c: int|
            0 <= c < was.state@.nodes.len() && c != b ==> #[trigger] now.stored(c) == was.stored(c),
        now.id@ == was.id@.update(b as int, was.next_id),
        now.parent@ == was.parent@.update(b as int, parent),
        now.salt@ == was.salt@.update(b as int, salt),
        ({
            let k = bucket_of(was.mask, parent, salt, toks);
            &&& k < was.chains@.len()
            &&& now.bucket@ == was.bucket@.update(b as int, k as u32)
            &&& now.chain@ == was.chain@.update(b as int, was.heads@[k as int])
            &&& now.heads@ == was.heads@.update(k as int, b)
            &&& now.chains@ == was.chains@.update(k as int, seq![b] + was.chains@[k as int])
        }),
    ensures
        now.inv(),
{
    let k = bucket_of(was.mask, parent, salt, toks) as int;
    assert forall|c: int| 0 <= c < now.state@.nodes.len() implies #[trigger] now.node_stored(c) by {
        assert(was.node_stored(c));
    }
    assert forall|j: int| 0 <= j < now.chains@.len() implies #[trigger] now.bucket_ok(j) by {
        assert(was.bucket_ok(j));
        let old = was.chains@[j];
        let new = now.chains@[j];
        assert forall|i: int| 0 <= i < old.len() implies #[trigger] old[i] != b && new[if j == k {
            i + 1
        } else {
            i
        }] == old[i] by {}
        if j == k {
            assert forall|i: int| 0 <= i < new.len() implies now.chain@[#[trigger] new[i] as int]
                == entry(new, i + 1) by {
                if i > 0 {
                    assert(new[i] == old[i - 1]);
                    assert(was.chain@[old[i - 1] as int] == entry(old, i));
                }
            }
            assert forall|i: int| 0 <= i < new.len() implies (#[trigger] new[i])
                < now.state@.nodes.len() && now.state@.nodes[new[i] as int] is Some
                && now.bucket@[new[i] as int] == k by {
                if i > 0 {
                    assert(new[i] == old[i - 1]);
                }
            }
            assert forall|i: int, l: int|
                #![trigger new[i], new[l]]
                0 <= i < l < new.len() implies new[i] != new[l] by {
                assert(new[l] == old[l - 1]);
                if i > 0 {
                    assert(new[i] == old[i - 1]);
                }
            }
        }
    }
    assert forall|c: int|
        0 <= c < now.state@.nodes.len() && (#[trigger] now.state@.nodes[c]) is Some implies {
        &&& now.bucket@[c] < now.chains@.len()
        &&& now.chains@[now.bucket@[c] as int].contains(c as u32)
    } by {
        if c == b {
            assert(now.chains@[k][0] == b);
        } else {
            assert(was.state@.nodes[c] is Some);
            let j = was.bucket@[c] as int;
            let i = was.chains@[j].index_of(c as u32);
            assert(was.chains@[j][i] == c as u32);
            assert(now.chains@[j][if j == k {
                i + 1
            } else {
                i
            }] == c as u32);
        }
    }
}

/// The arrays from which block `b`, at place `at` of its bucket, is taken out.
pub(super) open spec fn taken_out(was: &PrefixTree, now: &PrefixTree, b: u32, at: int) -> bool {
    let k = was.bucket@[b as int] as int;
    let chain = was.chains@[k];
    &&& b < was.state@.nodes.len()
    &&& was.state@.nodes[b as int] is Some
    &&& now.state@ == was.state@.unregister(b)
    &&& now.block_size == was.block_size
    &&& now.mask == was.mask
    &&& now.next_id == was.next_id
    &&& now.tokens == was.tokens
    &&& now.id@ == was.id@.update(b as int, 0)
    &&& now.parent == was.parent
    &&& now.salt == was.salt
    &&& now.bucket == was.bucket
    &&& 0 <= at < chain.len()
    &&& chain[at] == b
    &&& now.chains@ == was.chains@.update(k, chain.remove(at))
    &&& at == 0 ==> now.heads@ == was.heads@.update(k, was.chain@[b as int]) && now.chain
        == was.chain
    &&& at > 0 ==> now.heads == was.heads && now.chain@ == was.chain@.update(
        chain[at - 1] as int,
        was.chain@[b as int],
    )
}

/// The bucket from which it is taken is whole.
proof fn lemma_taken_bucket(was: &PrefixTree, now: &PrefixTree, b: u32, at: int)
    requires
        was.inv(),
        taken_out(was, now, b, at),
    ensures
        now.bucket_ok(was.bucket@[b as int] as int),
{
    let k = was.bucket@[b as int] as int;
    assert(k < was.chains@.len());
    assert(was.bucket_ok(k));
    let old = was.chains@[k];
    let new = now.chains@[k];
    assert forall|i: int| 0 <= i < new.len() implies (#[trigger] new[i]) == old[if i < at {
        i
    } else {
        i + 1
    }] && new[i] != b by {}
    assert forall|i: int| 0 <= i < new.len() implies now.chain@[#[trigger] new[i] as int] == entry(
        new,
        i + 1,
    ) by {
        let l = if i < at {
            i
        } else {
            i + 1
        };
        assert(was.chain@[old[l] as int] == entry(old, l + 1));
        assert(was.chain@[old[at] as int] == entry(old, at + 1));
        if at > 0 && old[l] == old[at - 1] {
            assert(l == at - 1);
        }
    }
    assert(now.heads@[k] == entry(new, 0)) by {
        assert(was.chain@[old[at] as int] == entry(old, at + 1));
    }
}

/// The arrays after `unregister` represent the tree.
pub(super) proof fn lemma_unregister(was: &PrefixTree, now: &PrefixTree, b: u32, at: int)
    requires
        was.inv(),
        taken_out(was, now, b, at),
    ensures
        now.inv(),
{
    let k = was.bucket@[b as int] as int;
    assert(k < was.chains@.len());
    lemma_unregister_view(was.state@, was.block_size as int, b);
    assert(was.bucket_ok(k));
    assert forall|c: int| 0 <= c < now.state@.nodes.len() implies #[trigger] now.node_stored(c) by {
        assert(was.node_stored(c));
        assert(now.stored(c) == was.stored(c));
    }
    assert forall|j: int| 0 <= j < now.chains@.len() implies #[trigger] now.bucket_ok(j) by {
        assert(was.bucket_ok(j));
        if j == k {
            lemma_taken_bucket(was, now, b, at);
        } else {
            let old = was.chains@[j];
            assert forall|i: int| 0 <= i < old.len() implies #[trigger] old[i] != b && (at > 0
                ==> old[i] != was.chains@[k][at - 1]) by {}
        }
    }
    assert forall|c: int|
        0 <= c < now.state@.nodes.len() && (#[trigger] now.state@.nodes[c]) is Some implies {
        &&& now.bucket@[c] < now.chains@.len()
        &&& now.chains@[now.bucket@[c] as int].contains(c as u32)
    } by {
        assert(was.state@.nodes[c] is Some);
        let j = was.bucket@[c] as int;
        let i = was.chains@[j].index_of(c as u32);
        assert(was.chains@[j][i] == c as u32);
        assert(now.chains@[j][if j == k && i > at {
            i - 1
        } else {
            i
        }] == c as u32);
    }
}

} // verus!
