//! A waiting sequence gets a seat, and the blocks that are cached for it.
use super::*;
use crate::layer_group::*;
use crate::sequence::*;
use vstd::prelude::*;

verus! {

/// Most blocks a hit may cover: the last token is always computed, and so is each row whose logits are
/// still to be delivered.
pub open spec fn hit_limit(s: Sequence, block_size: u32) -> int {
    let least = if s.need_from < s.len() - 1 { s.need_from as int } else { s.len() - 1 };
    least / block_size as int
}

impl Scheduler {
    /// The sequence at the front of the queue sits down, as the youngest running one, with nothing in flight.
    pub fn admit(&mut self)
        requires
            old(self).inv(),
            old(self).waiting@.len() > 0,
            old(self).seqs@[old(self).waiting@[0] as int].phase is Waiting,
            old(self).free_seats@.len() > 0,
        ensures
            final(self).inv(),
            final(self).only_seq(old(self), old(self).waiting@[0] as int),
            final(self).running@ == old(self).running@.push(old(self).waiting@[0]),
            final(self).waiting@ == old(self).waiting@.drop_first(),
            final(self).queue == old(self).queue,
            final(self).plans == old(self).plans,
            final(self).draft == old(self).draft,
            final(self).draft_rows == old(self).draft_rows,
            final(self).next_plan == old(self).next_plan,
            final(self).free_seats@ == old(self).free_seats@.drop_last(),
            ({
                let s = final(self).seqs@[old(self).waiting@[0] as int];
                let w = old(self).seqs@[old(self).waiting@[0] as int];
                &&& s.phase is Running && s.in_flight == 0 && s.pending == 0
                &&& s.seat == old(self).free_seats@.last()
                &&& s.computed == s.planned
                &&& s.computed % old(self).config.block_size == 0
                &&& s.computed <= w.need_from && s.computed < w.len()
                &&& s == (Sequence { phase: s.phase, seat: s.seat, computed: s.computed, planned: s.planned,
                    in_flight: s.in_flight, ..w })
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
            assert forall|g: int| 0 <= g < self.groups@.len() implies (#[trigger] self.groups@[g]).seat(
                seat as int,
            ).table.len() == 0 by {
                assert(before.free_seats@[before.free_seats@.len() - 1] == seat);
            }
            assert forall|m: int| 0 <= m < before.queue@.len() implies (#[trigger] before.queue@[m]).seq != i by {
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
        }
    }

    /// Fills the empty seat's tables with the blocks that are cached for waiting sequence `i`, or that its parent
    /// holds; returns how many.
    fn find_prefix(&mut self, i: u32, seat: u32) -> (k: usize)
        requires
            old(self).groups_ok(),
            old(self).seqs_ok(),
            old(self).tables_ok(),
            i < old(self).seqs@.len(),
            old(self).seqs@[i as int].phase is Waiting,
            seat < old(self).config.max_seqs,
            forall|j: int| 0 <= j < old(self).seqs@.len() && (#[trigger] old(self).seqs@[j]).live()
                ==> old(self).seqs@[j].seat < old(self).config.max_seqs && old(self).seqs@[j].seat != seat,
            forall|g: int| 0 <= g < old(self).groups@.len() ==> (#[trigger] old(self).groups@[g]).seat(
                seat as int,
            ).table.len() == 0,
        ensures
            *final(self) == (Scheduler { groups: final(self).groups, ..*old(self) }),
            groups_frame(old(self).config, old(self).groups@, final(self).groups@, seat as int),
            forall|g: int| 0 <= g < final(self).groups@.len() ==> attached(
                (#[trigger] final(self).groups@[g]).seat(seat as int),
                old(self).seqs@[i as int].tokens@,
                k as nat,
                old(self).config.block_size,
            ),
            k <= hit_limit(old(self).seqs@[i as int], old(self).config.block_size),
    {
        let seq = &self.seqs[i as usize];
        assert(seq.wf(self.config));
        let last = seq.tokens.len() as u32 - 1;
        let least = if seq.need_from < last { seq.need_from } else { last };
        let limit = least / self.config.block_size;
        proof {
            assert(limit * self.config.block_size <= least) by (nonlinear_arith)
                requires limit == least / self.config.block_size, self.config.block_size > 0;
        }
        let k = attach_all(&self.config, &mut self.groups, seat, seq.salt, &seq.tokens, limit as usize);
        let (from, held) = self.parent_blocks(i, limit);
        if held as usize <= k {
            return k;
        }
        let ghost hit = self.groups@;
        release_all(&self.config, &mut self.groups, seat);
        let ghost toks = self.seqs@[i as int].tokens@;
        let ghost j = choose|j: int| #![trigger self.seqs@[j]]
            0 <= j < self.seqs@.len() && self.holds_for(j, i as int, from, held);
        assert forall|g: int| 0 <= g < self.groups@.len() implies shareable(
            (#[trigger] self.groups@[g]).seat(from as int),
            toks,
            held as nat,
            self.config.block_size,
        ) by {
            assert(self.groups@[g].seat(from as int) == hit[g].seat(from as int));
            assert(hit[g].seat(from as int) == old(self).groups@[g].seat(from as int));
            assert(seat_ok(self.seqs@[j], old(self).groups@[g].seat(from as int), self.config.block_size));
            lemma_shareable(
                self.seqs@[j],
                toks,
                self.groups@[g].seat(from as int),
                self.config.block_size,
                held as nat,
            );
        }
        share_all(&self.config, &mut self.groups, seat, from, held as usize, Ghost(toks));
        held as usize
    }

    /// Where the parent of sequence `i` sits and how many blocks of its prompt it holds computed, at most
    /// `limit`; no block when it has none or the parent is gone.
    fn parent_blocks(&self, i: u32, limit: u32) -> (r: (u32, u32))
        requires
            self.groups_ok(),
            self.seqs_ok(),
            i < self.seqs@.len(),
            self.seqs@[i as int].phase is Waiting,
            limit * self.config.block_size <= self.seqs@[i as int].len(),
        ensures
            r.1 <= limit,
            r.1 > 0 ==> exists|j: int| #![trigger self.seqs@[j]] 0 <= j < self.seqs@.len() && self.holds_for(j, i as int, r.0, r.1),
    {
        let block_size = self.config.block_size;
        let (j, generation) = match self.seqs[i as usize].parent {
            Some(p) => p,
            None => {
                return (0, 0);
            },
        };
        if j as usize >= self.seqs.len() {
            return (0, 0);
        }
        let parent = &self.seqs[j as usize];
        assert(parent.wf(self.config));
        assert(self.seqs@[i as int].wf(self.config));
        let running = match parent.phase {
            Phase::Running => true,
            _ => false,
        };
        if !running || parent.generation != generation {
            return (0, 0);
        }
        let full = parent.computed / block_size;
        let k = if full < limit { full } else { limit };
        proof {
            assert(k * block_size <= limit * block_size) by (nonlinear_arith) requires k <= limit;
            assert(k * block_size <= parent.computed) by (nonlinear_arith)
                requires k <= full, full == parent.computed / block_size, block_size > 0;
        }
        let n = k * block_size;
        let mut p: u32 = 0;
        while p < n
            invariant
                p <= n,
                n <= parent.tokens@.len(),
                n <= self.seqs@[i as int].tokens@.len(),
                i < self.seqs@.len(),
                forall|m: int| 0 <= m < p ==> parent.tokens@[m] == #[trigger] self.seqs@[i as int].tokens@[m],
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
        &&& n <= self.seqs@[j].computed
        &&& n <= self.seqs@[i].len()
        &&& self.seqs@[j].tokens@.take(n) == self.seqs@[i].tokens@.take(n)
    }
}

/// The first `k` blocks of the table are committed and begin `toks`.
pub open spec fn shareable(v: SeatView, toks: Seq<u32>, k: nat, block_size: u32) -> bool {
    &&& k <= v.sealed
    &&& k * block_size <= toks.len()
    &&& holds(v, toks, (k * block_size) as int)
}

/// The computed blocks of `s` begin any tokens that begin as its own do.
proof fn lemma_shareable(s: Sequence, toks: Seq<u32>, v: SeatView, block_size: u32, k: nat)
    requires
        block_size > 0,
        seat_ok(s, v, block_size),
        k * block_size <= s.computed <= s.len(),
        k * block_size <= toks.len(),
        s.tokens@.take((k * block_size) as int) == toks.take((k * block_size) as int),
    ensures
        shareable(v, toks, k, block_size),
{
    let n = (k * block_size) as int;
    assert(k <= s.computed as int / block_size as int) by (nonlinear_arith)
        requires
            k * block_size <= s.computed,
            block_size > 0,
    ;
    assert forall|p: int| 0 <= p < n implies #[trigger] v.kv[p] == Some(toks.take(p + 1)) by {
        assert(s.tokens@.take(n).take(p + 1) =~= s.tokens@.take(p + 1));
        assert(toks.take(n).take(p + 1) =~= toks.take(p + 1));
    }
}

/// Gives the empty seat the first `k` blocks of the tables of seat `from`.
fn share_all(c: &Config, groups: &mut Vec<LayerGroup>, seat: u32, from: u32, k: usize, Ghost(toks): Ghost<Seq<u32>>)
    requires
        c.wf(),
        seat < c.max_seqs,
        from < c.max_seqs,
        seat != from,
        forall|g: int| 0 <= g < old(groups)@.len() ==> group_ok(*c, #[trigger] old(groups)@[g]),
        forall|g: int| 0 <= g < old(groups)@.len() ==> (#[trigger] old(groups)@[g]).seat(seat as int).table.len()
            == 0,
        forall|g: int| 0 <= g < old(groups)@.len() ==> shareable(
            (#[trigger] old(groups)@[g]).seat(from as int),
            toks,
            k as nat,
            c.block_size,
        ),
    ensures
        groups_frame(*c, old(groups)@, final(groups)@, seat as int),
        forall|g: int| 0 <= g < final(groups)@.len() ==> attached(
            (#[trigger] final(groups)@[g]).seat(seat as int),
            toks,
            k as nat,
            c.block_size,
        ),
{
    let ghost before = groups@;
    let mut g: usize = 0;
    while g < groups.len()
        invariant
            g <= groups@.len(),
            c.wf(),
            seat < c.max_seqs,
            from < c.max_seqs,
            seat != from,
            groups_frame(*c, before, groups@, seat as int),
            forall|h: int| 0 <= h < before.len() ==> shareable(
                (#[trigger] before[h]).seat(from as int),
                toks,
                k as nat,
                c.block_size,
            ),
            forall|h: int| g <= h < groups@.len() ==> (#[trigger] groups@[h]).seat(seat as int).table.len() == 0,
            forall|h: int| 0 <= h < g ==> attached(
                (#[trigger] groups@[h]).seat(seat as int),
                toks,
                k as nat,
                c.block_size,
            ),
        decreases groups@.len() - g,
    {
        let ghost prev = groups@;
        proof {
            assert(group_ok(*c, groups@[g as int]));
            assert(prev[g as int].seat(from as int) == before[g as int].seat(from as int));
            assert(shareable(before[g as int].seat(from as int), toks, k as nat, c.block_size));
            prev[g as int].lemma_bounds(from as int);
        }
        groups[g].share(seat as usize, from as usize, k);
        proof {
            let v = prev[g as int].seat(from as int);
            let n = (k * c.block_size) as int;
            let w = groups@[g as int].seat(seat as int);
            groups@[g as int].lemma_bounds(seat as int);
            assert(w.kv == v.kv.take(n));
            assert forall|p: int| 0 <= p < n implies #[trigger] w.kv[p] == Some(toks.take(p + 1)) by {
                assert(v.kv.take(n)[p] == v.kv[p]);
            }
            assert forall|h: int, s: int| #![trigger groups@[h].seat(s)]
                0 <= h < groups@.len() && 0 <= s < c.max_seqs && s != seat implies groups@[h].seat(s)
                == before[h].seat(s) by {
                assert(prev[h].seat(s) == before[h].seat(s));
            }
        }
        g += 1;
    }
}

/// Sequence `i`, waiting until now, took the free seat: what is said of the others still holds.
proof fn lemma_took_seat(a: Scheduler, b: Scheduler, i: int, k: nat)
    requires
        a.inv(),
        a.waiting@.len() > 0 && a.waiting@[0] == i,
        a.free_seats@.len() > 0,
        0 <= i < a.seqs@.len(),
        a.seqs@[i].phase is Waiting,
        b.only_seq(&a, i),
        b.seqs@[i] == (Sequence { phase: Phase::Running, seat: a.free_seats@.last(), computed: b.seqs@[i].computed,
            planned: b.seqs@[i].computed, in_flight: 0, ..a.seqs@[i] }),
        b.seqs@[i].computed == k * a.config.block_size,
        k <= hit_limit(a.seqs@[i], a.config.block_size),
        b.running@ == a.running@.push(i as u32),
        b.free_seats@ == a.free_seats@.drop_last(),
        b.waiting@ == a.waiting@.drop_first(),
        b.queue == a.queue,
        b.plans == a.plans,
        b.draft == a.draft,
        b.draft_rows == a.draft_rows,
        b.free_entries == a.free_entries,
        entries_of(a.queue@, i) == 0,
        groups_frame(a.config, a.groups@, b.groups@, a.free_seats@.last() as int),
        forall|g: int| 0 <= g < b.groups@.len() ==> attached(
            (#[trigger] b.groups@[g]).seat(a.free_seats@.last() as int),
            a.seqs@[i].tokens@,
            k,
            a.config.block_size,
        ),
    ensures
        b.inv(),
        b.seqs@[i].computed <= a.seqs@[i].need_from,
        b.seqs@[i].computed < a.seqs@[i].len(),
        b.seqs@[i].computed % a.config.block_size == 0,
{
    let s = b.seqs@[i];
    let seat = a.free_seats@.last();
    let size = a.config.block_size as int;
    assert(a.seqs@[i].wf(a.config));
    lemma_limit(a.seqs@[i], a.config.block_size, k);
    assert(s.wf(b.config));
    assert(a.free_seats@.contains(seat));
    lemma_track_none(a.queue@, i, Track { ok: true, pos: s.computed as int, len: s.len() });
    // running
    assert forall|m: int| 0 <= m < a.running@.len() implies (#[trigger] a.running@[m]) != i by {
        assert(a.seqs@[a.running@[m] as int].live());
    }
    assert forall|m: int| 0 <= m < b.running@.len() implies {
        &&& (#[trigger] b.running@[m]) < b.seqs@.len()
        &&& b.seqs@[b.running@[m] as int].live()
    } by {
        if m < a.running@.len() {
            assert(b.running@[m] == a.running@[m]);
            assert(b.seqs@[a.running@[m] as int] == a.seqs@[a.running@[m] as int]);
        }
    }
    assert forall|j: int| 0 <= j < b.seqs@.len() && (#[trigger] b.seqs@[j]).live() implies b.running@.contains(j as u32) by {
        if j == i {
            assert(b.running@[b.running@.len() - 1] == i as u32);
        } else {
            assert(b.seqs@[j] == a.seqs@[j]);
            let m = a.running@.index_of(j as u32);
            assert(b.running@[m] == j as u32);
        }
    }
    assert(b.running_ok());
    // waiting
    assert forall|m: int| 0 <= m < b.waiting@.len() implies {
        &&& (#[trigger] b.waiting@[m]) < b.seqs@.len()
        &&& (b.seqs@[b.waiting@[m] as int].phase is Waiting || b.seqs@[b.waiting@[m] as int].phase is Dropped)
    } by {
        assert(b.waiting@[m] == a.waiting@[m + 1]);
        assert(a.waiting@[m + 1] != a.waiting@[0]);
        assert(b.seqs@[a.waiting@[m + 1] as int] == a.seqs@[a.waiting@[m + 1] as int]);
    }
    assert forall|j: int| 0 <= j < b.seqs@.len() && ((#[trigger] b.seqs@[j]).phase is Waiting
        || b.seqs@[j].phase is Dropped) implies b.waiting@.contains(j as u32) by {
        assert(b.seqs@[j] == a.seqs@[j]);
        let m = a.waiting@.index_of(j as u32);
        assert(m > 0);
        assert(b.waiting@[m - 1] == j as u32);
    }
    assert(b.waiting@.no_duplicates());
    assert(b.waiting_ok());
    assert(b.free_entries_ok());
    // seats
    assert(b.free_seats@.no_duplicates());
    assert forall|m: int| 0 <= m < b.free_seats@.len() implies (#[trigger] b.free_seats@[m]) != seat by {
        assert(b.free_seats@[m] == a.free_seats@[m]);
        assert(a.free_seats@[a.free_seats@.len() - 1] == seat);
    }
    assert forall|m: int, g: int| #![trigger b.free_seats@[m], b.groups@[g]]
        0 <= m < b.free_seats@.len() && 0 <= g < b.groups@.len() implies b.groups@[g].seat(
        b.free_seats@[m] as int,
    ).table.len() == 0 by {
        assert(b.free_seats@[m] == a.free_seats@[m]);
        assert(b.groups@[g].seat(a.free_seats@[m] as int) == a.groups@[g].seat(a.free_seats@[m] as int));
    }
    assert forall|j: int| 0 <= j < b.seqs@.len() && (#[trigger] b.seqs@[j]).live() implies b.seqs@[j].seat
        < b.config.max_seqs && !b.free_seats@.contains(b.seqs@[j].seat) by {
        if j != i {
            assert(b.seqs@[j] == a.seqs@[j]);
            if b.free_seats@.contains(b.seqs@[j].seat) {
                let m = b.free_seats@.index_of(b.seqs@[j].seat);
                assert(a.free_seats@[m] == b.seqs@[j].seat);
                assert(a.free_seats@.contains(b.seqs@[j].seat));
            }
        }
    }
    assert forall|x: int, y: int| #![trigger b.seqs@[x], b.seqs@[y]]
        0 <= x < b.seqs@.len() && 0 <= y < b.seqs@.len() && x != y && b.seqs@[x].live() && b.seqs@[y].live()
        implies b.seqs@[x].seat != b.seqs@[y].seat by {
        if x == i {
            assert(!a.free_seats@.contains(a.seqs@[y].seat));
        } else if y == i {
            assert(!a.free_seats@.contains(a.seqs@[x].seat));
        } else {
            assert(a.seqs@[x].seat != a.seqs@[y].seat);
        }
    }
    assert(b.seats_ok());
    // tables
    assert forall|j: int, g: int| #![trigger b.seqs@[j], b.groups@[g]]
        0 <= j < b.seqs@.len() && 0 <= g < b.groups@.len() && b.seqs@[j].phase is Running implies seat_ok(
        b.seqs@[j],
        b.groups@[g].seat(b.seqs@[j].seat as int),
        b.config.block_size,
    ) by {
        if j == i {
            let v = b.groups@[g].seat(seat as int);
            assert(attached(v, s.tokens@, k, b.config.block_size));
            assert((k * size) / size == k) by (nonlinear_arith) requires size > 0;
        } else {
            assert(b.seqs@[j] == a.seqs@[j]);
            assert(!a.free_seats@.contains(a.seqs@[j].seat));
            assert(b.groups@[g].seat(b.seqs@[j].seat as int) == a.groups@[g].seat(a.seqs@[j].seat as int));
        }
    }
    assert forall|m: int| 0 <= m < b.queue@.len() implies {
        &&& (#[trigger] b.queue@[m]).seq < b.seqs@.len()
        &&& b.seqs@[b.queue@[m].seq as int].live()
        &&& b.queue@[m].seat == b.seqs@[b.queue@[m].seq as int].seat
    } by {
        lemma_entries_some(a.queue@, m);
        assert(b.seqs@[a.queue@[m].seq as int] == a.seqs@[a.queue@[m].seq as int]);
    }
}

proof fn lemma_small(k: nat, m: nat)
    requires
        m > 0,
    ensures
        k <= k * m,
{
    assert(k <= k * m) by (nonlinear_arith) requires m > 0;
}

/// A hit within the limit leaves the last token, and each row whose logits are wanted, to be computed.
proof fn lemma_limit(s: Sequence, block_size: u32, k: nat)
    requires
        block_size > 0,
        s.len() > 0,
        k <= hit_limit(s, block_size),
    ensures
        k * block_size <= s.need_from,
        k * block_size < s.len(),
        (k * block_size) as int % block_size as int == 0,
{
    let size = block_size as int;
    let least = if s.need_from < s.len() - 1 { s.need_from as int } else { s.len() - 1 };
    assert(k * size <= least) by (nonlinear_arith)
        requires k <= least / size, size > 0, least >= 0;
    assert((k * size) % size == 0) by (nonlinear_arith) requires size > 0;
}

} // verus!
