//! What stays linked when a call changes one sequence, or none.
use super::*;
use vstd::prelude::*;

verus! {

/// The machine sees no difference.
pub open spec fn same_seq(c: Sequence, d: Sequence) -> bool {
    &&& in_use(c) == in_use(d)
    &&& in_use(c) ==> d == (Sequence {
        planned: d.planned,
        pending: d.pending,
        in_flight: d.in_flight,
        ..c
    })
}

/// No name that was given out can be given out again.
pub open spec fn same_names(a: Scheduler, b: Scheduler) -> bool {
    &&& a.seqs@.len() <= b.seqs@.len()
    &&& forall|i: int|
        #![trigger a.seqs@[i]]
        #![trigger b.seqs@[i]]
        0 <= i < a.seqs@.len() ==> {
            &&& a.seqs@[i].generation <= b.seqs@[i].generation
            &&& a.seqs@[i].generation == b.seqs@[i].generation && !a.free_entries@.contains(
                i as u32,
            ) ==> !b.free_entries@.contains(i as u32)
        }
}

/// The machine sees no difference between the tables.
pub open spec fn same_table(v: SeatView, w: SeatView) -> bool {
    w.table == v.table && w.freed == v.freed
}

/// Every table but those of `seat` is the same.
pub open spec fn same_tables(a: Scheduler, b: Scheduler, seat: int) -> bool {
    &&& a.config == b.config
    &&& a.groups@.len() == b.groups@.len()
    &&& forall|g: int|
        0 <= g < b.groups@.len() ==> a.groups@[g].num_blocks() == (
        #[trigger] b.groups@[g]).num_blocks() && a.groups@[g].window() == b.groups@[g].window()
    &&& forall|g: int, s: int|
        #![trigger b.groups@[g].seat(s)]
        0 <= g < b.groups@.len() && 0 <= s < a.config.max_seqs && s != seat ==> same_table(
            a.groups@[g].seat(s),
            b.groups@[g].seat(s),
        )
}

/// Every change of a table was logged.
pub open spec fn all_logged(a: Seq<LayerGroup>, b: Seq<LayerGroup>) -> bool {
    &&& a.len() == b.len()
    &&& forall|g: int|
        0 <= g < b.len() ==> logged(a[g], #[trigger] b[g]) && a[g].seats() == b[g].seats()
}

/// The cache is the same, and every change of a table was logged.
pub open spec fn same_cache(a: Seq<LayerGroup>, b: Seq<LayerGroup>) -> bool {
    &&& all_logged(a, b)
    &&& forall|g: int, x: int|
        #![trigger b[g].cached(x)]
        0 <= g < b.len() ==> b[g].cached(x) == a[g].cached(x)
}

/// Nothing but entry `i` and the tables of `seat` changed for the machine.
pub open spec fn same_but(a: Scheduler, b: Scheduler, i: int, seat: int) -> bool {
    &&& same_names(a, b)
    &&& same_tables(a, b, seat)
    &&& a.seqs@.len() == b.seqs@.len()
    &&& forall|j: int|
        #![trigger a.seqs@[j]]
        #![trigger b.seqs@[j]]
        0 <= j < a.seqs@.len() && j != i ==> same_seq(a.seqs@[j], b.seqs@[j]) && (a.seqs@[j].live()
            ==> a.seqs@[j].seat < a.config.max_seqs && a.seqs@[j].seat != seat)
}

/// The plans in flight are the same.
pub open spec fn same_flights(a: Scheduler, b: Scheduler) -> bool {
    &&& b.plans == a.plans
    &&& b.queue@.len() - b.draft == a.queue@.len() - a.draft
    &&& forall|k: int| 0 <= k < a.queue@.len() - a.draft ==> (#[trigger] b.queue@[k]) == a.queue@[k]
}

/// Entry and round can be read off a name.
pub proof fn lemma_name(i: u32, generation: u32)
    ensures
        place(spec_seq_id(i, generation)) == i,
        spec_seq_id(i, generation) as int / 0x1_0000_0000 == generation,
{
}

/// An entry in use and its machine's id.
pub proof fn lemma_id(s: Scheduler, l: Link, i: int)
    requires
        names_linked(s, l),
        seqs_linked(s, l),
        s.seqs_ok(),
        0 <= i < s.seqs@.len(),
        in_use(s.seqs@[i]),
    ensures
        seq_linked(s, l, i),
        0 <= l.id(s, i) < l.names.len(),
        l.names[l.id(s, i)] == name_of(s, i),
        place(name_of(s, i)) == i,
{
}

/// The entry of a sequence of the machine.
pub proof fn lemma_placed(s: Scheduler, l: Link, id: int) -> (i: int)
    requires
        names_linked(s, l),
        seqs_linked(s, l),
        l.engine.has(id),
    ensures
        i == place(l.names[id]),
        0 <= i < s.seqs@.len() && in_use(s.seqs@[i]),
        l.id(s, i) == id,
        seq_linked(s, l, i),
{
    let i = place(l.names[id]);
    i
}

pub proof fn lemma_same_names(a: Scheduler, b: Scheduler, l: Link)
    requires
        names_linked(a, l),
        same_names(a, b),
    ensures
        names_linked(b, l),
{
}

/// No entry changed, nor the tables, nor the machine's sequences.
pub proof fn lemma_seqs_kept(a: Scheduler, b: Scheduler, l: Link, m: Link)
    requires
        names_linked(a, l),
        seqs_linked(a, l),
        b.seqs == a.seqs && b.free_entries == a.free_entries,
        forall|i: int|
            0 <= i < a.seqs@.len() && in_use(#[trigger] a.seqs@[i]) ==> tables_of(
                b.groups@,
                a.seqs@[i],
            ) == tables_of(a.groups@, a.seqs@[i]) && freed_of(b.groups@, a.seqs@[i]) == freed_of(
                a.groups@,
                a.seqs@[i],
            ),
        m.names == l.names,
        m.engine.next_id == l.engine.next_id && m.engine.seqs == l.engine.seqs,
    ensures
        names_linked(b, m),
        seqs_linked(b, m),
{
    assert forall|id: int| 0 <= id < m.names.len() implies spent(b, #[trigger] m.names[id]) by {
        assert(spent(a, l.names[id]));
    }
    assert forall|i: int|
        0 <= i < b.seqs@.len() && in_use(#[trigger] b.seqs@[i]) implies seq_linked(b, m, i) by {
        assert(seq_linked(a, l, i));
    }
    assert forall|id: int| #[trigger] m.engine.has(id) implies placed(b, m, id) by {}
}

/// Entry `i` is in use.
pub open spec fn used(s: Scheduler, i: int) -> bool {
    0 <= i < s.seqs@.len() && in_use(s.seqs@[i])
}

/// The machines have the same sequences, but for `id`.
pub open spec fn same_others(e: model::Engine, e2: model::Engine, id: int) -> bool {
    forall|j: int|
        #![trigger e.has(j)]
        #![trigger e2.has(j)]
        j != id ==> e.has(j) == e2.has(j) && (e.has(j) ==> e.seqs[j] == e2.seqs[j])
}

/// Scheduler and machine both changed nothing but entry `i`, and agree on it.
pub open spec fn changed_alike(
    a: Scheduler,
    b: Scheduler,
    l: Link,
    e2: model::Engine,
    i: int,
    seat: int,
) -> bool {
    &&& same_but(a, b, i, seat)
    &&& same_others(
        l.engine,
        e2,
        if used(a, i) {
            l.id(a, i)
        } else {
            -1
        },
    )
    &&& used(b, i) ==> {
        &&& used(a, i)
        &&& b.seqs@[i].generation == a.seqs@[i].generation
        &&& seq_linked(b, l.with(e2), i)
    }
    &&& used(a, i) && !used(b, i) ==> !e2.has(l.id(a, i)) && entries_of(a.queue@, i) == 0
}

pub proof fn lemma_seqs_relinked(
    a: Scheduler,
    b: Scheduler,
    l: Link,
    e2: model::Engine,
    i: int,
    seat: int,
)
    requires
        names_linked(a, l),
        seqs_linked(a, l),
        a.seqs_ok(),
        e2.next_id == l.engine.next_id,
        model::inv_ids(e2),
        changed_alike(a, b, l, e2, i, seat),
    ensures
        names_linked(b, l.with(e2)),
        seqs_linked(b, l.with(e2)),
{
    let m = l.with(e2);
    assert forall|j: int|
        0 <= j < b.seqs@.len() && in_use(#[trigger] b.seqs@[j]) implies seq_linked(b, m, j) by {
        if j != i {
            assert(same_seq(a.seqs@[j], b.seqs@[j]));
            lemma_id(a, l, j);
            assert(l.engine.has(l.id(a, j)));
            assert(tables_of(b.groups@, b.seqs@[j]) =~= tables_of(a.groups@, a.seqs@[j]));
            assert(freed_of(b.groups@, b.seqs@[j]) =~= freed_of(a.groups@, a.seqs@[j]));
        }
    }
    assert forall|id: int| #[trigger] m.engine.has(id) implies placed(b, m, id) by {
        assert(l.engine.has(id) || used(a, i) && id == l.id(a, i));
        let j = if l.engine.has(id) {
            lemma_placed(a, l, id)
        } else {
            i
        };
        if j != i {
        }
    }
}

/// Names of the entries in the queue are the same, so the queue is what it was.
pub proof fn lemma_plans_relinked(a: Scheduler, b: Scheduler, l: Link, m: Link)
    requires
        plans_linked(a, l),
        m.names == l.names,
        m.engine.plans == l.engine.plans,
        same_flights(a, b),
        forall|k: int|
            0 <= k < a.queue@.len() - a.draft ==> b.seqs@[(
            #[trigger] a.queue@[k]).seq as int].generation
                == a.seqs@[a.queue@[k].seq as int].generation,
    ensures
        plans_linked(b, m),
{
}

pub proof fn lemma_tables_relinked(a: Seq<LayerGroup>, b: Seq<LayerGroup>, l: Link)
    requires
        tables_linked(a, l),
        all_logged(a, b),
    ensures
        tables_linked(b, l),
{
    assert forall|t: Tables| #[trigger] l.may.contains(t) implies mirrors(b, t) by {
        assert forall|g: int, s: int|
            0 <= g < b.len() && 0 <= s < b[g].seats() implies #[trigger] mirrors_seat(
            b[g],
            t[g],
            s,
        ) by {
            assert(mirrors_seat(a[g], t[g], s));
        }
    }
}

pub proof fn lemma_same_cache(a: Seq<LayerGroup>, b: Seq<LayerGroup>, e: model::Engine)
    requires
        cache_linked(a, e),
        same_cache(a, b),
    ensures
        cache_linked(b, e),
{
}

pub proof fn lemma_same_cache_twice(
    a: Seq<LayerGroup>,
    b: Seq<LayerGroup>,
    c: Seq<LayerGroup>,
    d: Seq<LayerGroup>,
)
    requires
        same_cache(a, b),
        same_cache(b, c),
        same_cache(c, d),
    ensures
        same_cache(a, d),
{
}

/// Scheduler and machine are linked again when both changed sequence `i` alone.
pub proof fn lemma_relinked(
    a: Scheduler,
    b: Scheduler,
    l: Link,
    e2: model::Engine,
    i: int,
    seat: int,
)
    requires
        linked(a, l),
        a.seqs_ok(),
        a.queue_ok(),
        model::inv(e2),
        e2 == (model::Engine {
            seqs: e2.seqs,
            registered: e2.registered,
            content: e2.content,
            evicted: e2.evicted,
            ..l.engine
        }),
        cache_linked(b.groups@, e2),
        all_logged(a.groups@, b.groups@),
        changed_alike(a, b, l, e2, i, seat),
        same_flights(a, b),
    ensures
        linked(b, l.with(e2)),
{
    lemma_seqs_relinked(a, b, l, e2, i, seat);
    lemma_tables_relinked(a.groups@, b.groups@, l);
    assert forall|k: int| 0 <= k < a.queue@.len() - a.draft implies b.seqs@[(
    #[trigger] a.queue@[k]).seq as int].generation
        == a.seqs@[a.queue@[k].seq as int].generation by {
        let j = a.queue@[k].seq as int;
        assert(a.seqs@[j].live());
        if j == i {
            lemma_entries_some(a.queue@, k);
        } else {
            assert(same_seq(a.seqs@[j], b.seqs@[j]));
        }
    }
}

/// No plan in flight names a sequence that the queue does not name.
pub proof fn lemma_not_flying(s: Scheduler, l: Link, i: int)
    requires
        linked(s, l),
        s.seqs_ok(),
        s.queue_ok(),
        0 <= i < s.seqs@.len(),
        in_use(s.seqs@[i]),
        entries_of(s.queue@, i) == 0,
    ensures
        !l.engine.in_flight(l.id(s, i)),
{
    let (e, id) = (l.engine, l.id(s, i));
    if e.in_flight(id) {
        let n = choose|n: int|
            0 <= n < e.plans.len() && (#[trigger] e.plans[n]).chunks.dom().contains(id);
        let k = lemma_flies(e.plans, n, e.plans[n].order.index_of(id));
        let j = s.queue@[k].seq as int;
        lemma_id(s, l, i);
        lemma_id(s, l, j);
        lemma_entries_some(s.queue@, k);
    }
}

} // verus!
