//! A plan is over: what it computed counts, or it never was.
use super::*;
use crate::layer_group::*;
#[cfg(verus_only)]
use crate::refinement::*;
use crate::sequence::*;
use vstd::prelude::*;

verus! {

/// What became of a sequence whose row was sampled.
#[derive(Clone, Copy, PartialEq, Eq, Structural)]
pub enum Outcome {
    /// It goes on.
    Running,
    /// The token was one of its stop tokens.
    Stop,
    /// It has all the tokens it may have.
    Length,
    /// It was aborted or had finished before: the token was not used.
    Dropped,
}

/// Block `x` of a group is cached as it was, or as a sealed block of the seat.
pub open spec fn seals(
    a: LayerGroup,
    b: LayerGroup,
    seat: int,
    salt: u64,
    toks: Seq<u32>,
    x: int,
) -> bool {
    let (v, w) = (a.seat(seat), b.seat(seat));
    b.cached(x) == a.cached(x) || a.cached(x) is None && exists|i: int|
        v.freed <= i < v.table.len() && i < w.sealed && #[trigger] v.table[i] == x && b.cached(x)
            == Some((salt, toks.take((i + 1) * a.block_size())))
}

/// Counts the positions `from..to` as computed in every group.
fn commit_all(
    Ghost(c): Ghost<Config>,
    groups: &mut Vec<LayerGroup>,
    seat: u32,
    salt: u64,
    tokens: &Vec<u32>,
    from: u32,
    to: u32,
)
    requires
        whole(c, old(groups)@, seat as int),
        from <= to <= tokens@.len(),
        all_committed(old(groups)@, seat as int, tokens@, from as int, to as int, c.block_size),
    ensures
        all_logged(old(groups)@, final(groups)@),
        groups_frame(c, old(groups)@, final(groups)@, seat as int),
        all_committed(final(groups)@, seat as int, tokens@, to as int, to as int, c.block_size),
        all_same_tables(old(groups)@, final(groups)@, seat as int),
        forall|g: int, x: int|
            #![trigger final(groups)@[g].cached(x)]
            0 <= g < final(groups)@.len() ==> seals(
                old(groups)@[g],
                final(groups)@[g],
                seat as int,
                salt,
                tokens@,
                x,
            ),
{
    let ghost before = groups@;
    let mut g: usize = 0;
    while g < groups.len()
        invariant
            g <= groups@.len(),
            c.wf(),
            seat < c.max_seqs,
            from <= to <= tokens@.len(),
            groups_frame(c, before, groups@, seat as int),
            all_logged(before, groups@),
            forall|h: int| g <= h < groups@.len() ==> (#[trigger] groups@[h]) == before[h],
            forall|h: int, x: int|
                #![trigger groups@[h].cached(x)]
                0 <= h < g ==> seals(before[h], groups@[h], seat as int, salt, tokens@, x),
            all_same_tables(before, groups@, seat as int),
            forall|h: int|
                g <= h < groups@.len() ==> committed(
                    (#[trigger] groups@[h]).seat(seat as int),
                    tokens@,
                    from as int,
                    to as int,
                    c.block_size,
                ),
            forall|h: int|
                0 <= h < g ==> committed(
                    (#[trigger] groups@[h]).seat(seat as int),
                    tokens@,
                    to as int,
                    to as int,
                    c.block_size,
                ),
        decreases groups@.len() - g,
    {
        let ghost prev = groups@;
        proof {
            assert(group_ok(c, groups@[g as int]));
            groups@[g as int].lemma_bounds(seat as int);
            assert(prev[g as int] == before[g as int]);
        }
        groups[g].commit(seat as usize, salt, tokens, from as usize, to as usize);
        proof {
            groups@[g as int].lemma_bounds(seat as int);
            lemma_logged_none(prev[g as int], groups@[g as int], seat as int);
            lemma_next_logged(c, before, prev, groups@, g as int, seat as int);
            let (a, b) = (prev[g as int], groups@[g as int]);
            assert forall|x: int|
                #![trigger b.cached(x)]
                seals(a, b, seat as int, salt, tokens@, x) by {
                let (v, w) = (a.seat(seat as int), b.seat(seat as int));
                if b.cached(x) != a.cached(x) {
                    let i = choose|i: int|
                        v.sealed <= i < w.sealed && x == #[trigger] v.table[i] && b.cached(x)
                            == Some((salt, tokens@.take((i + 1) * a.block_size())));
                    assert(v.table[i] == x);
                }
            }
        }
        g += 1;
    }
}

/// The seat holds `n` positions of `toks`, and its table covers `to`.
pub open spec fn committed(v: SeatView, toks: Seq<u32>, n: int, to: int, block_size: u32) -> bool {
    &&& to <= v.table.len() * block_size
    &&& v.sealed == n as nat / block_size as nat
    &&& holds(v, toks, n)
}

pub open spec fn all_committed(
    groups: Seq<LayerGroup>,
    seat: int,
    toks: Seq<u32>,
    n: int,
    to: int,
    block_size: u32,
) -> bool {
    forall|g: int|
        0 <= g < groups.len() ==> committed(
            (#[trigger] groups[g]).seat(seat),
            toks,
            n,
            to,
            block_size,
        )
}

pub open spec fn all_same_tables(a: Seq<LayerGroup>, b: Seq<LayerGroup>, seat: int) -> bool {
    forall|g: int| 0 <= g < b.len() ==> same_table(a[g].seat(seat), (#[trigger] b[g]).seat(seat))
}

fn contains(list: &Vec<u32>, x: u32) -> (found: bool)
    ensures
        found == list@.contains(x),
{
    let mut k: usize = 0;
    while k < list.len()
        invariant
            k <= list@.len(),
            forall|m: int| 0 <= m < k ==> list@[m] != x,
        decreases list@.len() - k,
    {
        if list[k] == x {
            return true;
        }
        k += 1;
    }
    false
}

impl Scheduler {
    /// The first entry in the queue is over. `token` is its sequence's next one, if its last row
    /// was sampled.
    pub fn commit_entry(&mut self, Ghost(open): Ghost<nat>, token: u32) -> (outcome: Outcome)
        requires
            old(self).inv_with(open),
            open > 0,
            old(self).draft == 0,
            token < old(self).config.vocab_size,
        ensures
            final(self).inv_with((open - 1) as nat),
            final(self).config == old(self).config,
            final(self).queue@ == old(self).queue@.drop_first(),
            final(self).plans == old(self).plans,
            final(self).draft == 0,
            final(self).next_plan == old(self).next_plan,
            entry_committed(*old(self), *final(self), old(self).queue@[0], token, outcome),
    {
        let ghost before = *self;
        let e = match self.queue.pop_front() {
            Some(e) => e,
            None => {
                assert(false);
                return Outcome::Dropped;
            },
        };
        let i = e.seq as usize;
        let running = self.seqs[i].is_running();
        if !running {
            self.seqs[i].in_flight -= 1;
            proof {
                lemma_committed(before, *self, i as int, open);
            }
            return Outcome::Dropped;
        }
        let ghost s0 = before.seqs@[i as int];
        proof {
            let t0 = Track { ok: true, pos: s0.computed as int, len: s0.len() };
            assert(track_ok(before.queue@, i as int, s0));
            assert(track(before.queue@, i as int, t0) == track(
                self.queue@,
                i as int,
                advance(t0, e),
            ));
            lemma_track_ok(self.queue@, i as int, advance(t0, e));
            assert(e.from == s0.computed && e.from < e.to <= s0.len());
            assert forall|g: int| 0 <= g < self.groups@.len() implies committed(
                (#[trigger] self.groups@[g]).seat(e.seat as int),
                s0.tokens@,
                e.from as int,
                e.to as int,
                self.config.block_size,
            ) by {
                assert(seat_ok(
                    before.seqs@[i as int],
                    before.groups@[g].seat(s0.seat as int),
                    before.config.block_size,
                ));
            }
        }
        commit_all(
            Ghost(self.config),
            &mut self.groups,
            e.seat,
            self.seqs[i].salt,
            &self.seqs[i].tokens,
            e.from,
            e.to,
        );
        let seq = &mut self.seqs[i];
        seq.in_flight -= 1;
        seq.computed = e.to;
        if seq.need_from < e.to {
            seq.need_from = e.to;
        }
        let mut outcome = Outcome::Running;
        if e.sampled {
            seq.tokens.push(token);
            seq.pending -= 1;
            if contains(&seq.stop, token) {
                outcome = Outcome::Stop;
            } else if seq.tokens.len() as u32 == seq.max_len {
                outcome = Outcome::Length;
            }
            if outcome != Outcome::Running {
                seq.phase = Phase::Draining;
            }
        }
        proof {
            let s = self.seqs@[i as int];
            assert forall|p: int| 0 <= p < s0.len() implies #[trigger] s.tokens@.take(p + 1)
                =~= s0.tokens@.take(p + 1) by {}
            assert forall|g: int| 0 <= g < self.groups@.len() && s.phase is Running implies seat_ok(
                s,
                (#[trigger] self.groups@[g]).seat(s.seat as int),
                self.config.block_size,
            ) by {
                let v = self.groups@[g].seat(s.seat as int);
                assert(committed(v, s0.tokens@, e.to as int, e.to as int, self.config.block_size));
                assert(seat_ok(
                    s0,
                    before.groups@[g].seat(s0.seat as int),
                    before.config.block_size,
                ));
                assert forall|p: int| v.kept <= p < s.computed implies #[trigger] v.kv[p] == Some(
                    s.tokens@.take(p + 1),
                ) by {}
            }
            assert forall|g: int, x: int|
                #![trigger self.groups@[g].cached(x)]
                0 <= g < self.groups@.len() implies self.groups@[g].cached(x)
                == before.groups@[g].cached(x) || before.groups@[g].cached(x) is None && sealed_by(
                before,
                e,
                g,
                x,
                self.groups@[g].cached(x),
            ) by {
                let seat = e.seat as int;
                let v = self.groups@[g].seat(seat);
                assert(seals(before.groups@[g], self.groups@[g], seat, s0.salt, s0.tokens@, x));
                assert(committed(v, s0.tokens@, e.to as int, e.to as int, self.config.block_size));
                assert(group_ok(before.config, before.groups@[g]));
            }
            lemma_committed(before, *self, i as int, open);
        }
        outcome
    }
}

/// What becomes of a sequence when entry `e` is committed with `token`.
pub open spec fn outcome_of(a: Sequence, e: Entry, token: u32) -> Outcome {
    if !(a.phase is Running) {
        Outcome::Dropped
    } else if e.sampled && a.stop@.contains(token) {
        Outcome::Stop
    } else if e.sampled && a.len() + 1 == a.max_len {
        Outcome::Length
    } else {
        Outcome::Running
    }
}

/// What committing entry `e` with `token` makes of its sequence.
pub open spec fn committed_seq(a: Sequence, b: Sequence, e: Entry, token: u32) -> bool {
    if a.phase is Running {
        let tokens = if e.sampled {
            a.tokens@.push(token)
        } else {
            a.tokens@
        };
        &&& b.tokens@ == tokens
        &&& e.from == a.computed && b.computed == e.to && e.to <= a.len()
        &&& b.need_from == if a.need_from < e.to {
            e.to
        } else {
            a.need_from
        }
        &&& b.seat == a.seat && b.salt == a.salt && b.generation == a.generation && b.max_len
            == a.max_len
        &&& b.prompt_len == a.prompt_len && b.stop == a.stop && b.planned == a.planned
        &&& b.phase == if outcome_of(a, e, token) is Running {
            Phase::Running
        } else {
            Phase::Draining
        }
    } else {
        b == (Sequence { in_flight: b.in_flight, ..a })
    }
}

} // verus!
