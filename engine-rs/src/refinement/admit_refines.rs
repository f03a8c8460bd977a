//! A waiting sequence gets a seat, with cached blocks or its parent's.
use super::*;
use vstd::prelude::*;

verus! {

/// Sequence `i`, waiting until now, sits at the free `seat` with `k` blocks.
pub open spec fn sat_down(a: Scheduler, b: Scheduler, i: int, k: nat) -> bool {
    let seat = a.free_seats@.last();
    &&& a.inv() && b.only_seq(&a, i)
    &&& 0 <= i < a.seqs@.len() && a.seqs@[i].phase is Waiting
    &&& a.free_seats@.len() > 0
    &&& b.seqs@[i] == (Sequence {
        phase: Phase::Running,
        seat,
        computed: b.seqs@[i].computed,
        planned: b.seqs@[i].planned,
        in_flight: b.seqs@[i].in_flight,
        ..a.seqs@[i]
    })
    &&& b.seqs@[i].computed == k * a.config.block_size
    &&& k * a.config.block_size < a.seqs@[i].len()
    &&& k * a.config.block_size <= a.seqs@[i].need_from
    &&& same_names(a, b)
    &&& same_tables(a, b, seat as int)
    &&& same_cache(a.groups@, b.groups@)
    &&& b.queue == a.queue && b.plans == a.plans && b.draft == a.draft
    &&& forall|g: int|
        0 <= g < b.groups@.len() ==> (#[trigger] b.groups@[g]).seat(seat as int).freed == 0
    &&& hits(a, b.groups@, i, seat as int, k) || exists|j: int|
        #![trigger a.seqs@[j]]
        shares(a, b.groups@, i, seat as int, j, k)
}

/// The tables of `seat` are blocks cached for the first tokens of sequence `i`.
pub open spec fn hits(a: Scheduler, b: Seq<LayerGroup>, i: int, seat: int, k: nat) -> bool {
    forall|g: int|
        0 <= g < b.len() ==> attached_hits(
            a.groups@[g],
            (#[trigger] b[g]).seat(seat).table,
            a.seqs@[i].salt,
            a.seqs@[i].tokens@,
            k,
            a.config.block_size,
        )
}

/// They are blocks that running sequence `j` has computed for the same tokens.
pub open spec fn shares(
    a: Scheduler,
    b: Seq<LayerGroup>,
    i: int,
    seat: int,
    j: int,
    k: nat,
) -> bool {
    let n = (k * a.config.block_size) as int;
    &&& 0 <= j < a.seqs@.len() && a.seqs@[j].phase is Running
    &&& a.seqs@[j].salt == a.seqs@[i].salt
    &&& n <= a.seqs@[j].computed
    &&& a.seqs@[j].tokens@.take(n) == a.seqs@[i].tokens@.take(n)
    &&& forall|g: int|
        0 <= g < b.len() ==> (#[trigger] b[g]).seat(seat).table == a.groups@[g].seat(
            a.seqs@[j].seat as int,
        ).table.take(k as int)
    &&& k > 0 ==> !a.slid_any(a.seqs@[j].seat as int)
}

/// The machine may take `step`, which seats the sequence as the scheduler did.
pub open spec fn seats(
    a: Scheduler,
    b: Scheduler,
    l: Link,
    i: int,
    k: nat,
    step: model::Step,
) -> bool {
    &&& model::enabled(l.engine, step)
    &&& model::silent(step)
    &&& model::after(l.engine, step) == model::admitted(
        l.engine,
        l.id(a, i),
        a.free_seats@.last() as int,
        tables_of(b.groups@, b.seqs@[i]),
        k,
    )
}

proof fn lemma_hit_seats(a: Scheduler, b: Scheduler, l: Link, i: int, k: nat) -> (step: model::Step)
    requires
        linked(a, l),
        sat_down(a, b, i, k),
        hits(a, b.groups@, i, a.free_seats@.last() as int, k),
    ensures
        seats(a, b, l, i, k, step),
{
    let (e, id, seat) = (l.engine, l.id(a, i), a.free_seats@.last() as int);
    let blocks = tables_of(b.groups@, b.seqs@[i]);
    let size = a.config.block_size as int;
    let (salt, tokens) = (a.seqs@[i].salt, a.seqs@[i].tokens@);
    assert forall|g: int, n: int|
        0 <= g < e.groups() && 0 <= n < blocks[g].len() implies model::is_hit(
        e,
        id,
        g,
        n,
        #[trigger] blocks[g][n],
    ) by {
        let table = b.groups@[g].seat(seat).table;
        assert(attached_hits(a.groups@[g], table, salt, tokens, k, a.config.block_size));
        assert(0 <= (n + 1) * size <= k * size) by (nonlinear_arith)
            requires
                0 <= n < k,
                size >= 0,
        ;
        assert(ints(tokens.take((n + 1) * size)) =~= ints(tokens).take((n + 1) * size));
        assert(a.groups@[g].cached(table[n] as int) is Some);
        assert(cache_of(a.groups@, g, table[n] as int) is Some);
    }
    model::Step::Admit { id, seat, blocks }
}

proof fn lemma_share_seats(a: Scheduler, b: Scheduler, l: Link, i: int, j: int, k: nat) -> (step:
    model::Step)
    requires
        linked(a, l),
        sat_down(a, b, i, k),
        shares(a, b.groups@, i, a.free_seats@.last() as int, j, k),
    ensures
        seats(a, b, l, i, k, step),
{
    let (e, id, seat) = (l.engine, l.id(a, i), a.free_seats@.last() as int);
    let (from, blocks) = (l.id(a, j), tables_of(b.groups@, b.seqs@[i]));
    let size = a.config.block_size as int;
    let n = k * size;
    let parent = a.seqs@[j];
    assert(parent.live() && parent.wf(a.config));
    lemma_id(a, l, j);
    assert(k <= parent.computed as int / size) by (nonlinear_arith)
        requires
            k * size <= parent.computed,
            size > 0,
    ;
    assert(ints(parent.tokens@).take(n) =~= ints(parent.tokens@.take(n)));
    assert(ints(a.seqs@[i].tokens@).take(n) =~= ints(a.seqs@[i].tokens@.take(n)));
    assert forall|g: int| 0 <= g < e.groups() implies #[trigger] blocks[g]
        == e.seqs[from].tables[g].take(k as int) by {
        let v = a.groups@[g].seat(parent.seat as int);
        assert(b.groups@[g].seat(seat).table == v.table.take(k as int));
        assert(seat_ok(parent, v, a.config.block_size));
        assert(group_ok(a.config, a.groups@[g]));
        a.groups@[g].lemma_bounds(parent.seat as int);
        assert(ints(v.table.take(k as int)) =~= ints(v.table).take(k as int));
    }
    assert forall|g: int| 0 <= g < e.groups() && k > 0 implies #[trigger] e.seqs[from].freed[g]
        == 0 by {
        assert(a.groups@[g].seat(parent.seat as int).freed == 0);
    }
    assert(model::first_blocks(e.seqs[from].tables, k) =~= blocks);
    model::Step::Share { id, seat, from, count: k }
}

pub proof fn lemma_admit_refines(a: Scheduler, b: Scheduler, i: int, k: nat)
    requires
        sat_down(a, b, i, k),
    ensures
        refines(a, b),
{
    assert forall|l: Link| #[trigger] linked(a, l) implies exists|e: model::Engine| #[trigger]
        arrives(b, l, e) by {
        let seat = a.free_seats@.last();
        let step = if hits(a, b.groups@, i, seat as int, k) {
            lemma_hit_seats(a, b, l, i, k)
        } else {
            let j = choose|j: int|
                #![trigger a.seqs@[j]]
                shares(a, b.groups@, i, seat as int, j, k);
            lemma_share_seats(a, b, l, i, j, k)
        };
        let e = model::after(l.engine, step);
        lemma_silent_step(l.engine, step);
        lemma_same_cache(a.groups@, b.groups@, e);
        assert(e.seqs[l.id(a, i)].freed =~= freed_of(b.groups@, b.seqs@[i]));
        assert(seq_linked(b, l.with(e), i));
        assert(a.free_seats@.contains(seat));
        lemma_relinked(a, b, l, e, i, seat as int);
        assert(arrives(b, l, e));
    }
}

} // verus!
