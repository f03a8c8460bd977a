//! Calls of the engine, and what must come of each.
use super::device::Fault;
use super::model::Solo;
use super::sequence::{Phase, Sequence};
use super::world::{Flight, World, VOCAB};
use super::{Check, Random};
use crate::check;
use std::mem::take;
use vosti_engine::{EngineError, Outcome};

impl World {
    /// Adds a request of random size, which may be too large, and must be refused then.
    pub fn add(&mut self, random: &mut Random) -> Check {
        let max_len = self.shape.max_len as usize;
        // Few distinct beginnings, so that prefixes are shared.
        let period = random.pick(&[1, 2, 5]);
        let shared = random.below(max_len / 2 + 1);
        let mut prompt: Vec<u32> = (0..shared).map(|p| u32::from(p % period == 1)).collect();
        for _ in 0..1 + random.below(4) {
            prompt.push(random.below(VOCAB as usize) as u32);
        }
        let max_tokens = 1 + random.below(max_len / 2);
        let last = prompt.len() - 1;
        let within = random.below(prompt.len());
        let logits_from = random.pick(&[last, last, 0, within]);
        let stop = random.pick::<&[u32]>(&[&[], &[], &[1]]).to_vec();
        let salt = random.pick(&[0, 0, 0, 7]);
        self.add_request(prompt, max_tokens, stop, logits_from, salt)
    }

    pub fn add_request(
        &mut self,
        prompt: Vec<u32>,
        max_tokens: usize,
        stop: Vec<u32>,
        logits_from: usize,
        salt: u64,
    ) -> Check {
        let end = (prompt.len() + max_tokens).min(self.shape.max_len as usize);
        let blocks = end.div_ceil(self.shape.block_size as usize);
        let least = self.groups.iter().map(|group| group.holders.len()).min();
        let told = if salt != 0 && self.device.errs(Fault::IgnoresSalt) {
            0
        } else {
            salt
        };
        let (given, stops) = (prompt.clone(), stop.clone());
        let (max, from) = (max_tokens as u32, logits_from as u32);
        match self.with(|e| e.add(given, max, stops, from, told)) {
            Ok(id) => {
                check!(Some(blocks) <= least, "a request that never fits was added");
                let solo = Solo::new(&self.model, prompt, salt, 0);
                self.enter(Sequence::new(id, solo, end, stop, logits_from))
            }
            Err(error) => {
                let never = error == EngineError::NeverFits && Some(blocks) > least;
                check!(never, "a request that fits was refused");
                self.seen.refused += 1;
                Ok(())
            }
        }
    }

    /// Another sample of the sequence's prompt.
    pub fn fork(&mut self, parent: u64) -> Check {
        let id = self.with(|e| e.fork(parent)).map_err(|_| "no fork")?;
        let of = &self.sequences[&parent];
        let last = of.solo.prompt_len - 1;
        let solo = Solo::new(&self.model, of.solo.prompt(), of.solo.salt, id + 1);
        let mut child = Sequence::new(id, solo, of.max_len, of.stop.clone(), last);
        child.parent = Some(parent);
        self.seen.forked += 1;
        self.enter(child)
    }

    fn enter(&mut self, sequence: Sequence) -> Check {
        let id = sequence.id;
        self.waiting.push_back(id);
        let before = self.sequences.insert(id, sequence);
        check!(before.is_none(), "id {id:#x} was given twice");
        self.audit()
    }

    /// The device runs the oldest plan that it has not run.
    pub fn run_next(&mut self) {
        let next = self.flights.iter_mut().find(|f| f.executed.is_none());
        if let Some(flight) = next {
            let solos = flight.plan.seq_ids.iter().map(|i| &self.sequences[i].solo);
            let of: Vec<(u64, u64)> = solos.map(|solo| (solo.salt, solo.key)).collect();
            flight.last.clone_from(&self.device.last);
            flight.executed = Some(self.device.execute(&self.model, &flight.plan, &of));
        }
    }

    /// Commits the oldest plan in flight: compares its rows and tokens with the solo runs.
    pub fn commit(&mut self) -> Check {
        if self.flights.front().is_some_and(|f| f.executed.is_none()) {
            self.run_next();
        }
        let mut flight = self.flights.pop_front().ok_or("no plan is in flight")?;
        let executed = flight.executed.take().ok_or("not executed")?;
        let mut tokens = executed.tokens;
        if !tokens.is_empty() && self.device.errs(Fault::CommitsOther) {
            tokens[0] = (tokens[0] + 1) % VOCAB;
        }
        let expected = self.land(&flight, &executed.logits, &tokens)?;
        let id = flight.plan.id;
        let outcomes = self.with(|e| e.commit(id, tokens)).map_err(|_| "refused")?;
        check!(outcomes == expected, "other outcomes than expected");
        self.settle();
        self.audit()
    }

    /// A committed plan's rows count now; what has to become of its sampled sequences.
    fn land(
        &mut self,
        flight: &Flight,
        logits: &[u64],
        tokens: &[u32],
    ) -> Result<Vec<Outcome>, String> {
        let plan = &flight.plan;
        let mut rows = vec![None; plan.token_ids.len()];
        for (row, x) in plan.logits_rows.iter().zip(logits) {
            rows[*row as usize] = Some(*x);
        }
        let mut drawn = plan.sample_seqs.iter().zip(tokens).peekable();
        let mut expected = Vec::new();
        for (k, id) in plan.seq_ids.iter().enumerate() {
            let span = plan.query_start[k] as usize..plan.query_start[k + 1] as usize;
            let token = drawn.next_if(|(of, _)| **of == k as u32).map(|(_, t)| *t);
            self.sequence(*id).in_flight -= 1;
            if self.sequences[id].phase != Phase::Running {
                expected.extend(token.map(|_| Outcome::Dropped));
                continue;
            }
            let (model, end) = (&self.model, plan.seq_lens[k] as usize);
            let sequence = self.sequences.get_mut(id).ok_or("over")?;
            let delivered = sequence.delivered;
            sequence.deliver(model, end - span.len(), &rows[span])?;
            self.seen.delivered += sequence.delivered - delivered;
            self.seal(*id, end);
            if let Some(token) = token {
                expected.push(self.append(*id, token)?);
            }
        }
        Ok(expected)
    }

