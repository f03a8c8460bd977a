//! A sequence gives blocks back, in every group.
use super::*;
use vstd::prelude::*;

verus! {

/// The tables of sequence `i` gave back what no later row of it sees.
pub open spec fn tables_slid(a: Scheduler, b: Scheduler, i: int) -> bool {
    let seat = a.seqs@[i].seat as int;
    &&& a.inv()
    &&& 0 <= i < a.seqs@.len() && a.seqs@[i].phase is Running
    &&& b == (Scheduler { groups: b.groups, ..a })
    &&& same_tables(a, b, seat)
    &&& same_cache(a.groups@, b.groups@)
    &&& forall|g: int|
        0 <= g < b.groups@.len() ==> slid_unseen(
            a.groups@[g],
            #[trigger] b.groups@[g],
            seat,
            a.seqs@[i].computed as int,
            a.config.block_size,
        )
}

pub proof fn lemma_slide_refines(a: Scheduler, b: Scheduler, i: int)
    requires
        tables_slid(a, b, i),
    ensures
        refines(a, b),
{
    assert forall|l: Link| #[trigger] linked(a, l) implies exists|e: model::Engine| #[trigger]
        arrives(b, l, e) by {
        let seat = a.seqs@[i].seat as int;
        let id = l.id(a, i);
        lemma_id(a, l, i);
        let freed = freed_of(b.groups@, b.seqs@[i]);
        let n = a.groups@.len();
        let e = lemma_slides_all(l.engine, id, freed, n as int);
        lemma_moves_inv(l.engine, e, true);
        assert(e.seqs[id].freed =~= freed);
        assert(tables_of(b.groups@, b.seqs@[i]) =~= tables_of(a.groups@, a.seqs@[i])) by {
            assert forall|g: int| 0 <= g < n implies #[trigger] tables_of(b.groups@, b.seqs@[i])[g]
                == tables_of(a.groups@, a.seqs@[i])[g] by {
                assert(slid_unseen(
                    a.groups@[g],
                    b.groups@[g],
                    seat,
                    a.seqs@[i].computed as int,
                    a.config.block_size,
                ));
            }
        }
        assert(seq_linked(b, l.with(e), i));
        lemma_same_cache(a.groups@, b.groups@, e);
        assert forall|j: int|
            #![trigger a.seqs@[j]]
            0 <= j < a.seqs@.len() && j != i && a.seqs@[j].live() implies a.seqs@[j].seat
            != seat by {
            assert(a.seqs@[i].live());
        }
        lemma_relinked(a, b, l, e, i, seat);
        assert(arrives(b, l, e));
    }
}

} // verus!
