//! A request comes in.
use super::*;
use vstd::prelude::*;

verus! {

/// The machine of a new engine.
pub open spec fn new_link(s: Scheduler) -> Link {
    let num_blocks = Seq::new(s.groups@.len(), |g: int| s.groups@[g].num_blocks());
    let windows = Seq::new(s.groups@.len(), |g: int| s.groups@[g].window());
    let engine = model::Engine {
        shape: Shape { block_size: s.config.block_size as nat, num_blocks, windows },
        max_seqs: s.config.max_seqs as nat,
        next_id: 0,
        seqs: Map::empty(),
        plans: Seq::empty(),
        registered: Map::empty(),
        content: IMap::empty(),
        evicted: false,
    };
    Link { engine, names: Seq::empty(), may: ISet::new(|t: Tables| t.len() == s.groups@.len()) }
}

/// A sequence came into entry `i`, where there was none.
pub proof fn lemma_add_enters(a: Scheduler, b: Scheduler, l: Link, i: int, r: Request)
    requires
        a.inv(),
        b.inv(),
        linked(a, l),
        r.logits_from < r.prompt.len() && r.max_tokens > 0,
        r.prompt.len() + r.max_tokens <= a.config.capacity * a.config.block_size,
        b == (Scheduler { seqs: b.seqs, free_entries: b.free_entries, waiting: b.waiting, ..a }),
        0 <= i < b.seqs@.len() && i <= a.seqs@.len() <= b.seqs@.len() <= a.seqs@.len() + 1,
        b.seqs@.len() > a.seqs@.len() ==> i == a.seqs@.len(),
        forall|j: int| 0 <= j < a.seqs@.len() && j != i ==> #[trigger] b.seqs@[j] == a.seqs@[j],
        i < a.seqs@.len() ==> a.free_entries@.contains(i as u32) && a.seqs@[i].phase is Free
            && a.seqs@[i].generation == b.seqs@[i].generation,
        forall|x: u32| #[trigger]
            b.free_entries@.contains(x) ==> a.free_entries@.contains(x) && x != i,
        b.seqs@[i].phase is Waiting,
        seq_of(b.groups@, b.seqs@[i], r.logits_from) == model::Sequence::fresh(
            r,
            l.engine.groups(),
        ),
    ensures
        enters(b, l, name_of(b, i), r),
{
    let name = name_of(b, i);
    let id = l.engine.next_id;
    let m = Link { engine: model::added(l.engine, r), names: l.names.push(name), ..l };
    lemma_name(i as u32, b.seqs@[i].generation);
    assert forall|g: int| 0 <= g < l.engine.groups() implies r.prompt.len() + r.max_tokens - 1
        <= #[trigger] l.engine.shape.num_blocks[g] * l.engine.shape.block_size by {
        let group = a.groups@[g];
        assert(group_ok(a.config, group));
        lemma_mul_le(a.config.capacity as nat, group.num_blocks(), a.config.block_size as nat);
    }
    if l.names.contains(name) {
        assert(spent(a, l.names[l.names.index_of(name)]));
    }
    lemma_step_inv(l.engine, model::Step::Add { request: r });
    assert forall|k: int| 0 <= k < m.names.len() implies spent(b, #[trigger] m.names[k]) by {
        if k < l.names.len() {
            assert(spent(a, l.names[k]));
        }
    }
    assert(names_linked(b, m));
    assert forall|j: int|
        0 <= j < b.seqs@.len() && in_use(#[trigger] b.seqs@[j]) implies seq_linked(b, m, j) by {
        if j != i {
            lemma_id(a, l, j);
            assert(m.names[l.id(a, j)] == name_of(b, j));
            assert(m.names.index_of(name_of(b, j)) == l.id(a, j));
        } else {
            assert(m.names[id] == name);
        }
    }
    assert forall|k: int| #[trigger] m.engine.has(k) implies placed(b, m, k) by {
        if k != id {
            let j = lemma_placed(a, l, k);
        }
    }
    let n = a.queue@.len() - a.draft;
    assert forall|k: int| 0 <= k < n implies #[trigger] flights(l.engine.plans)[k] == flight_of(
        b,
        m,
        b.queue@[k],
    ) by {
        let j = a.queue@[k].seq as int;
        assert(a.seqs@[j].live());
        lemma_id(a, l, j);
        assert(m.names[l.id(a, j)] == name_of(b, j));
        assert(m.names.index_of(name_of(b, j)) == l.id(a, j));
    }
}

/// The request is another sample of the prompt of the sequence in entry `j`.
pub proof fn lemma_fork_enters(a: Scheduler, b: Scheduler, l: Link, j: int, name: u64, r: Request)
    requires
        a.inv(),
        linked(a, l),
        used(a, j),
        a.seqs@[j].prompt_len <= a.seqs@[j].len(),
        r == request_of(a.seqs@[j], r.logits_from),
        r.logits_from == r.prompt.len() - 1,
        enters(b, l, name, r),
    ensures
        forks(b, l, name_of(a, j), name),
{
}

} // verus!
