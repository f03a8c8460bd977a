//! A waiting sequence gets a seat, and the blocks that are cached for it.
use super::share::share_all;
use super::*;
#[cfg(verus_only)]
use crate::layer_group::*;
#[cfg(verus_only)]
use crate::refinement::*;
use crate::sequence::*;
use vstd::prelude::*;

verus! {

/// Most blocks a hit may cover: each row whose logits are still to be delivered is computed, and the
/// last token's always is.
pub open spec fn hit_limit(s: Sequence, block_size: u32) -> int {
    s.need_from as int / block_size as int
}

impl Scheduler {
    /// The sequence at the front of the queue sits down, as the youngest running one, with nothing
    /// in flight.
    pub fn admit(&mut self)
        requires
            old(self).inv(),
            old(self).waiting@.len() > 0,
            old(self).seqs@[old(self).waiting@[0] as int].phase is Waiting,
            old(self).free_seats@.len() > 0,
        ensures
            final(self).inv(),
            refines(*old(self), *final(self)),
            final(self).only_seq(old(self), old(self).waiting@[0] as int),
            final(self).still_see(old(self)),
            final(self).running@ == old(self).running@.push(old(self).waiting@[0]),
            final(self).waiting@ == old(self).waiting@.drop_first(),
            final(self).same_work(old(self)),
            final(self).free_seats@ == old(self).free_seats@.drop_last(),
            ({
                let s = final(self).seqs@[old(self).waiting@[0] as int];
                let w = old(self).seqs@[old(self).waiting@[0] as int];
                &&& s.phase is Running && s.in_flight == 0 && s.pending == 0
                &&& s.seat == old(self).free_seats@.last()
                &&& s.computed == s.planned
                &&& s.computed % old(self).config.block_size == 0
                &&& s.computed <= w.need_from && s.computed < w.len()
                &&& s == (Sequence {
                    phase: s.phase,
                    seat: s.seat,
                    computed: s.computed,
                    planned: s.planned,
                    in_flight: s.in_flight,
                    ..w
                })
            }),
    {
        let ghost before = *self;
        let i = match self.waiting.pop_front() {
            Some(i) => i,
            None => {
                assert(false);
                0
            },
        };
        let seat = match self.free_seats.pop() {
            Some(s) => s,
            None => {
                assert(false);
                0
            },
        };
        proof {
            assert(before.waiting@[0] == i);
            assert(before.free_seats@[before.free_seats@.len() - 1] == seat);
            assert(self.waiting@ =~= before.waiting@.drop_first());
            assert(self.free_seats@ =~= before.free_seats@.drop_last());
            assert(before.seqs@[i as int].wf(before.config));
            assert forall|g: int| 0 <= g < self.groups@.len() implies (
            #[trigger] self.groups@[g]).seat(seat as int).table.len() == 0 by {
                assert(before.free_seats@[before.free_seats@.len() - 1] == seat);
            }
            assert forall|m: int| 0 <= m < before.queue@.len() implies (
            #[trigger] before.queue@[m]).seq != i by {
                assert(before.seqs@[before.queue@[m].seq as int].live());
            }
            lemma_entries_none(before.queue@, i as int);
        }
        let k = self.find_prefix(i, seat);
        proof {
            lemma_limit(before.seqs@[i as int], self.config.block_size, k as nat);
            lemma_small(k as nat, self.config.block_size as nat);
        }
        let n = (k as u32) * self.config.block_size;
        self.seqs[i as usize].phase = Phase::Running;
        self.seqs[i as usize].seat = seat;
        self.seqs[i as usize].computed = n;
        self.seqs[i as usize].planned = n;
        self.seqs[i as usize].in_flight = 0;
        self.running.push(i);
        self.hits = self.hits.wrapping_add(k as u64);
        proof {
            lemma_took_seat(before, *self, i as int, k as nat);
            lemma_admit_refines(before, *self, i as int, k as nat);
            before.lemma_still_see(*self, i as int, seat as int);
        }
    }

    /// Fills the empty seat's tables with the blocks that are cached for waiting sequence `i`, or
    /// that its parent holds; returns how many.
    fn find_prefix(&mut self, i: u32, seat: u32) -> (k: usize)
        requires
            old(self).groups_ok(),
            old(self).seqs_ok(),
            old(self).tables_ok(),
            i < old(self).seqs@.len(),
            old(self).seqs@[i as int].phase is Waiting,
            seat < old(self).config.max_seqs,
            forall|j: int|
                0 <= j < old(self).seqs@.len() && (#[trigger] old(self).seqs@[j]).live() ==> old(
                    self,
                ).seqs@[j].seat < old(self).config.max_seqs && old(self).seqs@[j].seat != seat,
            empty_at(old(self).groups@, seat as int),
        ensures
            *final(self) == (Scheduler { groups: final(self).groups, ..*old(self) }),
            groups_frame(old(self).config, old(self).groups@, final(self).groups@, seat as int),
            same_cache(old(self).groups@, final(self).groups@),
            hits(*old(self), final(self).groups@, i as int, seat as int, k as nat) || exists|j: int|

                #![trigger old(self).seqs@[j]]
                shares(*old(self), final(self).groups@, i as int, seat as int, j, k as nat),
            all_attached(
                final(self).groups@,
                seat as int,
                old(self).seqs@[i as int].tokens@,
                k as nat,
                old(self).config.block_size,
            ),
            k <= hit_limit(old(self).seqs@[i as int], old(self).config.block_size),
    {
        let seq = &self.seqs[i as usize];
        let limit = seq.need_from / self.config.block_size;
        proof {
            assert(limit * self.config.block_size <= seq.need_from) by (nonlinear_arith)
                requires
                    limit == seq.need_from / self.config.block_size,
                    self.config.block_size > 0,
            ;
        }
        let k = attach_all(
            Ghost(self.config),
            &mut self.groups,
            seat,
            seq.salt,
            &seq.tokens,
            limit as usize,
        );
        let (from, held) = self.parent_blocks(i, limit);
        if held as usize <= k {
            return k;
        }
        let ghost looked = *self;
        let ghost hit = self.groups@;
        release_all(Ghost(self.config), &mut self.groups, seat);
        let ghost toks = self.seqs@[i as int].tokens@;
        let ghost j = choose|j: int|
            #![trigger self.seqs@[j]]
            0 <= j < self.seqs@.len() && self.holds_for(j, i as int, from, held);
        assert forall|g: int| 0 <= g < self.groups@.len() implies shareable(
            (#[trigger] self.groups@[g]).seat(from as int),
            toks,
            held as nat,
            self.config.block_size,
        ) by {
            assert(self.groups@[g].seat(from as int) == hit[g].seat(from as int));
            assert(hit[g].seat(from as int) == old(self).groups@[g].seat(from as int));
            assert(seat_ok(
                self.seqs@[j],
                old(self).groups@[g].seat(from as int),
                self.config.block_size,
            ));
            assert(looked.groups@[g].seat(from as int).freed == 0);
            lemma_shareable(
                self.seqs@[j],
                toks,
                self.groups@[g].seat(from as int),
                self.config.block_size,
                held as nat,
            );
        }
        let ghost emptied = self.groups@;
        share_all(Ghost(self.config), &mut self.groups, seat, from, held as usize, Ghost(toks));
        proof {
            lemma_same_cache_twice(old(self).groups@, hit, emptied, self.groups@);
            assert forall|g: int| 0 <= g < self.groups@.len() implies (
            #[trigger] self.groups@[g]).seat(seat as int).table == old(self).groups@[g].seat(
                from as int,
            ).table.take(held as int) by {
                assert(emptied[g].seat(from as int) == hit[g].seat(from as int));
                assert(hit[g].seat(from as int) == old(self).groups@[g].seat(from as int));
            }
            assert(!old(self).slid_any(from as int)) by {
                assert forall|g: int| 0 <= g < hit.len() implies (#[trigger] old(
                    self,
                ).groups@[g]).seat(from as int).freed == 0 by {
                    assert(looked.groups@[g].seat(from as int).freed == 0);
                    assert(hit[g].seat(from as int) == old(self).groups@[g].seat(from as int));
                }
            }
            assert(shares(*old(self), self.groups@, i as int, seat as int, j, held as nat));
        }
        held as usize
    }

    /// Where the parent of sequence `i` sits and how many blocks of its prompt it holds computed,
    /// at most `limit`; no block when it has none, has given blocks back, or the parent is gone.
    /// Who came after the parent into its entry will do, if salt and tokens are the same.
    fn parent_blocks(&self, i: u32, limit: u32) -> (r: (u32, u32))
        requires
            self.groups_ok(),
            self.seqs_ok(),
            i < self.seqs@.len(),
            self.seqs@[i as int].phase is Waiting,
            forall|j: int|
                0 <= j < self.seqs@.len() && (#[trigger] self.seqs@[j]).live()
                    ==> self.seqs@[j].seat < self.config.max_seqs,
            limit * self.config.block_size <= self.seqs@[i as int].len(),
        ensures
            r.1 <= limit,
            r.1 > 0 ==> !self.slid_any(r.0 as int) && exists|j: int|
                #![trigger self.seqs@[j]]
                0 <= j < self.seqs@.len() && self.holds_for(j, i as int, r.0, r.1),
    {
        let block_size = self.config.block_size;
        let j = match self.seqs[i as usize].parent {
            Some((j, _)) => j,
            None => {
                return (0, 0);
            },
        };
        if j as usize >= self.seqs.len() {
            return (0, 0);
        }
        let parent = &self.seqs[j as usize];
        let running = parent.is_running();
        if !running || parent.salt != self.seqs[i as usize].salt {
            return (0, 0);
        }
        if self.has_slid(parent.seat) {
            return (0, 0);
        }
        let full = parent.computed / block_size;
        let k = if full < limit {
            full
        } else {
            limit
        };
        proof {
            assert(k * block_size <= limit * block_size) by (nonlinear_arith)
                requires
                    k <= limit,
            ;
            assert(k * block_size <= parent.computed) by (nonlinear_arith)
                requires
                    k <= full,
                    full == parent.computed / block_size,
                    block_size > 0,
            ;
        }
        let n = k * block_size;
        let mut p: u32 = 0;
        while p < n
            invariant
                p <= n,
                n <= parent.tokens@.len(),
                n <= self.seqs@[i as int].tokens@.len(),
                i < self.seqs@.len(),
                forall|m: int|
                    0 <= m < p ==> parent.tokens@[m] == #[trigger] self.seqs@[i as int].tokens@[m],
            decreases n - p,
        {
            if parent.tokens[p as usize] != self.seqs[i as usize].tokens[p as usize] {
                return (0, 0);
            }
            p += 1;
        }
        proof {
            assert(parent.tokens@.take(n as int) =~= self.seqs@[i as int].tokens@.take(n as int));
            assert(self.holds_for(j as int, i as int, parent.seat, k));
        }
        (parent.seat, k)
    }

    /// Running sequence `j`, at seat `from`, has computed `k` blocks that begin the tokens of `i`.
    pub open spec fn holds_for(&self, j: int, i: int, from: u32, k: u32) -> bool {
        let n = k * self.config.block_size;
        &&& self.seqs@[j].phase is Running
        &&& self.seqs@[j].seat == from
        &&& self.seqs@[j].salt == self.seqs@[i].salt
        &&& n <= self.seqs@[j].computed
        &&& n <= self.seqs@[i].len()
        &&& self.seqs@[j].tokens@.take(n) == self.seqs@[i].tokens@.take(n)
    }
}

} // verus!
