//! What positions hold as they are written, and the anchor's way through the prefix tree.
#[cfg(verus_only)]
use super::inv::*;
#[cfg(verus_only)]
use super::proof::*;
#[cfg(verus_only)]
use super::proof_content::*;
#[cfg(verus_only)]
use super::proof_steps::*;
#[cfg(verus_only)]
use super::proof_writes::*;
#[cfg(verus_only)]
use super::spec::*;
#[cfg(verus_only)]
use super::NO_ANCHOR;
#[cfg(verus_only)]
use crate::prefix_tree::block_of;
use vstd::prelude::*;

verus! {

/// All but the content.
pub open spec fn same_but_content(now: State, was: State) -> bool {
    now == (State { content: now.content, ..was })
}

/// A private slot written: this seat's position alone changes, and no other seat's.
pub proof fn lemma_put_view(st: State, s: int, p: int, v: Option<Seq<u32>>)
    requires
        st.ok(),
        0 <= s < st.rows.len(),
        st.sealed[s] * st.size <= p < st.rows[s].len() * st.size,
    ensures
        st.put(s, p, v).ok(),
        same_but_content(st.put(s, p, v), st),
        seat_view(st.put(s, p, v), s).kv == seat_view(st, s).kv.update(p, v),
        forall|t: int|
            t != s && 0 <= t < st.rows.len() ==> #[trigger] seat_view(st.put(s, p, v), t)
                == seat_view(st, t),
{
    let now = st.put(s, p, v);
    let size = st.size;
    let i = p / size;
    assert(0 <= p) by (nonlinear_arith)
        requires
            st.sealed[s] * size <= p,
            st.sealed[s] >= 0,
            size >= 1,
    ;
    lemma_place(p, size, st.rows[s].len() as int);
    assert(st.sealed[s] <= i) by (nonlinear_arith)
        requires
            st.sealed[s] * size <= p,
            p == i * size + p % size,
            p % size < size,
            size >= 1,
    ;
    assert forall|q: int| 0 <= q < st.rows[s].len() * size implies #[trigger] kv_of(
        now.content,
        st.rows[s],
        size,
        st.kept(s),
    )[q] == kv_of(st.content, st.rows[s], size, st.kept(s)).update(p, v)[q] by {
        lemma_place(q, size, st.rows[s].len() as int);
        lemma_kept(q, size, st.freed[s] as int);
        assert(st.rows[s][q / size] < st.n());
        assert(st.content[st.rows[s][q / size] as int].len() == size);
    }
    assert(seat_view(now, s).kv =~= seat_view(st, s).kv.update(p, v));
    assert forall|t: int| t != s && 0 <= t < st.rows.len() implies #[trigger] seat_view(now, t)
        == seat_view(st, t) by {
        assert forall|q: int| 0 <= q < st.rows[t].len() * size implies #[trigger] kv_of(
            now.content,
            st.rows[t],
            size,
            st.kept(t),
        )[q] == kv_of(st.content, st.rows[t], size, st.kept(t))[q] by {
            lemma_place(q, size, st.rows[t].len() as int);
            lemma_kept(q, size, st.freed[t] as int);
            if st.kept(t) <= q {
                assert(st.entry(t, q / size));
            }
        }
        assert(seat_view(now, t).kv =~= seat_view(st, t).kv);
    }
}

/// The same for a range of positions.
pub proof fn lemma_put_all(
    st: State,
    s: int,
    from: int,
    to: int,
    f: spec_fn(int) -> Option<Seq<u32>>,
)
    requires
        st.ok(),
        0 <= s < st.rows.len(),
        st.sealed[s] * st.size <= from <= to <= st.rows[s].len() * st.size,
    ensures
        st.put_all(s, from, to, f).ok(),
        same_but_content(st.put_all(s, from, to, f), st),
        forall|p: int|
            0 <= p < st.rows[s].len() * st.size ==> #[trigger] seat_view(
                st.put_all(s, from, to, f),
                s,
            ).kv[p] == if from <= p < to {
                f(p)
            } else {
                seat_view(st, s).kv[p]
            },
        forall|t: int|
            t != s && 0 <= t < st.rows.len() ==> #[trigger] seat_view(st.put_all(s, from, to, f), t)
                == seat_view(st, t),
    decreases to - from,
{
    if from < to {
        let mid = st.put_all(s, from, to - 1, f);
        lemma_put_all(st, s, from, to - 1, f);
        lemma_put_view(mid, s, to - 1, f(to - 1));
        let now = st.put_all(s, from, to, f);
        assert forall|p: int| 0 <= p < st.rows[s].len() * st.size implies #[trigger] seat_view(
            now,
            s,
        ).kv[p] == if from <= p < to {
            f(p)
        } else {
            seat_view(st, s).kv[p]
        } by {}
    }
}

/// What the anchor of a seat stands for, when the seat holds `toks`.
pub proof fn lemma_anchor_prefix(st: State, s: int, toks: Seq<u32>)
    requires
        st.ok(),
        0 <= s < st.rows.len(),
        st.anchor[s] != NO_ANCHOR,
        holds(seat_view(st, s), toks, st.sealed[s] * st.size),
    ensures
        st.anchor[s] < st.tree.prefixes.len(),
        st.tree.prefixes[st.anchor[s] as int] == toks.take(st.sealed[s] * st.size),
{
    let sealed = st.sealed[s] as int;
    if sealed > 0 {
        lemma_holds_filled(
            st.content,
            st.rows[s],
            st.freed[s] as int,
            toks,
            st.size,
            sealed * st.size,
            sealed - 1,
        );
        lemma_filled_last(
            st.content[st.rows[s][sealed - 1] as int],
            toks.take(sealed * st.size),
            st.size,
        );
    } else {
        assert(0 * st.size == 0);
        assert(toks.take(0) =~= st.tree.prefixes[0]);
    }
}

