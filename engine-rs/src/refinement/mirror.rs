//! Block tables as a runner keeps them: what the updates that plans carry make of them.
use super::*;
use vstd::prelude::*;

verus! {

/// What a runner's block tables hold, by group, seat and index.
pub type Tables = Seq<spec_fn(int, int) -> int>;

/// Entry `i` of seat `s` after the updates of `log`, in order.
pub open spec fn shown(log: Seq<TableUpdate>, t: spec_fn(int, int) -> int, s: int, i: int) -> int
    decreases log.len(),
{
    if log.len() == 0 {
        t(s, i)
    } else if log.last().seat == s && log.last().index == i {
        log.last().block as int
    } else {
        shown(log.drop_last(), t, s, i)
    }
}

/// With the updates not yet taken, `t` has the table of seat `s`.
pub open spec fn mirrors_seat(g: LayerGroup, t: spec_fn(int, int) -> int, s: int) -> bool {
    forall|i: int|
        0 <= i < g.seat(s).table.len() ==> shown(g.updates(), t, s, i) == #[trigger] g.seat(
            s,
        ).table[i]
}

/// Every change of a table was logged: what had the tables of `a` has those of `b`.
pub open spec fn logged(a: LayerGroup, b: LayerGroup) -> bool {
    forall|t: spec_fn(int, int) -> int, s: int|
        0 <= s < a.seats() && #[trigger] mirrors_seat(a, t, s) ==> mirrors_seat(b, t, s)
}

/// With the updates not yet taken, `t` has every table.
pub open spec fn mirrors(groups: Seq<LayerGroup>, t: Tables) -> bool {
    &&& t.len() == groups.len()
    &&& forall|g: int, s: int|
        0 <= g < groups.len() && 0 <= s < groups[g].seats() ==> #[trigger] mirrors_seat(
            groups[g],
            t[g],
            s,
        )
}

/// The updates of group `g` that a plan carries.
pub open spec fn log_of(u: Updates) -> Seq<TableUpdate> {
    Seq::new(
        u.seats@.len(),
        |k: int| TableUpdate { seat: u.seats@[k], index: u.indices@[k], block: u.blocks@[k] },
    )
}

/// Tables `t` with a plan's updates.
pub open spec fn applied(updates: Seq<Updates>, t: Tables) -> Tables {
    Seq::new(t.len(), |g: int| |s: int, i: int| shown(log_of(updates[g]), t[g], s, i))
}

/// The updates of a group were taken, and are `u`.
pub open spec fn group_taken(a: LayerGroup, b: LayerGroup, u: Updates) -> bool {
    &&& b.same_but(&a, -1)
    &&& b.same_cached(&a)
    &&& b.updates().len() == 0
    &&& log_of(u) == a.updates()
}

pub open spec fn updates_taken(
    a: Seq<LayerGroup>,
    b: Seq<LayerGroup>,
    updates: Seq<Updates>,
) -> bool {
    &&& a.len() == b.len() && updates.len() == b.len()
    &&& forall|g: int| 0 <= g < b.len() ==> group_taken(a[g], #[trigger] b[g], updates[g])
}

/// A runner that makes the updates has the engine's tables.
pub proof fn lemma_updated(a: Seq<LayerGroup>, b: Seq<LayerGroup>, l: Link, p: Plan)
    requires
        tables_linked(a, l),
        updates_taken(a, b, p.updates@),
    ensures
        tables_linked(b, l.updated(p)),
{
    assert forall|t: Tables| #[trigger] l.updated(p).may.contains(t) implies mirrors(b, t) by {
        let o = choose|o: Tables| #[trigger] l.may.contains(o) && t == applied(p.updates@, o);
        assert forall|g: int, s: int|
            0 <= g < b.len() && 0 <= s < b[g].seats() implies #[trigger] mirrors_seat(
            b[g],
            t[g],
            s,
        ) by {
            assert(group_taken(a[g], b[g], p.updates@[g]));
            assert(mirrors_seat(a[g], o[g], s));
            assert(b[g].seat(s) == a[g].seat(s));
            assert forall|i: int| 0 <= i < b[g].seat(s).table.len() implies shown(
                b[g].updates(),
                t[g],
                s,
                i,
            ) == #[trigger] b[g].seat(s).table[i] by {}
        }
    }
}

