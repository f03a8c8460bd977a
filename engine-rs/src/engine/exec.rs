mod counts;

pub use counts::*;

use crate::refinement::*;
use crate::scheduler::*;
use vstd::prelude::*;

verus! {

/// The engine. Methods take and return it by value: a caller that loses it to a panic holds nothing
/// half-changed.
pub struct Engine {
    s: Scheduler,
    /// The machine that this engine follows.
    link: Ghost<Link>,
}

impl Engine {
    /// Between calls the scheduler is whole, no plan is half made, nothing that is over and not in
    /// flight holds a seat or a block, and the machine is where the scheduler is.
    #[verifier::type_invariant]
    pub closed spec fn wf(self) -> bool {
        self.s.inv() && self.s.settled() && self.s.draft == 0 && linked(self.s, self.link@)
    }

    /// All that the engine knows.
    pub closed spec fn state(self) -> Scheduler {
        self.s
    }

    /// The machine that it follows, and the names of the machine's sequences.
    pub closed spec fn link(self) -> Link {
        self.link@
    }

    /// Of each group of layers: `num_blocks`, of `block_size` tokens each, and `windows`, how many
    /// positions, its own included, a row sees (0: all up to its own). A group with a window gives
    /// back the blocks that no later row sees.
    #[allow(clippy::too_many_arguments)]
    pub fn new(
        num_blocks: Vec<u32>,
        windows: Vec<u32>,
        block_size: u32,
        max_seqs: u32,
        max_batched_tokens: u32,
        max_model_len: u32,
        vocab_size: u32,
        prefix_cache: bool,
    ) -> (r: Result<Engine, ConfigError>)
        ensures
            r is Ok <==> sizes_ok(
                num_blocks@,
                windows@,
                block_size,
                max_seqs,
                max_batched_tokens,
                max_model_len,
                vocab_size,
            ),
            r matches Ok(e) ==> e.state().plans@.len() == 0 && e.state().waiting@.len() == 0,
            r matches Ok(e) ==> {
                let m = e.link().engine;
                &&& vosti_spec::model::init(m) && e.link().names.len() == 0
                &&& m.shape.block_size == block_size && m.max_seqs == max_seqs
                &&& m.shape.num_blocks =~= num_blocks@.map_values(|n: u32| n as nat)
                &&& m.shape.windows =~= windows@.map_values(|n: u32| n as nat)
            },
    {
        match Scheduler::new(
            num_blocks,
            windows,
            block_size,
            max_seqs,
            max_batched_tokens,
            max_model_len,
            vocab_size,
            prefix_cache,
        ) {
            Ok(s) => {
                let link = Ghost(new_link(s));
                Ok(Engine { s, link })
            },
            Err(e) => Err(e),
        }
    }

    /// A new sequence, last in line. Logits are wanted of the prompt positions from `logits_from`
    /// on, and of every output. Cached blocks are shared under the same `salt` only.
    pub fn add(
        self,
        prompt: Vec<u32>,
        max_tokens: u32,
        stop: Vec<u32>,
        logits_from: u32,
        salt: u64,
    ) -> (out: (Engine, Result<u64, EngineError>))
        ensures
            out.1 is Err ==> out.0.state() == self.state(),
            out.1 is Ok ==> self.state().admissible(prompt@, max_tokens, logits_from),
            out.1 is Err ==> !self.state().admissible(prompt@, max_tokens, logits_from)
                || self.state().crowded(),
            out.1 matches Ok(id) ==> out.0.state().added(
                &self.state(),
                id,
                prompt@,
                max_tokens,
                stop@,
                logits_from,
                salt,
                None,
            ),
            answers(
                self.link(),
                match out.1 {
                    Ok(name) => Call::Add {
                        request: self.state().request(
                            prompt@,
                            max_tokens,
                            stop@,
                            logits_from,
                            salt,
                        ),
                        name,
                    },
                    Err(_) => Call::Nothing,
                },
                out.0.link(),
            ),
    {
        proof {
            use_type_invariant(&self);
        }
        let mut s = self.s;
        let ghost request = s.request(prompt@, max_tokens, stop@, logits_from, salt);
        let r = s.add(prompt, max_tokens, stop, logits_from, salt, None);
        let link = Ghost(
            match r {
                Ok(name) => Link {
                    engine: vosti_spec::model::added(self.link@.engine, request),
                    names: self.link@.names.push(name),
                    ..self.link@
                },
                Err(_) => self.link@,
            },
        );
        (Engine { s, link }, r)
    }

    /// Another sample of the prompt of sequence `id`, under the same limits and salt.
    pub fn fork(self, id: u64) -> (out: (Engine, Result<u64, EngineError>))
        ensures
            out.1 is Err ==> out.0.state() == self.state(),
            out.1 is Err ==> !self.state().alive(id) || self.state().crowded(),
            answers(
                self.link(),
                match out.1 {
                    Ok(name) => Call::Fork { parent: id, name },
                    Err(_) => Call::Nothing,
                },
                out.0.link(),
            ),
    {
        proof {
            use_type_invariant(&self);
        }
        let mut s = self.s;
        let r = s.fork(id);
        let link = Ghost(
            match r {
                Ok(name) => forked(self.link@, id, name),
                Err(_) => self.link@,
            },
        );
        (Engine { s, link }, r)
    }

    /// The next plan; `None` when nothing can be computed now.
    pub fn schedule(self) -> (out: (Engine, Option<Plan>))
        ensures
            out.1 matches Some(p) ==> {
                &&& out.0.state().plan_wf(p)
                &&& out.0.state().plans@ == self.state().plans@.push(
                    PlanRecord { id: p.id, entries: p.seats@.len() as usize },
                )
            },
            out.1 is None ==> out.0.state().plans@ == self.state().plans@,
            progressed(self.state(), out.0.state(), out.1 is Some),
            out.1 is Some ==> out.0.state().slid_since(&self.state()),
            answers(self.link(), Call::Schedule { plan: out.1 }, out.0.link()),
    {
        proof {
            use_type_invariant(&self);
        }
        let mut s = self.s;
        let plan = s.schedule();
        let link = Ghost(lemma_plans(self.s, s, self.link@, plan));
        (Engine { s, link }, plan)
    }

    /// Plan `id`, the oldest in flight, was executed; `tokens` were sampled, one for each of its
    /// `sample_seqs`.
    pub fn commit(self, id: u64, tokens: Vec<u32>) -> (out: (
        Engine,
        Result<Vec<Outcome>, EngineError>,
    ))
        ensures
            out.1 is Err ==> out.0.state() == self.state(),
            out.1 is Ok <==> self.state().commits(id, tokens@),
            out.1 matches Ok(outcomes) ==> {
                &&& outcomes@.len() == tokens@.len()
                &&& out.0.state().plans@ == self.state().plans@.drop_first()
                &&& out.0.state().settled()
                &&& rows_kept(self.state(), out.0.state())
            },
            answers(
                self.link(),
                match out.1 {
                    Ok(outcomes) => Call::Commit { tokens: tokens@, outcomes: outcomes@ },
                    Err(_) => Call::Nothing,
                },
                out.0.link(),
            ),
    {
        proof {
            use_type_invariant(&self);
        }
        let mut s = self.s;
        let r = s.commit(id, &tokens);
        let link = Ghost(
            match r {
                Ok(_) => lemma_steps(
                    s,
                    self.link@,
                    vosti_spec::model::Step::Commit {
                        tokens: drawn(self.link@.engine.plans[0], tokens@),
                    },
                ),
                Err(_) => self.link@,
            },
        );
        (Engine { s, link }, r)
    }

    /// Plan `id`, the newest in flight, was not executed, and is not going to be.
    pub fn cancel(self, id: u64) -> (out: (Engine, Result<(), EngineError>))
        ensures
            out.1 is Err ==> out.0.state() == self.state(),
            out.1 is Ok <==> self.state().cancels(id),
            out.1 is Ok ==> {
                &&& out.0.state().plans@ == self.state().plans@.drop_last()
                &&& out.0.state().settled()
            },
            answers(
                self.link(),
                match out.1 {
                    Ok(_) => Call::Cancel,
                    Err(_) => Call::Nothing,
                },
                out.0.link(),
            ),
    {
        proof {
            use_type_invariant(&self);
        }
        let mut s = self.s;
        let r = s.cancel(id);
        let link = Ghost(
            match r {
                Ok(_) => lemma_steps(s, self.link@.forgotten(), vosti_spec::model::Step::Cancel),
                Err(_) => self.link@,
            },
        );
        (Engine { s, link }, r)
    }

    /// Ends sequence `id`; `false` when it is over already, or never was.
    pub fn abort(self, id: u64) -> (out: (Engine, bool))
        ensures
            out.1 <==> self.state().alive(id),
            !out.1 ==> out.0.state() == self.state(),
            answers(
                self.link(),
                if out.1 {
                    Call::Abort { name: id }
                } else {
                    Call::Nothing
                },
                out.0.link(),
            ),
    {
        proof {
            use_type_invariant(&self);
        }
        let mut s = self.s;
        let done = s.abort(id);
        let link = Ghost(
            if done {
                let step = vosti_spec::model::Step::Abort { id: self.link@.names.index_of(id) };
                lemma_steps(s, self.link@, step)
            } else {
                self.link@
            },
        );
        (Engine { s, link }, done)
    }

    /// Forgets what is cached.
    pub fn reset_cache(self) -> (out: Engine)
        ensures
            out.state() == (Scheduler { groups: out.state().groups, ..self.state() }),
            answers(self.link(), Call::Reset, out.link()),
    {
        proof {
            use_type_invariant(&self);
        }
        let mut s = self.s;
        s.reset_cache();
        let link = Ghost(lemma_steps(s, self.link@, vosti_spec::model::Step::Reset));
        Engine { s, link }
    }

    /// The runner is to compute with other weights from the next plan on: forgets what is cached.
    /// Refused while a sequence is open.
    pub fn load_weights(self) -> (out: (Engine, Result<(), EngineError>))
        ensures
            out.1 is Ok <==> self.state().rests(),
            out.1 is Err ==> out.0.state() == self.state(),
            answers(
                self.link(),
                match out.1 {
                    Ok(_) => Call::Load,
                    Err(_) => Call::Nothing,
                },
                out.0.link(),
            ),
    {
        proof {
            use_type_invariant(&self);
        }
        let mut s = self.s;
        let r = s.load_weights();
        let link = Ghost(
            match r {
                Ok(_) => lemma_steps(
                    s,
                    self.link@,
                    vosti_spec::model::Step::Load { restart: false },
                ),
                Err(_) => self.link@,
            },
        );
        (Engine { s, link }, r)
    }
}

} // verus!
