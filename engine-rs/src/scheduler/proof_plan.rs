//! What is written by a plan, and where.
use super::*;
#[cfg(verus_only)]
use crate::layer_group::*;
#[cfg(verus_only)]
use crate::sequence::*;
use vstd::prelude::*;

verus! {

impl Scheduler {
    /// Whether a plan is well-formed is a matter of the sequences and the tables alone.
    pub proof fn lemma_same_plan(&self, o: Scheduler, p: Plan)
        requires
            o.plan_wf(p),
            self.config == o.config,
            self.groups == o.groups,
            self.seqs == o.seqs,
        ensures
            self.plan_wf(p),
    {
        assert(forall|g: int, i: int, pos: int| #[trigger]
            self.past(g, i, pos) == o.past(g, i, pos));
    }

    /// Rows at different seats or positions never share a slot; computed KV is never written.
    pub proof fn lemma_writes(&self, p: Plan)
        requires
            self.inv(),
            self.arrays_ok(p),
            forall|r: int, q: int|
                #![trigger p.rows@[r], p.rows@[q]]
                0 <= r < q < p.rows@.len() ==> (p.rows@[r].seat, p.rows@[r].pos) != (
                    p.rows@[q].seat,
                    p.rows@[q].pos,
                ),
        ensures
            self.writes_ok(p),
    {
        let rows = p.rows@;
        assert forall|g: int, r: int|
            #![trigger self.groups@[g], rows[r]]
            0 <= g < self.groups@.len() && 0 <= r < rows.len() implies 0 <= self.row_slot(
            g,
            rows[r],
        ) < self.groups@[g].num_blocks() * self.config.block_size by {
            self.lemma_row_in_table(g, rows[r]);
            self.groups@[g].lemma_slot_in_range(rows[r].seat as int, rows[r].pos as int);
        }
        assert forall|g: int, r: int, q: int|
            #![trigger self.groups@[g], rows[r], rows[q]]
            0 <= g < self.groups@.len() && 0 <= r < q < rows.len() implies self.row_slot(g, rows[r])
            != self.row_slot(g, rows[q]) by {
            self.lemma_row_in_table(g, rows[r]);
            self.lemma_row_in_table(g, rows[q]);
            self.groups@[g].lemma_slot_private(
                rows[r].seat as int,
                rows[r].pos as int,
                rows[q].seat as int,
                rows[q].pos as int,
            );
        }
        assert forall|g: int, r: int, i: int, pos: int|
            #![trigger self.groups@[g], rows[r], self.seqs@[i], self.past(g, i, pos)]
            0 <= g < self.groups@.len() && 0 <= r < rows.len() && 0 <= i < self.seqs@.len()
                && self.seqs@[i].phase is Running && self.kept(g, i) <= pos
                < self.seqs@[i].computed implies self.row_slot(g, rows[r]) != self.past(
            g,
            i,
            pos,
        ) by {
            self.lemma_row_in_table(g, rows[r]);
            self.lemma_table_covers(g, i);
            assert(rows[r].seq == i ==> rows[r].pos != pos);
            if rows[r].seq != i {
                assert(self.seqs@[rows[r].seq as int].live() && self.seqs@[i].live());
                assert(self.seqs@[rows[r].seq as int].seat != self.seqs@[i].seat);
            }
            self.groups@[g].lemma_slot_private(
                rows[r].seat as int,
                rows[r].pos as int,
                self.seqs@[i].seat as int,
                pos,
            );
        }
    }

    /// The table of a running sequence covers what is planned.
    pub proof fn lemma_table_covers(&self, g: int, i: int)
        requires
            self.inv(),
            0 <= g < self.groups@.len(),
            0 <= i < self.seqs@.len(),
            self.seqs@[i].phase is Running,
        ensures
            group_ok(self.config, self.groups@[g]),
            self.seqs@[i].seat < self.config.max_seqs,
            self.seqs@[i].computed <= self.seqs@[i].planned <= self.groups@[g].seat(
                self.seqs@[i].seat as int,
            ).kv.len(),
            self.groups@[g].seat(self.seqs@[i].seat as int).sealed * self.config.block_size
                <= self.seqs@[i].computed,
    {
        let s = self.seqs@[i];
        let v = self.groups@[g].seat(s.seat as int);
        self.groups@[g].lemma_bounds(s.seat as int);
        assert(v.sealed * self.config.block_size <= s.computed) by (nonlinear_arith)
            requires
                v.sealed == s.computed as nat / self.config.block_size as nat,
                self.config.block_size > 0,
        ;
    }

    pub proof fn lemma_row_in_table(&self, g: int, r: Row)
        requires
            self.inv(),
            0 <= g < self.groups@.len(),
            self.row_ok(r),
        ensures
            group_ok(self.config, self.groups@[g]),
            r.seat < self.config.max_seqs,
            self.groups@[g].seat(r.seat as int).kept <= r.pos,
            self.groups@[g].seat(r.seat as int).sealed * self.config.block_size <= r.pos
                < self.groups@[g].seat(r.seat as int).kv.len(),
    {
        self.lemma_table_covers(g, r.seq as int);
        self.groups@[g].lemma_bounds(r.seat as int);
    }
}

} // verus!