/// The last slot of a filled block holds the whole prefix.
pub proof fn lemma_filled_last(slots: Seq<Option<Seq<u32>>>, prefix: Seq<u32>, size: int)
    requires
        size >= 1,
        filled(slots, prefix, size),
    ensures
        slots[size - 1] == Some(prefix),
{
}

/// The seat has one more sealed block, which is registered, unless it was, if that is possible.
pub open spec fn sealed_next(
    was: State,
    now: State,
    s: int,
    salt: u64,
    toks: Seq<u32>,
    cache: bool,
) -> bool {
    let i = was.sealed[s] as int;
    let b = was.rows[s][i];
    &&& now == (State {
        sealed: was.sealed.update(s, (i + 1) as usize),
        anchor: was.anchor.update(s, now.anchor[s]),
        tree: now.tree,
        ..was
    })
    &&& forall|t: u64|
        was.tree.rooted(t) && (on_the_way(was, s, salt, toks) || was.tree.prefixes.len()
            == u64::MAX) ==> #[trigger] now.tree.rooted(t)
    &&& was.tree.prefixes.len() <= now.tree.prefixes.len() <= u64::MAX
    &&& cache && now.tree.prefixes.len() < u64::MAX && on_the_way(was, s, salt, toks)
        ==> on_the_way(now, s, salt, toks)
    &&& now.tree == was.tree || {
        let block = block_of(toks, was.size, i);
        &&& cache
        &&& was.tree.nodes[b as int] is None
        &&& was.anchor[s] < was.tree.prefixes.len()
        &&& was.tree.prefixes[was.anchor[s] as int] + block == toks.take((i + 1) * was.size)
        &&& now.tree == was.tree.register(b, was.anchor[s], salt, block)
    }
}

/// The seat's blocks can be found, if their registration went on.
pub open spec fn on_the_way(st: State, s: int, salt: u64, toks: Seq<u32>) -> bool {
    &&& st.anchor[s] != NO_ANCHOR
    &&& st.tree.walk(st.size, salt, toks, st.sealed[s] as int) == Some(st.anchor[s])
}

/// What was registered while the seat's sealed blocks grew from `first` to `k`.
pub open spec fn registered(
    was: State,
    now: State,
    s: int,
    first: int,
    k: int,
    salt: u64,
    toks: Seq<u32>,
) -> bool {
    forall|b: int| #[trigger]
        cached_as(now, b) == cached_as(was, b) || exists|i: int|
            first <= i < k && b == #[trigger] was.rows[s][i] && cached_as(was, b) is None
                && cached_as(now, b) == Some((salt, toks.take((i + 1) * was.size)))
}

pub proof fn lemma_registered(
    was: State,
    mid: State,
    now: State,
    s: int,
    first: int,
    k: int,
    salt: u64,
    toks: Seq<u32>,
)
    requires
        mid.ok(),
        now.ok(),
        was.rows == mid.rows,
        was.size == mid.size,
        was.n() == mid.n(),
        0 <= s < mid.rows.len(),
        first <= k == mid.sealed[s] < mid.rows[s].len(),
        registered(was, mid, s, first, k, salt, toks),
        sealed_next(mid, now, s, salt, toks, true) || sealed_next(mid, now, s, salt, toks, false),
    ensures
        registered(was, now, s, first, k + 1, salt, toks),
{
    let c = mid.rows[s][k];
    assert forall|b: int| #[trigger]
        cached_as(now, b) == cached_as(was, b) || exists|i: int|
            first <= i < k + 1 && b == #[trigger] was.rows[s][i] && cached_as(was, b) is None
                && cached_as(now, b) == Some((salt, toks.take((i + 1) * was.size))) by {
        if b == c && now.tree != mid.tree {
        } else {
            if cached_as(mid, b) != cached_as(was, b) {
                let i = choose|i: int|
                    first <= i < k && b == #[trigger] was.rows[s][i] && cached_as(was, b) is None
                        && cached_as(mid, b) == Some((salt, toks.take((i + 1) * was.size)));
                assert(b == was.rows[s][i]);
            }
        }
    }
}

pub proof fn lemma_holds_less(v: SeatView, toks: Seq<u32>, n: int, m: int)
    requires
        holds(v, toks, n),
        0 <= m <= n,
    ensures
        holds(v, toks, m),
{
}

pub proof fn lemma_quotient(n: int, size: int)
    requires
        0 <= n,
        size >= 1,
    ensures
        n / size * size <= n,
{
    assert(n / size * size <= n) by (nonlinear_arith)
        requires
            0 <= n,
            size >= 1,
    ;
}

pub proof fn lemma_quotient_is(n: int, size: int, k: int)
    requires
        size >= 1,
        k * size <= n < k * size + size,
    ensures
        n / size == k,
{
    assert(n / size == k) by (nonlinear_arith)
        requires
            size >= 1,
            k * size <= n < k * size + size,
    ;
}

} // verus!
