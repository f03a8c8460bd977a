use super::*;
#[cfg(verus_only)]
use crate::refinement::*;
use crate::sequence::Phase;
#[cfg(verus_only)]
use vosti_spec::model;
use vstd::prelude::*;

verus! {

impl Scheduler {
    /// No sequence is open, and no plan in flight.
    pub open spec fn rests(&self) -> bool {
        &&& self.plans@.len() == 0
        &&& forall|i: int| 0 <= i < self.seqs@.len() ==> !in_use(#[trigger] self.seqs@[i])
    }

    fn at_rest(&self) -> (b: bool)
        requires
            self.inv(),
        ensures
            b == self.rests(),
    {
        if self.plans.len() > 0 || self.running.len() > 0 {
            assert(self.running@.len() > 0 ==> self.seqs@[self.running@[0] as int].live());
            return false;
        }
        let mut k: usize = 0;
        while k < self.waiting.len()
            invariant
                self.inv(),
                k <= self.waiting@.len(),
                forall|n: int|
                    0 <= n < k ==> self.seqs@[#[trigger] self.waiting@[n] as int].phase is Dropped,
            decreases self.waiting@.len() - k,
        {
            if !matches!(self.seqs[self.waiting[k] as usize].phase, Phase::Dropped) {
                return false;
            }
            k += 1;
        }
        true
    }

    /// Other weights: what is cached was computed with the old ones.
    pub fn load_weights(&mut self) -> (r: Result<(), EngineError>)
        requires
            old(self).inv(),
            old(self).draft == 0,
        ensures
            final(self).inv(),
            r is Ok <==> old(self).rests(),
            r is Err ==> *final(self) == *old(self),
            r is Ok ==> *final(self) == (Scheduler { groups: final(self).groups, ..*old(self) }),
            r is Ok ==> forall|l: Link| #[trigger]
                linked(*old(self), l) ==> takes(
                    *final(self),
                    l,
                    model::Step::Load { restart: false },
                ),
    {
        if !self.at_rest() {
            return Err(EngineError::Busy);
        }
        let ghost before = *self;
        self.reset_cache();
        proof {
            assert forall|l: Link| #[trigger] linked(before, l) implies takes(
                *self,
                l,
                model::Step::Load { restart: false },
            ) by {
                lemma_load_takes(before, *self, l);
            }
        }
        Ok(())
    }
}

} // verus!
