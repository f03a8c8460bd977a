//! `linked`: what the scheduler's state has to do with the machine's.
//!
//! Recorded writes (`content`, `evicted`), a request's first `logits_from` and what a plan in flight
//! carries are the machine's alone: the scheduler does not remember them.
use super::*;
use vstd::prelude::*;

verus! {

/// The machine that an engine follows. `names`: by the machine's id of a sequence, the one by which
/// callers know it. `may`: what the block tables of a runner may hold that made the updates of
/// every plan so far, in order (but perhaps not those of cancelled plans).
pub ghost struct Link {
    pub engine: model::Engine,
    pub names: Seq<u64>,
    pub may: ISet<Tables>,
}

pub open spec fn ints(s: Seq<u32>) -> Seq<int> {
    s.map_values(|t: u32| t as int)
}

/// The machine has a sequence for it.
pub open spec fn in_use(c: Sequence) -> bool {
    c.phase is Waiting || c.live()
}

pub open spec fn request_of(c: Sequence, logits_from: nat) -> Request {
    Request {
        prompt: ints(c.tokens@.take(c.prompt_len as int)),
        salt: c.salt as int,
        logits_from,
        max_tokens: (c.max_len - c.prompt_len) as nat,
        stop: ints(c.stop@).to_set(),
    }
}

pub open spec fn tables_of(groups: Seq<LayerGroup>, c: Sequence) -> Seq<Seq<int>> {
    Seq::new(
        groups.len(),
        |g: int|
            if c.live() {
                ints(groups[g].seat(c.seat as int).table)
            } else {
                Seq::empty()
            },
    )
}

pub open spec fn freed_of(groups: Seq<LayerGroup>, c: Sequence) -> Seq<nat> {
    Seq::new(
        groups.len(),
        |g: int|
            if c.live() {
                groups[g].seat(c.seat as int).freed
            } else {
                0
            },
    )
}

/// A sequence as the machine sees it.
pub open spec fn seq_of(groups: Seq<LayerGroup>, c: Sequence, logits_from: nat) -> model::Sequence {
    model::Sequence {
        request: request_of(c, logits_from),
        known: ints(c.tokens@),
        computed: c.computed as nat,
        need_from: c.need_from as nat,
        seat: if c.live() {
            Some(c.seat as int)
        } else {
            None
        },
        tables: tables_of(groups, c),
        freed: freed_of(groups, c),
        alive: c.phase is Waiting || c.phase is Running,
    }
}

/// What block `b` of group `g` is cached for.
pub open spec fn cache_of(groups: Seq<LayerGroup>, g: int, b: int) -> Option<model::Prefix> {
    if 0 <= g < groups.len() {
        match groups[g].cached(b) {
            Some(p) => Some(model::Prefix { salt: p.0 as int, tokens: ints(p.1) }),
            None => None,
        }
    } else {
        None
    }
}

/// Entry of the sequence that has or had this name.
pub open spec fn place(name: u64) -> int {
    name as int % 0x1_0000_0000
}

/// The name was given out for its entry and will not be again.
pub open spec fn spent(s: Scheduler, name: u64) -> bool {
    let (i, round) = (place(name), name as int / 0x1_0000_0000);
    &&& i < s.seqs@.len()
    &&& round <= s.seqs@[i].generation
    &&& round == s.seqs@[i].generation ==> !s.free_entries@.contains(i as u32)
}

impl Link {
    /// The machine's id of the sequence in entry `i`.
    pub open spec fn id(self, s: Scheduler, i: int) -> int {
        self.names.index_of(name_of(s, i))
    }

    pub open spec fn with(self, engine: model::Engine) -> Link {
        Link { engine, ..self }
    }

    /// A plan went out: the runner makes its updates.
    pub open spec fn updated(self, p: Plan) -> Link {
        let may = ISet::new(
            |t: Tables|
                exists|o: Tables| #[trigger] self.may.contains(o) && t == applied(p.updates@, o),
        );
        Link { may, ..self }
    }

    /// Nobody knows what the runner's block tables hold.
    pub open spec fn forgotten(self) -> Link {
        Link { may: ISet::new(|t: Tables| t.len() == self.engine.groups()), ..self }
    }
}

/// The name of the sequence in entry `i`.
pub open spec fn name_of(s: Scheduler, i: int) -> u64 {
    spec_seq_id(i as u32, s.seqs@[i].generation)
}

pub open spec fn shape_linked(s: Scheduler, e: model::Engine) -> bool {
    &&& e.shape.block_size == s.config.block_size
    &&& e.max_seqs == s.config.max_seqs
    &&& e.groups() == s.groups@.len()
    &&& forall|g: int|
        0 <= g < s.groups@.len() ==> e.shape.num_blocks[g] == (#[trigger] s.groups@[g]).num_blocks()
            && e.shape.windows[g] == s.groups@[g].window()
}

pub open spec fn names_linked(s: Scheduler, l: Link) -> bool {
    &&& l.names.len() == l.engine.next_id
    &&& l.names.no_duplicates()
    &&& forall|id: int| 0 <= id < l.names.len() ==> spent(s, #[trigger] l.names[id])
}

pub open spec fn seq_linked(s: Scheduler, l: Link, i: int) -> bool {
    let id = l.id(s, i);
    &&& l.names.contains(name_of(s, i))
    &&& l.engine.has(id)
    &&& l.engine.seqs[id] == seq_of(s.groups@, s.seqs@[i], l.engine.seqs[id].request.logits_from)
}

/// The machine's sequence `id` is in an entry.
pub open spec fn placed(s: Scheduler, l: Link, id: int) -> bool {
    let i = place(l.names[id]);
    &&& 0 <= id < l.names.len()
    &&& i < s.seqs@.len() && in_use(s.seqs@[i])
    &&& name_of(s, i) == l.names[id]
}

pub open spec fn seqs_linked(s: Scheduler, l: Link) -> bool {
    &&& forall|i: int|
        0 <= i < s.seqs@.len() && in_use(#[trigger] s.seqs@[i]) ==> seq_linked(s, l, i)
    &&& forall|id: int| #[trigger] l.engine.has(id) ==> placed(s, l, id)
}

/// Block `b` of group `g` is cached for what it is registered for, or neither.
pub open spec fn block_linked(groups: Seq<LayerGroup>, e: model::Engine, g: int, b: int) -> bool {
    if e.registered.dom().contains((g, b)) {
        cache_of(groups, g, b) == Some(e.registered[(g, b)])
    } else {
        cache_of(groups, g, b) is None
    }
}

pub open spec fn cache_linked(groups: Seq<LayerGroup>, e: model::Engine) -> bool {
    forall|g: int, b: int|
        #![trigger e.registered.dom().contains((g, b))]
        #![trigger cache_of(groups, g, b)]
        block_linked(groups, e, g, b)
}

/// With the updates that the next plan carries, the runner's block tables are the engine's.
pub open spec fn tables_linked(groups: Seq<LayerGroup>, l: Link) -> bool {
    forall|t: Tables| #[trigger] l.may.contains(t) ==> mirrors(groups, t)
}

/// An entry of the queue as the machine sees it.
pub open spec fn flight_of(s: Scheduler, l: Link, e: Entry) -> Flight {
    Flight { id: l.id(s, e.seq as int), first: e.from as int, end: e.to as int, sample: e.sampled }
}

/// The first `n` entries of the queue are the chunks of `plans`, one plan after the other.
pub open spec fn flies(s: Scheduler, l: Link, plans: Seq<model::Plan>, n: int) -> bool {
    &&& flights(plans).len() == n <= s.queue@.len()
    &&& forall|k: int| 0 <= k < n ==> #[trigger] flights(plans)[k] == flight_of(s, l, s.queue@[k])
}

/// The queue without the plan being made holds the chunks of the plans in flight.
pub open spec fn plans_linked(s: Scheduler, l: Link) -> bool {
    &&& s.plans@.len() == l.engine.plans.len()
    &&& forall|n: int|
        0 <= n < s.plans@.len() ==> (#[trigger] s.plans@[n]).entries
            == l.engine.plans[n].order.len()
    &&& flies(s, l, l.engine.plans, s.queue@.len() - s.draft)
}

pub open spec fn linked(s: Scheduler, l: Link) -> bool {
    &&& model::inv(l.engine)
    &&& shape_linked(s, l.engine)
    &&& names_linked(s, l)
    &&& seqs_linked(s, l)
    &&& cache_linked(s.groups@, l.engine)
    &&& tables_linked(s.groups@, l)
    &&& plans_linked(s, l)
}

} // verus!