    fn append(&mut self, id: u64, token: u32) -> Result<Outcome, String> {
        let sequence = self.sequences.get_mut(&id).ok_or("over")?;
        sequence.pending -= 1;
        let wanted = sequence.solo.token(&self.model, sequence.known);
        check!(token == wanted, "sequence {id:#x}: another token");
        sequence.known += 1;
        let outcome = if sequence.stop.contains(&token) {
            Outcome::Stop
        } else if sequence.known == sequence.max_len {
            Outcome::Length
        } else {
            return Ok(Outcome::Running);
        };
        sequence.phase = Phase::Draining;
        self.seen.finished += 1;
        sequence.check_complete()?;
        Ok(outcome)
    }

    /// Cancels the newest plan in flight, which was not run, or only half.
    pub fn cancel(&mut self, half_run: bool) -> Check {
        let flight = self.flights.pop_back().ok_or("no plan is in flight")?;
        let plan = &flight.plan;
        self.with(|e| e.cancel(plan.id)).map_err(|_| "refused")?;
        if flight.executed.is_some() {
            let other = self.device.last != flight.last;
            if !(other && self.device.errs(Fault::KeepsCancelled)) {
                self.device.last = flight.last;
            }
        }
        if flight.executed.is_some() || half_run && self.flights.iter().all(Flight::done) {
            self.device.break_off(plan);
        }
        for (k, id) in plan.seq_ids.iter().enumerate() {
            let sampled = plan.sample_seqs.contains(&(k as u32));
            let sequence = self.sequence(*id);
            sequence.in_flight -= 1;
            if sequence.phase == Phase::Running {
                sequence.planned = plan.positions[plan.query_start[k] as usize] as usize;
                sequence.pending -= usize::from(sampled);
            }
        }
        self.settle();
        self.seen.cancelled += 1;
        self.audit()
    }

    pub fn abort(&mut self, id: u64) -> Check {
        let done = self.with(|e| e.abort(id));
        let sequence = self.sequence(id);
        check!(done == sequence.live(), "abort said {done}");
        if sequence.phase == Phase::Waiting {
            self.waiting.retain(|waits| *waits != id);
            self.sequences.remove(&id);
        } else {
            sequence.phase = Phase::Draining;
            self.settle();
        }
        self.seen.aborted += usize::from(done);
        self.audit()
    }

    pub fn reset_cache(&mut self) -> Check {
        self.with(|e| (e.reset_cache(), ()));
        self.seen.resets += 1;
        let caches = (0..self.groups.len()).filter_map(|g| self.engine().block_counts(g));
        let left: u32 = caches.map(|blocks| blocks.cached).sum();
        check!(left == 0, "{left} blocks are cached after a reset");
        self.audit()
    }

    /// Other weights, which the engine allows exactly while no sequence is open.
    pub fn load_weights(&mut self) -> Check {
        if !self.sequences.is_empty() {
            let told = self.with(|e| e.load_weights());
            check!(told == Err(EngineError::Busy), "loaded under a sequence");
            self.seen.refused += 1;
            return self.audit();
        }
        if !self.device.errs(Fault::LoadsSilently) {
            let told = self.with(|e| e.load_weights());
            check!(told.is_ok(), "not loaded, and no sequence is open");
        }
        self.model.weights += 1;
        self.seen.loads += 1;
        self.audit()
    }

    /// Calls that have to be refused; the audit, and what comes after, show whether they were.
    pub fn call_wrongly(&mut self) -> Check {
        let ids = self.engine().plan_ids();
        let (oldest, newest) = (ids.first().copied(), ids.last().copied());
        let wrong = newest.map_or(0, |id| id + 1);
        check!(self.with(|e| e.commit(wrong, vec![])).is_err(), "committed");
        check!(self.with(|e| e.cancel(wrong)).is_err(), "cancelled");
        check!(self.with(|e| e.fork(u64::MAX)).is_err(), "forked");
        check!(!self.with(|e| e.abort(u64::MAX)), "aborted");
        if let (Some(oldest), Some(newest)) = (oldest, newest) {
            let sampled = self.flights[0].plan.sample_seqs.len();
            let many = vec![0; sampled + 1];
            check!(self.with(|e| e.commit(oldest, many)).is_err(), "too many");
            if oldest != newest {
                check!(self.with(|e| e.cancel(oldest)).is_err(), "the oldest");
            }
            if sampled > 0 {
                let beyond = vec![VOCAB; sampled];
                check!(self.with(|e| e.commit(oldest, beyond)).is_err(), "no token");
            }
        }
        self.seen.refused += 4;
        self.audit()
    }

    /// Commits what is in flight, then runs until every sequence is over.
    pub fn drain(&mut self) -> Check {
        while !self.flights.is_empty() || self.schedule()? {
            self.commit()?;
        }
        let left = take(&mut self.sequences);
        check!(left.is_empty(), "{} sequences never ended", left.len());
        self.tables_known = true;
        self.audit()
    }
}

impl Flight {
    pub fn done(&self) -> bool {
        self.executed.is_some()
    }
}
