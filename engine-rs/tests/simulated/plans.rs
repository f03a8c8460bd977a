//! What a plan must be, given what is known.
use super::blocks::Sealed;
use super::sequence::Phase;
use super::world::{Flight, World};
use super::Check;
use crate::check;
use std::ops::Range;
use vosti_engine::{Plan, UNKNOWN_TOKEN};

impl World {
    /// The next plan, checked, goes into flight; `false` when there is nothing to compute now.
    pub fn schedule(&mut self) -> Result<bool, String> {
        let plan = self.with(|e| e.schedule());
        self.slide();
        let ids = plan.as_ref().map_or(&[][..], |plan| &plan.seq_ids);
        let new: Vec<u64> = ids
            .iter()
            .filter(|id| !self.running.contains(id))
            .copied()
            .collect();
        let counts = self.counts();
        let lost = (self.running.len() + new.len()).checked_sub(counts.running);
        let lost = lost.ok_or("sequences run that are in no plan")?;
        check!(lost == 0 || new.is_empty(), "some left while others came");
        self.preempted(lost)?;
        check!(ids.iter().all(|id| self.sequences.contains_key(id)), "over");
        let told = counts.preemptions - self.preemptions;
        self.preemptions = counts.preemptions;
        check!(told >= lost as u64, "{told} preemptions, {lost} seen");
        let Some(plan) = plan else {
            let idle = self.flights.is_empty() && !self.unfinished().is_empty();
            check!(!idle, "idle, though there is something to do");
            self.tables_known = false;
            return Ok(false);
        };
        let first_come: Vec<u64> = self.waiting.drain(..new.len()).collect();
        check!(new == first_come, "not first come, first served");
        self.seat(&plan, &new)?;
        self.check_order(&plan)?;
        self.update_tables(&plan, &new)?;
        self.check_rows(&plan)?;
        self.check_slots(&plan)?;
        self.take_off(plan);
        self.audit()?;
        Ok(true)
    }

    /// Running sequences have given back what their rows to come do not see, but not their last
    /// full block. What nobody holds then, and no cache, is spoilt: whoever reads it yet is found
    /// out.
    fn slide(&mut self) {
        let size = self.shape.block_size as usize;
        for id in &self.running {
            let sequence = &self.sequences[id];
            if sequence.phase != Phase::Running {
                continue;
            }
            for (g, window) in self.told.iter().enumerate() {
                let seen = window.map_or(0, |w| (sequence.computed + 1).saturating_sub(w));
                let full = sequence.computed / size;
                let upto = (seen / size).min(full.saturating_sub(1));
                self.seen.slid += upto.saturating_sub(self.groups[g].freed[sequence.seat]);
                for block in self.groups[g].slide(sequence.seat, upto) {
                    if !self.shape.prefix_cache {
                        self.device.poison(g, block as usize);
                    }
                }
            }
        }
    }

    /// New sequences take free seats, and begin after what they share.
    fn seat(&mut self, plan: &Plan, new: &[u64]) -> Check {
        let size = self.shape.block_size as usize;
        for (k, id) in plan.seq_ids.iter().enumerate() {
            if !new.contains(id) {
                continue;
            }
            let (seat, first) = (plan.seats[k] as usize, positions(plan, k).start);
            let taken = self.running.iter().any(|r| self.sequences[r].seat == seat);
            let free = seat < self.shape.max_seqs as usize && !taken;
            check!(free, "seat {seat} is taken, or is none");
            let sequence = self.sequences.get_mut(id).ok_or("over")?;
            let most = sequence.need_from.min(sequence.known - 1);
            check!(first % size == 0 && first <= most, "a hit goes too far");
            let shares = self.shape.prefix_cache || sequence.parent.is_some();
            check!(first == 0 || shares, "a hit without a cache");
            (sequence.seat, sequence.phase) = (seat, Phase::Running);
            (sequence.computed, sequence.planned) = (first, first);
            self.seen.hits += first / size;
            self.seen.resumed_with_hit += usize::from(first > 0 && sequence.resumes());
            self.running.push(*id);
        }
        Ok(())
    }

