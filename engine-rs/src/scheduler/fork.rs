//! Another sample of a prompt that is served already.
use super::*;
#[cfg(verus_only)]
use crate::layer_group::*;
#[cfg(verus_only)]
use crate::refinement::*;
use crate::sequence::*;
use vstd::prelude::*;

verus! {

impl Scheduler {
    /// Another sample of a prompt: a sequence with the prompt, the limits and the salt of sequence
    /// `id`, that shares the full blocks its parent has computed. Only its last prompt row's logits
    /// are wanted.
    pub fn fork(&mut self, id: u64) -> (r: Result<u64, EngineError>)
        requires
            old(self).inv(),
            old(self).draft == 0,
        ensures
            final(self).inv(),
            final(self).draft == 0,
            r is Err ==> *final(self) == *old(self),
            old(self).settled() ==> final(self).settled(),
            r is Err ==> !old(self).alive(id) || old(self).crowded(),
            r matches Ok(child) ==> exists|j: u32|
                {
                    let p = #[trigger] old(self).seqs@[j as int];
                    &&& j < old(self).seqs@.len()
                    &&& id == spec_seq_id(j, p.generation)
                    &&& final(self).added(
                        old(self),
                        child,
                        p.tokens@.take(p.prompt_len as int),
                        (p.max_len - p.prompt_len) as u32,
                        p.stop@,
                        (p.prompt_len - 1) as u32,
                        p.salt,
                        Some((j, p.generation)),
                    )
                    &&& forall|l: Link| #[trigger]
                        linked(*old(self), l) ==> forks(*final(self), l, id, child)
                },
    {
        let j = match self.find(id) {
            Some(j) => j,
            None => {
                return Err(EngineError::UnknownSequence);
            },
        };
        let seq = &self.seqs[j as usize];
        let alive = matches!(seq.phase, Phase::Waiting | Phase::Running);
        if !alive {
            return Err(EngineError::UnknownSequence);
        }
        let prompt = head(&seq.tokens, seq.prompt_len as usize);
        let stop = head(&seq.stop, seq.stop.len());
        let max_tokens = seq.max_len - seq.prompt_len;
        let last = seq.prompt_len - 1;
        let salt = seq.salt;
        let generation = seq.generation;
        proof {
            assert(stop@ =~= seq.stop@);
        }
        let r = self.add(prompt, max_tokens, stop, last, salt, Some((j, generation)));
        proof {
            if let Ok(child) = r {
                let a = *old(self);
                let request = a.request(prompt@, max_tokens, stop@, last, salt);
                assert(request == request_of(a.seqs@[j as int], last as nat));
                assert forall|l: Link| #[trigger] linked(a, l) implies forks(
                    *self,
                    l,
                    id,
                    child,
                ) by {
                    lemma_fork_enters(a, *self, l, j as int, child, request);
                }
            }
        }
        r
    }
}

/// The first `n` elements, copied.
fn head(v: &Vec<u32>, n: usize) -> (h: Vec<u32>)
    requires
        n <= v@.len(),
    ensures
        h@ == v@.take(n as int),
{
    let mut h: Vec<u32> = Vec::with_capacity(n);
    let mut k: usize = 0;
    while k < n
        invariant
            k <= n <= v@.len(),
            h@ == v@.take(k as int),
        decreases n - k,
    {
        h.push(v[k]);
        k += 1;
    }
    h
}

} // verus!
