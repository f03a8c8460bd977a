//! Writing down the plan that the draft entries make.
use super::*;
#[cfg(verus_only)]
use crate::layer_group::*;
#[cfg(verus_only)]
use crate::refinement::*;
#[cfg(verus_only)]
use crate::sequence::*;
use vstd::prelude::*;

verus! {

impl Scheduler {
    /// The plan of the draft.
    pub fn emit(&mut self) -> (p: Plan)
        requires
            old(self).inv(),
        ensures
            final(self).inv(),
            *final(self) == (Scheduler { groups: final(self).groups, ..*old(self) }),
            updates_taken(old(self).groups@, final(self).groups@, p.updates@),
            final(self).still_see(old(self)),
            final(self).plan_wf(p),
            p.id == old(self).next_plan,
            p.seats@.len() == old(self).draft,
            forall|k: int|
                #![trigger p.seats@[k]]
                0 <= k < old(self).draft ==> final(self).lists(p, k, drafted(*old(self), k)),
    {
        let updates = self.take_updates();
        let ghost taken = updates@;
        let rows = self.draft_rows as usize;
        let mut slots: Vec<Vec<u32>> = Vec::with_capacity(self.groups.len());
        let mut g: usize = 0;
        while g < self.groups.len()
            invariant
                g <= self.groups@.len(),
                slots@.len() == g,
                forall|h: int| 0 <= h < g ==> (#[trigger] slots@[h])@.len() == 0,
            decreases self.groups@.len() - g,
        {
            slots.push(Vec::with_capacity(rows));
            g += 1;
        }
        let mut query_start: Vec<u32> = Vec::with_capacity(self.draft);
        query_start.push(0);
        let mut p = Plan {
            id: self.next_plan,
            token_ids: Vec::with_capacity(rows),
            positions: Vec::with_capacity(rows),
            slots,
            query_start,
            seq_lens: Vec::with_capacity(self.draft),
            seats: Vec::with_capacity(self.draft),
            seq_ids: Vec::with_capacity(self.draft),
            logits_rows: Vec::new(),
            sample_seqs: Vec::with_capacity(self.draft),
            updates,
            rows: Ghost(Seq::empty()),
        };
        let first = self.queue.len() - self.draft;
        let mut n: usize = 0;
        while n < self.draft
            invariant
                self.inv(),
                n <= self.draft,
                first == self.queue@.len() - self.draft,
                first + self.draft <= usize::MAX,
                self.partial(p, n as int),
                p.id == self.next_plan,
                p.updates@ == taken,
            decreases self.draft - n,
        {
            let e = self.queue[first + n];
            self.emit_entry(&mut p, e, n);
            n += 1;
        }
        proof {
            self.lemma_writes(p);
        }
        p
    }

    /// Takes the changed block table entries of every group.
    fn take_updates(&mut self) -> (updates: Vec<Updates>)
        requires
            old(self).inv(),
        ensures
            final(self).inv(),
            *final(self) == (Scheduler { groups: final(self).groups, ..*old(self) }),
            updates_taken(old(self).groups@, final(self).groups@, updates@),
            final(self).still_see(old(self)),
    {
        let ghost before = *self;
        let mut updates: Vec<Updates> = Vec::with_capacity(self.groups.len());
        let mut g: usize = 0;
        while g < self.groups.len()
            invariant
                g <= self.groups@.len(),
                *self == (Scheduler { groups: self.groups, ..before }),
                groups_frame(before.config, before.groups@, self.groups@, -1),
                updates@.len() == g,
                forall|h: int|
                    0 <= h < g ==> group_taken(
                        before.groups@[h],
                        #[trigger] self.groups@[h],
                        updates@[h],
                    ),
                forall|h: int|
                    g <= h < self.groups@.len() ==> #[trigger] self.groups@[h] == before.groups@[h],
            decreases self.groups@.len() - g,
        {
            let ghost prev = self.groups@;
            let (seats, indices, blocks) = self.groups[g].take_updates();
            updates.push(Updates { seats, indices, blocks });
            proof {
                assert(log_of(updates@[g as int]) =~= prev[g as int].updates());
            }
            g += 1;
        }
        proof {
            before.lemma_still_see(*self, -1, -1);
        }
        updates
    }

    /// Writes down the rows of one entry.
    fn emit_entry(&self, p: &mut Plan, e: Entry, n: usize)
        requires
            self.inv(),
            n < self.draft,
            self.partial(*old(p), n as int),
            e == self.queue@[self.queue@.len() - self.draft + n],
        ensures
            self.partial(*final(p), n + 1),
            final(p).id == old(p).id,
            final(p).updates == old(p).updates,
    {
        let ghost first = self.queue@.len() - self.draft;
        let ghost p0 = *p;
        let seq = &self.seqs[e.seq as usize];
        proof {
            self.lemma_span_nonneg(first + n + 1);
            assert forall|r: int| 0 <= r < p.rows@.len() implies (#[trigger] p.rows@[r]).seat
                != e.seat by {
                let k = choose|k: int|
                    0 <= k < n && p.rows@[r].seat == #[trigger] self.queue@[first + k].seat;
                assert(self.in_draft(first + k));
                assert(self.queue@[first + k].seq != self.queue@[first + n].seq);
                let a = self.queue@[first + k].seq as int;
                assert(self.seqs@[a].live() && self.seqs@[e.seq as int].live());
                assert(self.seqs@[a].seat != self.seqs@[e.seq as int].seat);
            }
        }
        let mut pos = e.from;
        while pos < e.to
            invariant
                self.inv(),
                seq == &self.seqs@[e.seq as int],
                e.seq < self.seqs@.len(),
                seq.phase is Running,
                seq.seat == e.seat,
                seq.computed <= e.from <= pos <= e.to == seq.planned,
                seq.wf(self.config),
                p0.rows@.len() + (e.to - e.from) <= u32::MAX,
                p.rows@.len() == p0.rows@.len() + (pos - e.from),
                self.arrays_ok(*p),
                self.extended(p0, *p, e, pos as int),
                self.logits_ok(*p),
            decreases e.to - pos,
        {
            let ghost before = *p;
            let ghost row = Row { seq: e.seq, seat: e.seat, pos };
            let r = p.positions.len() as u32;
            let token = if (pos as usize) < seq.tokens.len() {
                seq.tokens[pos as usize]
            } else {
                UNKNOWN_TOKEN
            };
            p.token_ids.push(token);
            p.positions.push(pos);
            if pos >= seq.need_from {
                p.logits_rows.push(r);
            }
            self.emit_slots(&mut p.slots, e.seat, pos, Ghost(before.rows@), Ghost(row));
            proof {
                p.rows@ = before.rows@.push(row);
                assert(self.row_ok(row));
                assert forall|x: int|
                    0 <= x < p.rows@.len() && self.wants_logits(
                        #[trigger] p.rows@[x],
                    ) implies p.logits_rows@.contains(x as u32) by {
                    if x < before.rows@.len() {
                        assert(p.rows@[x] == before.rows@[x]);
                        let a = before.logits_rows@.index_of(x as u32);
                        assert(p.logits_rows@[a] == x as u32);
                    } else {
                        assert(p.logits_rows@[p.logits_rows@.len() - 1] == r);
                    }
                }
            }
            pos += 1;
        }
        p.query_start.push(p.positions.len() as u32);
        p.seats.push(e.seat);
        p.seq_lens.push(e.to);
        p.seq_ids.push(seq_id(e.seq, seq.generation));
        if e.sampled {
            p.sample_seqs.push(n as u32);
        }
        proof {
            self.lemma_entry_done(p0, *p, e, n as int);
        }
    }

    /// The slot of the next row in every group.
    fn emit_slots(
        &self,
        slots: &mut Vec<Vec<u32>>,
        seat: u32,
        pos: u32,
        Ghost(rows): Ghost<Seq<Row>>,
        Ghost(row): Ghost<Row>,
    )
        requires
            self.inv(),
            self.row_ok(row),
            row.seat == seat,
            row.pos == pos,
            old(slots)@.len() == self.groups@.len(),
            forall|g: int|
                0 <= g < self.groups@.len() ==> self.slots_ok(
                    g,
                    (#[trigger] old(slots)@[g])@,
                    rows,
                ),
        ensures
            final(slots)@.len() == self.groups@.len(),
            forall|g: int|
                0 <= g < self.groups@.len() ==> self.slots_ok(
                    g,
                    (#[trigger] final(slots)@[g])@,
                    rows.push(row),
                ),
    {
        let size = self.config.block_size;
        let index = (pos / size) as usize;
        let offset = pos % size;
        let mut g: usize = 0;
        while g < self.groups.len()
            invariant
                self.inv(),
                self.row_ok(row),
                row.seat == seat,
                row.pos == pos,
                size == self.config.block_size,
                index == pos as int / size as int,
                offset == pos as int % size as int,
                g <= self.groups@.len(),
                slots@.len() == self.groups@.len(),
                forall|h: int|
                    0 <= h < g ==> self.slots_ok(h, (#[trigger] slots@[h])@, rows.push(row)),
                forall|h: int|
                    g <= h < self.groups@.len() ==> self.slots_ok(h, (#[trigger] slots@[h])@, rows),
            decreases self.groups@.len() - g,
        {
            proof {
                self.groups@[g as int].lemma_bounds(seat as int);
                self.groups@[g as int].lemma_slot_in_range(seat as int, pos as int);
                let v = self.groups@[g as int].seat(seat as int);
                assert(index < v.table.len()) by (nonlinear_arith)
                    requires
                        index == pos as int / size as int,
                        pos < v.table.len() * size,
                        size > 0,
                ;
                assert(v.table[index as int] * size >= 0) by (nonlinear_arith);
            }
            let block = self.groups[g].table_entry(seat as usize, index);
            let slot = block * size + offset;
            slots[g].push(slot);
            g += 1;
        }
    }
}

} // verus!