    /// A plan goes from the oldest to the youngest; the oldest is in it, or in flight.
    fn check_order(&self, plan: &Plan) -> Check {
        let mut order = self.running.iter();
        let sorted = plan.seq_ids.iter().all(|id| order.any(|of| of == id));
        check!(sorted, "not from the oldest to the youngest");
        let oldest = self.running.iter().find(|id| self.sequences[id].live());
        let oldest = oldest.ok_or("a plan without a sequence that goes on")?;
        let advances = self.sequences[oldest].in_flight > 0 || plan.seq_ids.contains(oldest);
        check!(advances, "the oldest sequence does not advance");
        Ok(())
    }

    /// Rows of tables grow by blocks that nobody holds; a new one begins with those it shares.
    fn update_tables(&mut self, plan: &Plan, new: &[u64]) -> Check {
        let size = self.shape.block_size as usize;
        let mut old = vec![false; self.shape.max_seqs as usize];
        for id in &self.running {
            old[self.sequences[id].seat] = !new.contains(id);
        }
        for (g, updates) in plan.updates.iter().enumerate() {
            let mut rows: Vec<Vec<u32>> = vec![Vec::new(); old.len()];
            let entries = updates.seats.iter().zip(&updates.indices);
            for ((seat, index), block) in entries.zip(&updates.blocks) {
                let (seat, index) = (*seat as usize, *index as usize);
                if !old[seat] {
                    // Those of a sequence that left the seat again may come before.
                    rows[seat].truncate(index);
                    let follows = rows[seat].len() == index;
                    check!(follows || rows[seat].is_empty(), "a gap in a table");
                    rows[seat].extend(follows.then_some(*block));
                } else if index == self.groups[g].rows[seat].len() {
                    self.groups[g].take(seat, *block)?;
                } else {
                    // What a cancelled plan told is told again.
                    let again = self.groups[g].rows[seat].get(index) == Some(block);
                    check!(again && self.seen.cancelled > 0, "an entry changed");
                }
            }
            for id in new {
                let (seat, shared) = (self.sequences[id].seat, self.sequences[id].computed / size);
                for (index, block) in rows[seat].iter().enumerate() {
                    if index < shared {
                        self.share(g, *id, index, *block)?;
                    } else {
                        self.groups[g].take(seat, *block)?;
                    }
                }
            }
        }
        self.tables_known = true;
        Ok(())
    }

    /// A new sequence reads a block that was computed before: it must hold the same prefix.
    fn share(&mut self, g: usize, id: u64, index: usize, block: u32) -> Check {
        let sequence = &self.sequences[&id];
        let end = (index + 1) * self.shape.block_size as usize;
        let sealed = self.groups[g].sealed.get(block as usize);
        let sealed = sealed.copied().flatten().ok_or("nothing is in the block")?;
        let parent = sequence.parent.and_then(|of| self.sequences.get(&of));
        let of_parent =
            parent.is_some_and(|p| p.phase == Phase::Running && self.groups[g].has(p.seat, block));
        check!(sealed.salt == sequence.solo.salt, "a block of another salt");
        check!(sealed.prefix == sequence.solo.prefix(end), "another prefix");
        let cached = self.shape.prefix_cache && sealed.resets == self.seen.resets;
        check!(cached || of_parent, "a hit from before a reset");
        let seat = sequence.seat;
        self.groups[g].hold(seat, block);
        Ok(())
    }

