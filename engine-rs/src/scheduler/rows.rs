//! Adding one sequence's rows to the plan being made.
use super::*;
#[cfg(verus_only)]
use crate::layer_group::*;
#[cfg(verus_only)]
use crate::refinement::*;
#[cfg(verus_only)]
use crate::sequence::*;
use vstd::prelude::*;

verus! {

/// Where the next rows of a running sequence must stop: a sampled token is fed back unless it is
/// the last.
pub open spec fn goal(s: Sequence) -> int {
    let known = s.len() + s.pending;
    if known < s.max_len {
        known
    } else {
        s.max_len - 1
    }
}

impl Scheduler {
    /// Positions that running sequence `i` could plan now.
    pub fn todo(&self, i: u32) -> (n: u32)
        requires
            self.inv(),
            i < self.seqs@.len(),
            self.seqs@[i as int].phase is Running,
        ensures
            self.seqs@[i as int].planned + n == goal(self.seqs@[i as int]),
    {
        let s = &self.seqs[i as usize];
        let known = s.tokens.len() as u32 + s.pending;
        if known < s.max_len {
            known - s.planned
        } else {
            s.max_len - 1 - s.planned
        }
    }

    /// Plans the next `n` positions of running sequence `i`.
    pub fn add_entry(&mut self, i: u32, n: u32)
        requires
            old(self).inv(),
            i < old(self).seqs@.len(),
            old(self).seqs@[i as int].phase is Running,
            n > 0,
            old(self).draft_rows + n <= u32::MAX,
            old(self).seqs@[i as int].planned + n <= goal(old(self).seqs@[i as int]),
            forall|g: int|
                0 <= g < old(self).groups@.len() ==> old(self).seqs@[i as int].planned + n <= (
                #[trigger] old(self).groups@[g]).seat(
                    old(self).seqs@[i as int].seat as int,
                ).table.len() * old(self).config.block_size,
            forall|a: int|
                #![trigger old(self).queue@[a]]
                old(self).in_draft(a) ==> old(self).queue@[a].seq != i,
        ensures
            final(self).inv(),
            refines(*old(self), *final(self)),
            final(self).only_seq(old(self), i as int),
            final(self).only_seat(old(self), old(self).seqs@[i as int].seat as int),
            final(self).still_see(old(self)),
            all_dirtied(
                old(self).groups@,
                final(self).groups@,
                old(self).seqs@[i as int].seat as int,
                old(self).seqs@[i as int].planned as int,
                old(self).seqs@[i as int].planned + n,
            ),
            final(self).running == old(self).running,
            final(self).waiting == old(self).waiting,
            final(self).same_plans(old(self)),
            final(self).free_seats == old(self).free_seats,
            final(self).seqs@[i as int].phase is Running,
            final(self).draft == old(self).draft + 1,
            final(self).draft_rows == old(self).draft_rows + n,
            final(self).queue@.len() == old(self).queue@.len() + 1,
            final(self).queue@.drop_last() == old(self).queue@,
            ({
                let e = final(self).queue@.last();
                let s = old(self).seqs@[i as int];
                e.seq == i && e.seat == s.seat && e.from == s.planned && e.to == s.planned + n
            }),
    {
        let seq = &self.seqs[i as usize];
        let known = seq.tokens.len() as u32 + seq.pending;
        let from = seq.planned;
        let to = from + n;
        let sampled = to == known;
        let e = Entry { seq: i, seat: seq.seat, from, to, sampled };
        let ghost before = *self;
        let ghost q0 = self.queue@;
        self.queue.push_back(e);
        proof {
            lemma_track_push_all(q0, e);
            lemma_span_push(q0, e, q0.len() - self.draft);
            lemma_entries_bound(self.queue@, i as int);
            assert(self.queue@.len() == self.queue.len());
            assert(self.queue@.drop_last() =~= q0);
            assert(track_ok(q0, i as int, self.seqs@[i as int]));
        }
        let fl = self.seqs[i as usize].in_flight;
        self.draft += 1;
        self.draft_rows += n;
        self.seqs[i as usize].planned = to;
        self.seqs[i as usize].in_flight = fl + 1;
        if sampled {
            self.seqs[i as usize].pending += 1;
        }
        proof {
            before.lemma_writable(i as int, e.from as int, to as int);
        }
        dirty_all(Ghost(before.config), &mut self.groups, e.seat, from, to);
        proof {
            before.lemma_dirtied(*self, i as int, from as int, to as int);
            lemma_same_lists(before, *self, i as int);
            before.lemma_still_see(*self, i as int, e.seat as int);
            lemma_unseen(before, *self);
        }
    }
}

impl Scheduler {
    /// The next positions of a running sequence are in its table and not sealed.
    proof fn lemma_writable(&self, i: int, from: int, to: int)
        requires
            self.inv(),
            0 <= i < self.seqs@.len(),
            self.seqs@[i].phase is Running,
            self.seqs@[i].computed <= from <= to,
            self.covers(i, to),
        ensures
            self.seqs@[i].seat < self.config.max_seqs,
            all_writable(self.groups@, self.seqs@[i].seat as int, from, to, self.config.block_size),
    {
        assert forall|g: int| 0 <= g < self.groups@.len() implies writable(
            (#[trigger] self.groups@[g]).seat(self.seqs@[i].seat as int),
            from,
            to,
            self.config.block_size,
        ) by {
            self.lemma_table_covers(g, i);
        }
    }

    /// What is computed is still there.
    proof fn lemma_dirtied(&self, b: Scheduler, i: int, from: int, to: int)
        requires
            self.inv(),
            0 <= i < self.seqs@.len(),
            self.seqs@[i].phase is Running,
            self.seqs@[i].computed <= from,
            b.config == self.config,
            b.seqs@[i].tokens == self.seqs@[i].tokens,
            b.seqs@[i].computed == self.seqs@[i].computed,
            self.covers(i, b.seqs@[i].planned as int),
            all_dirtied(self.groups@, b.groups@, self.seqs@[i].seat as int, from, to),
            b.groups@.len() == self.groups@.len(),
        ensures
            all_hold(b.seqs@[i], b.groups@, self.seqs@[i].seat as int, b.config.block_size),
    {
    }
}

/// `lemma_track_push` for every sequence.
pub proof fn lemma_track_push_all(q: Seq<Entry>, e: Entry)
    ensures
        forall|i: int, t: Track| #[trigger]
            track(q.push(e), i, t) == (if e.seq == i {
                advance(track(q, i, t), e)
            } else {
                track(q, i, t)
            }),
        forall|i: int| #[trigger]
            entries_of(q.push(e), i) == entries_of(q, i) + if e.seq == i {
                1nat
            } else {
                0nat
            },
{
    assert forall|i: int, t: Track| #[trigger]
        track(q.push(e), i, t) == (if e.seq == i {
            advance(track(q, i, t), e)
        } else {
            track(q, i, t)
        }) by {
        lemma_track_push(q, e, i, t);
    }
    assert forall|i: int| #[trigger]
        entries_of(q.push(e), i) == entries_of(q, i) + if e.seq == i {
            1nat
        } else {
            0nat
        } by {
        lemma_track_push(q, e, i, Track { ok: true, pos: 0, len: 0 });
    }
}

} // verus!
