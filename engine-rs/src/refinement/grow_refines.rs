//! A block table gets longer, in every group.
use super::*;
use vstd::prelude::*;

verus! {

/// The tables of sequence `i` grew.
pub open spec fn tables_grew(a: Scheduler, b: Scheduler, i: int) -> bool {
    let seat = a.seqs@[i].seat as int;
    &&& a.inv() && b.inv()
    &&& 0 <= i < a.seqs@.len() && a.seqs@[i].phase is Running
    &&& b == (Scheduler { groups: b.groups, ..a })
    &&& same_tables(a, b, seat)
    &&& forall|g: int|
        0 <= g < b.groups@.len() ==> grew(a.groups@[g], #[trigger] b.groups@[g], seat)
}

/// The blocks that sequence `i` got in group `g`.
pub open spec fn gained(a: Scheduler, b: Scheduler, i: int, g: int) -> Seq<int> {
    let seat = a.seqs@[i].seat as int;
    ints(b.groups@[g].seat(seat).table.skip(a.groups@[g].seat(seat).table.len() as int))
}

proof fn lemma_gained(a: Scheduler, b: Scheduler, l: Link, i: int, g: int)
    requires
        linked(a, l),
        tables_grew(a, b, i),
        0 <= g < a.groups@.len(),
    ensures
        gained(a, b, i, g).no_duplicates(),
        forall|k: int|
            0 <= k < gained(a, b, i, g).len() ==> {
                let x = #[trigger] gained(a, b, i, g)[k];
                &&& 0 <= x < l.engine.shape.num_blocks[g]
                &&& !l.engine.held(g, x)
                &&& b.groups@[g].cached(x) is None
            },
{
    let seat = a.seqs@[i].seat as int;
    let (v, w) = (a.groups@[g].seat(seat).table, b.groups@[g].seat(seat).table);
    let new = gained(a, b, i, g);
    let m = v.len();
    let group = b.groups@[g];
    assert(group_ok(b.config, group));
    assert(a.seqs@[i].live());
    assert(grew(a.groups@[g], group, seat));
    group.lemma_bounds(seat);
    assert forall|k: int| 0 <= k < new.len() implies {
        let x = #[trigger] new[k];
        &&& 0 <= x < l.engine.shape.num_blocks[g]
        &&& !l.engine.held(g, x)
        &&& group.cached(x) is None
    } by {
        let x = new[k];
        assert(w[m + k] == x);
        group.lemma_block_private(seat, m + k);
        if l.engine.held(g, x) {
            let (id, n) = choose|id: int, n: int| #[trigger]
                l.engine.block(id, g, n) == x && l.engine.has_block(id, g, n);
            let j = lemma_placed(a, l, id);
            let t = a.seqs@[j].seat as int;
            assert(a.seqs@[j].live());
            assert(a.groups@[g].seat(t).table[n] == x);
            assert(l.engine.seqs[id].freed[g] == a.groups@[g].seat(t).freed);
            if j == i {
                assert(w.take(m as int)[n] == v[n]);
            } else {
                assert(group.seat(t).table == a.groups@[g].seat(t).table);
            }
            assert(group.seat(t).freed == a.groups@[g].seat(t).freed);
            assert(group.seat(t).table[n] == x);
        }
    }
    assert forall|j: int, k: int| 0 <= j < new.len() && 0 <= k < new.len() && j != k implies new[j]
        != new[k] by {
        group.lemma_block_private(seat, m + j);
        assert(w[m + k] == new[k] && w[m + j] == new[j]);
    }
}

pub proof fn lemma_grow_refines(a: Scheduler, b: Scheduler, i: int)
    requires
        tables_grew(a, b, i),
    ensures
        refines(a, b),
{
    assert forall|l: Link| #[trigger] linked(a, l) implies exists|e: model::Engine| #[trigger]
        arrives(b, l, e) by {
        let seat = a.seqs@[i].seat as int;
        assert(a.seqs@[i].live());
        lemma_id(a, l, i);
        let n = a.groups@.len();
        let gains = Seq::new(n, |g: int| gained(a, b, i, g));
        assert forall|g: int| 0 <= g < n implies unheld(l.engine, g, #[trigger] gains[g]) by {
            lemma_gained(a, b, l, i, g);
        }
        let e = lemma_takes_gains(l.engine, l.id(a, i), gains, n as int);
        lemma_moves_inv(l.engine, e, true);
        assert forall|g: int| 0 <= g < n implies (#[trigger] e.seqs[l.id(a, i)].tables[g])
            == tables_of(b.groups@, b.seqs@[i])[g] by {
            let (v, w) = (a.groups@[g].seat(seat).table, b.groups@[g].seat(seat).table);
            assert(grew(a.groups@[g], b.groups@[g], seat));
            assert(w.take(v.len() as int) + w.skip(v.len() as int) =~= w);
            assert(ints(v) + gains[g] =~= ints(w));
        }
        assert(e.seqs[l.id(a, i)].tables =~= tables_of(b.groups@, b.seqs@[i]));
        assert(freed_of(b.groups@, b.seqs@[i]) =~= freed_of(a.groups@, a.seqs@[i])) by {
            assert forall|g: int| 0 <= g < n implies #[trigger] freed_of(b.groups@, b.seqs@[i])[g]
                == freed_of(a.groups@, a.seqs@[i])[g] by {
                assert(grew(a.groups@[g], b.groups@[g], seat));
            }
        }
        assert(seq_linked(b, l.with(e), i));
        assert forall|g: int, x: int|
            #![trigger e.registered.dom().contains((g, x))]
            #![trigger cache_of(b.groups@, g, x)]
            block_linked(b.groups@, e, g, x) by {
            assert(l.engine.registered.dom().contains((g, x)) ==> cache_of(
                a.groups@,
                g,
                x,
            ) is Some);
            assert(cache_of(a.groups@, g, x) is Some ==> l.engine.registered.dom().contains(
                (g, x),
            ));
            if 0 <= g < a.groups@.len() {
                lemma_gained(a, b, l, i, g);
                let new = gained(a, b, i, g);
                let (v, w) = (a.groups@[g].seat(seat).table, b.groups@[g].seat(seat).table);
                assert(grew(a.groups@[g], b.groups@[g], seat));
                if new.contains(x) {
                    assert(new[new.index_of(x)] == x);
                }
                if l.engine.registered.dom().contains((g, x)) && b.groups@[g].cached(x)
                    != a.groups@[g].cached(x) {
                    let skipped = w.skip(v.len() as int);
                    b.groups@[g].lemma_bounds(seat);
                    assert(group_ok(b.config, b.groups@[g]));
                    assert(new[skipped.index_of(x as u32)] == x);
                }
            }
        }
        assert(same_others(l.engine, e, l.id(a, i)));
        assert forall|j: int|
            #![trigger a.seqs@[j]]
            0 <= j < a.seqs@.len() && j != i && a.seqs@[j].live() implies a.seqs@[j].seat
            != seat by {
            assert(a.seqs@[i].live());
        }
        assert(all_logged(a.groups@, b.groups@));
        lemma_relinked(a, b, l, e, i, seat);
        assert(arrives(b, l, e));
    }
}

} // verus!