proof fn lemma_shown_appended(
    log: Seq<TableUpdate>,
    t: spec_fn(int, int) -> int,
    seat: u32,
    table: Seq<u32>,
    m: int,
    n: int,
    s: int,
    i: int,
)
    requires
        0 <= m <= n <= u32::MAX,
    ensures
        shown(log + appended(seat as int, table, m, n), t, s, i) == if s == seat && m <= i < n {
            table[i] as int
        } else {
            shown(log, t, s, i)
        },
    decreases n,
{
    let more = log + appended(seat as int, table, m, n);
    if m == n {
    } else {
        assert(more.drop_last() =~= log + appended(seat as int, table, m, n - 1));
        lemma_shown_appended(log, t, seat, table, m, n - 1, s, i);
    }
}

/// Entries from `m` on of the table of `seat` are new and logged; nothing else changed.
pub proof fn lemma_logged(a: LayerGroup, b: LayerGroup, seat: u32, m: int)
    requires
        seat < a.seats(),
        b.same_but(&a, seat as int),
        0 <= m <= b.seat(seat as int).table.len(),
        m <= a.seat(seat as int).table.len(),
        b.seat(seat as int).table.take(m) == a.seat(seat as int).table.take(m),
        b.updates() == a.updates() + appended(
            seat as int,
            b.seat(seat as int).table,
            m,
            b.seat(seat as int).table.len() as int,
        ),
    ensures
        logged(a, b),
{
    let (v, w) = (a.seat(seat as int).table, b.seat(seat as int).table);
    b.lemma_bounds(seat as int);
    assert(w.len() <= b.seats() * b.row_len()) by (nonlinear_arith)
        requires
            w.len() <= b.row_len(),
            b.seats() >= 1,
    ;
    assert forall|t: spec_fn(int, int) -> int, s: int|
        0 <= s < a.seats() && #[trigger] mirrors_seat(a, t, s) implies mirrors_seat(b, t, s) by {
        assert forall|i: int| 0 <= i < b.seat(s).table.len() implies shown(b.updates(), t, s, i)
            == #[trigger] b.seat(s).table[i] by {
            lemma_shown_appended(a.updates(), t, seat, w, m, w.len() as int, s, i);
            if s != seat {
                assert(b.seat(s) == a.seat(s));
                assert(a.seat(s).table[i] == b.seat(s).table[i]);
            } else if i < m {
                assert(w.take(m)[i] == v.take(m)[i]);
            }
        }
    }
}

/// No table changed, and no update was taken.
pub proof fn lemma_logged_none(a: LayerGroup, b: LayerGroup, seat: int)
    requires
        b.same_but(&a, seat),
        0 <= seat < a.seats() ==> b.seat(seat).table.len() == 0 || b.seat(seat).table == a.seat(
            seat,
        ).table,
        b.updates() == a.updates(),
    ensures
        logged(a, b),
{
}

/// The whole table of `seat` was logged once more.
pub proof fn lemma_relogged(a: LayerGroup, b: LayerGroup, seat: u32)
    requires
        seat < a.seats(),
        b.same_but(&a, -1),
        b.updates() == a.updates() + appended(
            seat as int,
            a.seat(seat as int).table,
            0,
            a.seat(seat as int).table.len() as int,
        ),
    ensures
        logged(a, b),
        forall|t: spec_fn(int, int) -> int| #[trigger] mirrors_seat(b, t, seat as int),
{
    let (v, w) = (a.seat(seat as int).table, b.seat(seat as int).table);
    b.lemma_bounds(seat as int);
    assert(w.len() <= b.seats() * b.row_len()) by (nonlinear_arith)
        requires
            w.len() <= b.row_len(),
            b.seats() >= 1,
    ;
    assert forall|t: spec_fn(int, int) -> int| #[trigger] mirrors_seat(b, t, seat as int) by {
        assert forall|i: int| 0 <= i < w.len() implies shown(b.updates(), t, seat as int, i)
            == #[trigger] w[i] by {
            lemma_shown_appended(a.updates(), t, seat, w, 0, w.len() as int, seat as int, i);
        }
    }
    assert forall|t: spec_fn(int, int) -> int, s: int|
        0 <= s < a.seats() && #[trigger] mirrors_seat(a, t, s) implies mirrors_seat(b, t, s) by {
        assert forall|i: int| 0 <= i < b.seat(s).table.len() implies shown(b.updates(), t, s, i)
            == #[trigger] b.seat(s).table[i] by {
            assert(b.seat(s) == a.seat(s));
            lemma_shown_appended(a.updates(), t, seat, v, 0, v.len() as int, s, i);
        }
    }
}

} // verus!