    /// Positions, tokens, rows whose logits are wanted, sequences that are sampled.
    fn check_rows(&self, plan: &Plan) -> Check {
        let rows = plan.token_ids.len();
        let starts = &plan.query_start;
        let fits = rows == plan.positions.len() && rows <= self.shape.budget as usize;
        let spans = starts[0] == 0 && starts[plan.seats.len()] as usize == rows;
        check!(fits && spans && rows > 0, "{rows} rows");
        let (mut wanted, mut sampled) = (Vec::new(), Vec::new());
        for (k, id) in plan.seq_ids.iter().enumerate() {
            let (sequence, span) = (&self.sequences[id], positions(plan, k));
            let known = sequence.known + sequence.pending;
            let next = sequence.phase == Phase::Running && span.start == sequence.planned;
            check!(next && !span.is_empty(), "not the next rows");
            check!(plan.seats[k] as usize == sequence.seat, "another seat");
            let last = known.min(sequence.max_len - 1);
            check!(span.end <= last, "rows without a token");
            for (row, position) in (starts[k]..starts[k + 1]).zip(span.clone()) {
                let placed = plan.positions[row as usize] as usize == position;
                let token = if position < sequence.known {
                    sequence.solo.known(position)
                } else {
                    UNKNOWN_TOKEN
                };
                let told = plan.token_ids[row as usize] == token;
                check!(placed && told, "position {position}: another row");
                if position >= sequence.need_from {
                    wanted.push(row);
                }
            }
            if span.end == known {
                sampled.push(k as u32);
            }
        }
        check!(plan.logits_rows == wanted, "other rows than are wanted");
        check!(plan.sample_seqs == sampled, "others are sampled");
        Ok(())
    }

    /// Each row is written where the tables say, into a block that nobody else holds.
    fn check_slots(&self, plan: &Plan) -> Check {
        let size = self.shape.block_size as usize;
        for (group, slots) in self.groups.iter().zip(&plan.slots) {
            let mut expected = Vec::with_capacity(slots.len());
            for k in 0..plan.seats.len() {
                let row = &group.rows[plan.seats[k] as usize];
                for position in positions(plan, k) {
                    let block = row.get(position / size).ok_or("too short a table")?;
                    let own = group.holders[*block as usize] == 1;
                    check!(own, "block {block} is shared and written");
                    expected.push(*block * size as u32 + (position % size) as u32);
                }
            }
            check!(*slots == expected, "slots differ from the tables");
        }
        Ok(())
    }

    fn take_off(&mut self, plan: Plan) {
        for (k, id) in plan.seq_ids.iter().enumerate() {
            let sequence = self.sequence(*id);
            sequence.planned = plan.seq_lens[k] as usize;
            sequence.pending += usize::from(plan.sample_seqs.contains(&(k as u32)));
            sequence.in_flight += 1;
        }
        let unknown = plan.token_ids.iter().filter(|t| **t == UNKNOWN_TOKEN);
        self.seen.placeholders += unknown.count();
        self.seen.rows += plan.token_ids.len();
        self.seen.plans += 1;
        self.flights.push_back(Flight {
            plan,
            executed: None,
            last: Vec::new(),
        });
    }

    /// Positions before `end` are computed: blocks that are full now hold their prefix.
    pub fn seal(&mut self, id: u64, end: usize) {
        let size = self.shape.block_size as usize;
        let resets = self.seen.resets;
        let Some(sequence) = self.sequences.get_mut(&id) else {
            return;
        };
        for index in sequence.computed / size..end / size {
            let (salt, prefix) = (sequence.solo.salt, sequence.solo.prefix((index + 1) * size));
            for group in &mut self.groups {
                let block = group.rows[sequence.seat][index] as usize;
                group.sealed[block] = Some(Sealed {
                    salt,
                    prefix,
                    resets,
                });
            }
        }
        sequence.computed = end;
    }
}

/// Positions of the rows of the plan's sequence `k`.
fn positions(plan: &Plan, k: usize) -> Range<usize> {
    let end = plan.seq_lens[k] as usize;
    end - (plan.query_start[k + 1] - plan.query_start[k]) as usize..end
}
