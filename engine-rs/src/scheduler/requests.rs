//! Sequences come.
use super::*;
#[cfg(verus_only)]
use crate::layer_group::*;
#[cfg(verus_only)]
use crate::refinement::*;
use crate::sequence::*;
#[cfg(verus_only)]
use vosti_spec::model;
#[cfg(verus_only)]
use vosti_spec::trusted::deployment::Request;
use vstd::prelude::*;

verus! {

impl Scheduler {
    /// What a new sequence must be.
    pub open spec fn admissible(
        &self,
        prompt: Seq<u32>,
        max_tokens: u32,
        logits_from: u32,
    ) -> bool {
        &&& 0 < prompt.len() < self.config.max_model_len
        &&& max_tokens > 0
        &&& logits_from < prompt.len()
        &&& forall|p: int| 0 <= p < prompt.len() ==> #[trigger] prompt[p] < self.config.vocab_size
        &&& self.max_len(prompt, max_tokens) <= self.config.capacity * self.config.block_size
    }

    /// Every entry that there can be is in use.
    pub open spec fn crowded(&self) -> bool {
        self.free_entries@.len() == 0 && self.seqs@.len() == u32::MAX
    }

    /// Some sequence that waits or runs has this name.
    pub open spec fn alive(&self, id: u64) -> bool {
        exists|i: int|
            0 <= i < self.seqs@.len() && (self.seqs@[i].phase is Waiting
                || self.seqs@[i].phase is Running) && id == #[trigger] name_of(*self, i)
    }

    /// When a sequence of this prompt is finished.
    pub open spec fn max_len(&self, prompt: Seq<u32>, max_tokens: u32) -> int {
        let want = prompt.len() + max_tokens;
        if want < self.config.max_model_len {
            want
        } else {
            self.config.max_model_len as int
        }
    }

    /// The request as the machine gets it: with at most the outputs that `max_model_len` allows.
    pub open spec fn request(
        &self,
        prompt: Seq<u32>,
        max_tokens: u32,
        stop: Seq<u32>,
        logits_from: u32,
        salt: u64,
    ) -> Request {
        Request {
            prompt: ints(prompt),
            salt: salt as int,
            logits_from: logits_from as nat,
            max_tokens: (self.max_len(prompt, max_tokens) - prompt.len()) as nat,
            stop: ints(stop).to_set(),
        }
    }

    /// A new sequence, last in the waiting queue; returns its id.
    pub fn add(
        &mut self,
        prompt: Vec<u32>,
        max_tokens: u32,
        stop: Vec<u32>,
        logits_from: u32,
        salt: u64,
        parent: Option<(u32, u32)>,
    ) -> (r: Result<u64, EngineError>)
        requires
            old(self).inv(),
            old(self).draft == 0,
        ensures
            final(self).inv(),
            final(self).draft == 0,
            r is Err ==> *final(self) == *old(self),
            old(self).settled() ==> final(self).settled(),
            r is Ok ==> old(self).admissible(prompt@, max_tokens, logits_from),
            r is Err ==> !old(self).admissible(prompt@, max_tokens, logits_from) || old(
                self,
            ).crowded(),
            r matches Ok(id) ==> final(self).added(
                old(self),
                id,
                prompt@,
                max_tokens,
                stop@,
                logits_from,
                salt,
                parent,
            ),
            r matches Ok(id) ==> forall|l: Link| #[trigger]
                linked(*old(self), l) ==> enters(
                    *final(self),
                    l,
                    id,
                    old(self).request(prompt@, max_tokens, stop@, logits_from, salt),
                ),
    {
        if prompt.len() == 0 {
            return Err(EngineError::EmptyPrompt);
        }
        if prompt.len() >= self.config.max_model_len as usize {
            return Err(EngineError::PromptTooLong);
        }
        if max_tokens == 0 {
            return Err(EngineError::NoOutput);
        }
        let prompt_len = prompt.len() as u32;
        if logits_from >= prompt_len {
            return Err(EngineError::LogitsFrom);
        }
        let room = self.config.max_model_len - prompt_len;
        let max_len = if max_tokens < room {
            prompt_len + max_tokens
        } else {
            self.config.max_model_len
        };
        let blocks = blocks_for(max_len, self.config.block_size);
        if blocks > self.config.capacity as usize {
            proof {
                lemma_never_fits(max_len, self.config.block_size, self.config.capacity, blocks);
            }
            return Err(EngineError::NeverFits);
        }
        if !below(&prompt, self.config.vocab_size) {
            return Err(EngineError::TokenOutOfRange);
        }
        proof {
            lemma_blocks_fit(max_len, self.config.block_size, self.config.capacity);
        }
        let index = match self.take_entry() {
            Some(i) => i,
            None => {
                return Err(EngineError::TooManySequences);
            },
        };
        let ghost before = *self;
        let generation = self.seqs[index as usize].generation;
        self.seqs[index as usize] = Sequence {
            phase: Phase::Waiting,
            generation,
            tokens: prompt,
            prompt_len,
            max_len,
            stop,
            salt,
            need_from: logits_from,
            computed: 0,
            planned: 0,
            pending: 0,
            in_flight: 0,
            seat: 0,
            parent,
        };
        self.waiting.push_back(index);
        proof {
            lemma_entered(before, *self, index as int);
            let s = self.seqs@[index as int];
            let r = old(self).request(s.tokens@, max_tokens, s.stop@, logits_from, salt);
            assert(s.tokens@.take(s.prompt_len as int) =~= s.tokens@);
            assert forall|l: Link| #[trigger] linked(*old(self), l) implies enters(
                *self,
                l,
                spec_seq_id(index, generation),
                r,
            ) by {
                let fresh = model::Sequence::fresh(r, l.engine.groups());
                assert(tables_of(self.groups@, s) =~= fresh.tables);
                assert(freed_of(self.groups@, s) =~= fresh.freed);
                lemma_add_enters(*old(self), *self, l, index as int, r);
            }
        }
        Ok(seq_id(index, generation))
    }

    /// What `add` leaves: a sequence that waits behind all others.
    pub open spec fn added(
        &self,
        o: &Self,
        id: u64,
        prompt: Seq<u32>,
        max_tokens: u32,
        stop: Seq<u32>,
        logits_from: u32,
        salt: u64,
        parent: Option<(u32, u32)>,
    ) -> bool {
        exists|i: u32|
            {
                let s = #[trigger] self.seqs@[i as int];
                &&& i < self.seqs@.len()
                &&& id == spec_seq_id(i, s.generation)
                &&& s.phase is Waiting
                &&& s.tokens@ == prompt && s.stop@ == stop && s.salt == salt && s.parent == parent
                &&& s.need_from == logits_from && s.prompt_len == prompt.len()
                &&& s.max_len == o.max_len(prompt, max_tokens)
                &&& self.waiting@ == o.waiting@.push(i)
                &&& i < o.seqs@.len() ==> o.seqs@[i as int].phase is Free
                &&& forall|j: int|
                    0 <= j < o.seqs@.len() && j != i ==> #[trigger] self.seqs@[j] == o.seqs@[j]
            }
    }

    /// An entry without a sequence; the free list no longer has it.
    fn take_entry(&mut self) -> (index: Option<u32>)
        requires
            old(self).inv(),
            old(self).draft == 0,
        ensures
            final(self).inv(),
            index is None ==> *final(self) == *old(self) && old(self).crowded(),
            *final(self) == (Scheduler {
                seqs: final(self).seqs,
                free_entries: final(self).free_entries,
                ..*old(self)
            }),
            index matches Some(i) ==> {
                &&& i < final(self).seqs@.len()
                &&& final(self).seqs@[i as int].phase is Free
                &&& !final(self).free_entries@.contains(i)
                &&& i < old(self).seqs@.len() ==> old(self).seqs@[i as int].phase is Free && old(
                    self,
                ).free_entries@.contains(i)
                &&& forall|x: u32| #[trigger]
                    final(self).free_entries@.contains(x) ==> old(self).free_entries@.contains(x)
                &&& old(self).seqs@.len() <= final(self).seqs@.len()
                &&& forall|j: int|
                    0 <= j < old(self).seqs@.len() ==> #[trigger] final(self).seqs@[j] == old(
                        self,
                    ).seqs@[j]
                &&& final(self).seqs@.len() <= old(self).seqs@.len() + 1
                &&& final(self).seqs@.len() > old(self).seqs@.len() ==> i == old(self).seqs@.len()
            },
    {
        if self.free_entries.len() > 0 {
            let last = self.free_entries.len() - 1;
            let i = self.free_entries[last];
            self.free_entries.truncate(last);
            return Some(i);
        }
        if self.seqs.len() >= u32::MAX as usize {
            return None;
        }
        let i = self.seqs.len() as u32;
        self.seqs.push(
            Sequence {
                phase: Phase::Free,
                generation: 0,
                tokens: Vec::new(),
                prompt_len: 0,
                max_len: 0,
                stop: Vec::new(),
                salt: 0,
                need_from: 0,
                computed: 0,
                planned: 0,
                pending: 0,
                in_flight: 0,
                seat: 0,
                parent: None,
            },
        );
        Some(i)
    }
}

/// Every element is below `bound`.
pub fn below(v: &Vec<u32>, bound: u32) -> (ok: bool)
    ensures
        ok <==> forall|k: int| 0 <= k < v@.len() ==> #[trigger] v@[k] < bound,
{
    let mut k: usize = 0;
    while k < v.len()
        invariant
            k <= v@.len(),
            forall|m: int| 0 <= m < k ==> #[trigger] v@[m] < bound,
        decreases v@.len() - k,
    {
        if v[k] >= bound {
            return false;
        }
        k += 1;
    }
    true
}

} // verus!
