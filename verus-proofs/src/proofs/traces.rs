//! Steps in a row: for the proofs that code refines the machine.
use crate::model::*;
use crate::proofs::blocks::*;
use crate::proofs::engine::*;
use vstd::prelude::*;

verus! {

pub proof fn lemma_stays(e: Engine)
    ensures
        moves(e, e, true),
{
    let none = Seq::<Step>::empty();
    assert(runs(e, none) && run(e, none) == e && all_silent(none));
}

/// One step more.
pub proof fn lemma_moves_on(e: Engine, middle: Engine, step: Step, quiet: bool)
    requires
        moves(e, middle, quiet),
        enabled(middle, step),
        quiet ==> silent(step),
    ensures
        moves(e, after(middle, step), quiet),
{
    let steps = choose|steps: Seq<Step>| #[trigger]
        runs(e, steps) && run(e, steps) == middle && (quiet ==> all_silent(steps));
    let more = steps.push(step);
    assert(more.drop_last() =~= steps);
    assert(runs(e, more) && run(e, more) == after(middle, step));
}

/// One step keeps the invariant.
pub proof fn lemma_step_inv(e: Engine, step: Step)
    requires
        inv(e),
        enabled(e, step),
    ensures
        inv(after(e, step)),
{
    lemma_step(e, step, after(e, step));
}

/// One silent step.
pub proof fn lemma_silent_step(e: Engine, step: Step)
    requires
        inv(e),
        enabled(e, step),
        silent(step),
    ensures
        rearranges(e, after(e, step)),
        inv(after(e, step)),
{
    lemma_stays(e);
    lemma_moves_on(e, e, step, true);
    lemma_step_inv(e, step);
}

pub proof fn lemma_moves_trans(e: Engine, middle: Engine, e2: Engine, quiet: bool)
    requires
        moves(e, middle, quiet),
        moves(middle, e2, quiet),
    ensures
        moves(e, e2, quiet),
{
    let steps = choose|steps: Seq<Step>| #[trigger]
        runs(middle, steps) && run(middle, steps) == e2 && (quiet ==> all_silent(steps));
    lemma_append(e, middle, steps, quiet);
}

proof fn lemma_append(e: Engine, middle: Engine, steps: Seq<Step>, quiet: bool)
    requires
        moves(e, middle, quiet),
        runs(middle, steps),
        quiet ==> all_silent(steps),
    ensures
        moves(e, run(middle, steps), quiet),
    decreases steps.len(),
{
    if steps.len() > 0 {
        lemma_append(e, middle, steps.drop_last(), quiet);
        lemma_moves_on(e, run(middle, steps.drop_last()), steps.last(), quiet);
    }
}

/// The invariant holds wherever the engine gets.
pub proof fn lemma_moves_inv(e: Engine, e2: Engine, quiet: bool)
    requires
        inv(e),
        moves(e, e2, quiet),
    ensures
        inv(e2),
{
    let steps = choose|steps: Seq<Step>| #[trigger]
        runs(e, steps) && run(e, steps) == e2 && (quiet ==> all_silent(steps));
    lemma_run_inv(e, steps);
}

proof fn lemma_run_inv(e: Engine, steps: Seq<Step>)
    requires
        inv(e),
        runs(e, steps),
    ensures
        inv(run(e, steps)),
    decreases steps.len(),
{
    if steps.len() > 0 {
        let before = run(e, steps.drop_last());
        lemma_run_inv(e, steps.drop_last());
        lemma_step(before, steps.last(), after(before, steps.last()));
    }
}

/// Blocks of group `g` that no table has.
pub open spec fn unheld(e: Engine, g: int, blocks: Seq<int>) -> bool {
    &&& blocks.no_duplicates()
    &&& forall|k: int|
        0 <= k < blocks.len() ==> 0 <= #[trigger] blocks[k] < e.shape.num_blocks[g] && !e.held(
            g,
            blocks[k],
        )
}

/// A block table gets `blocks`, which no table has; those that are cached are evicted for it.
pub proof fn lemma_takes_blocks(e: Engine, id: int, g: int, blocks: Seq<int>) -> (e2: Engine)
    requires
        inv(e),
        e.has(id) && e.seqs[id].seat is Some,
        0 <= g < e.groups(),
        unheld(e, g, blocks),
    ensures
        rearranges(e, e2),
        e2 == (Engine {
            registered: e2.registered,
            evicted: e2.evicted,
            ..e.put(id, lengthened(e.seqs[id], g, blocks))
        }),
        forall|b: (int, int)| #[trigger]
            e2.registered.dom().contains(b) <==> e.registered.dom().contains(b) && !(b.0 == g
                && blocks.contains(b.1)),
        forall|b: (int, int)| #[trigger]
            e2.registered.dom().contains(b) ==> e2.registered[b] == e.registered[b],
    decreases blocks.len(),
{
    let s = e.seqs[id];
    assert(inv_sequence(e, s));
    if blocks.len() == 0 {
        lemma_stays(e);
        assert(s.tables.update(g, s.tables[g] + blocks) =~= s.tables);
        assert(e.seqs.insert(id, s) =~= e.seqs);
        return e;
    }
    let few = blocks.drop_last();
    let b = blocks.last();
    let e1 = lemma_takes_blocks(e, id, g, few);
    let e2 = if e1.registered.dom().contains((g, b)) {
        let step = Step::Evict { group: g, block: b };
        lemma_moves_on(e, e1, step, true);
        after(e1, step)
    } else {
        e1
    };
    let step = Step::Grow { id, group: g, block: b };
    lemma_moves_on(e, e2, step, true);
    assert(s.tables.update(g, s.tables[g] + few).update(g, (s.tables[g] + few).push(b))
        =~= s.tables.update(g, s.tables[g] + blocks)) by {
        assert((s.tables[g] + few).push(b) =~= s.tables[g] + blocks);
    }
    let e3 = after(e2, step);
    assert(e3.seqs =~= e.seqs.insert(id, lengthened(s, g, blocks)));
    assert forall|k: (int, int)| #[trigger]
        e3.registered.dom().contains(k) <==> e.registered.dom().contains(k) && !(k.0 == g
            && blocks.contains(k.1)) by {
        if blocks.contains(k.1) {
            let j = blocks.index_of(k.1);
            assert(j < few.len() ==> few[j] == k.1);
        }
    }
    e3
}

pub open spec fn lengthened(s: Sequence, g: int, blocks: Seq<int>) -> Sequence {
    Sequence { tables: s.tables.update(g, s.tables[g] + blocks), ..s }
}

/// Tables of sequence `s`, those of the first `n` groups with what `gains` has for them.
pub open spec fn gained(s: Sequence, gains: Seq<Seq<int>>, n: int) -> Sequence {
    let tables = Seq::new(
        s.tables.len(),
        |g: int|
            if g < n {
                s.tables[g] + gains[g]
            } else {
                s.tables[g]
            },
    );
    Sequence { tables, ..s }
}

/// The tables of sequence `id` get `gains`, in the first `n` groups.
pub proof fn lemma_takes_gains(e: Engine, id: int, gains: Seq<Seq<int>>, n: int) -> (e2: Engine)
    requires
        inv(e),
        e.has(id) && e.seqs[id].seat is Some,
        0 <= n <= e.groups(),
        gains.len() == e.groups(),
        forall|g: int| 0 <= g < n ==> unheld(e, g, #[trigger] gains[g]),
    ensures
        rearranges(e, e2),
        e2 == (Engine {
            registered: e2.registered,
            evicted: e2.evicted,
            ..e.put(id, gained(e.seqs[id], gains, n))
        }),
        forall|b: (int, int)| #[trigger]
            e2.registered.dom().contains(b) <==> e.registered.dom().contains(b) && !(0 <= b.0 < n
                && gains[b.0].contains(b.1)),
        forall|b: (int, int)| #[trigger]
            e2.registered.dom().contains(b) ==> e2.registered[b] == e.registered[b],
    decreases n,
{
    let s = e.seqs[id];
    if n == 0 {
        lemma_stays(e);
        assert(gained(s, gains, n).tables =~= s.tables);
        assert(e.seqs.insert(id, s) =~= e.seqs);
        return e;
    }
    let g = n - 1;
    let e1 = lemma_takes_gains(e, id, gains, g);
    let new = gains[g];
    lemma_moves_inv(e, e1, true);
    let e2 = lemma_takes_blocks(e1, id, g, new);
    lemma_moves_trans(e, e1, e2, true);
    assert(e2.seqs[id].tables =~= gained(s, gains, n).tables);
    assert(e2.seqs =~= e.seqs.insert(id, e2.seqs[id]));
    e2
}

/// Of the tables of sequence `s`, that of group `g` has given back its first `n` blocks.
pub open spec fn freed_to(s: Sequence, g: int, n: nat) -> Sequence {
    Sequence { freed: s.freed.update(g, n), ..s }
}

/// A block table gives back its first blocks, up to `n` of them, of which no later row sees any.
pub proof fn lemma_slides(e: Engine, id: int, g: int, n: nat) -> (e2: Engine)
    requires
        inv(e),
        e.has(id),
        0 <= g < e.groups(),
        e.seqs[id].freed[g] <= n,
        n == e.seqs[id].freed[g] || n * e.shape.block_size <= e.seen_from(id, g),
    ensures
        rearranges(e, e2),
        e2 == e.put(id, freed_to(e.seqs[id], g, n)),
    decreases n - e.seqs[id].freed[g],
{
    let s = e.seqs[id];
    if n == s.freed[g] {
        lemma_stays(e);
        assert(s.freed.update(g, n) =~= s.freed);
        assert(e.seqs.insert(id, s) =~= e.seqs);
        return e;
    }
    let fewer = (n - 1) as nat;
    lemma_block_starts(e.shape.block_size, fewer, n as int);
    let e1 = lemma_slides(e, id, g, fewer);
    let step = Step::Slide { id, group: g };
    lemma_moves_on(e, e1, step, true);
    assert(s.freed.update(g, fewer).update(g, n) =~= s.freed.update(g, n));
    assert(after(e1, step).seqs =~= e.put(id, freed_to(s, g, n)).seqs);
    after(e1, step)
}

/// Sequence `s`, of whose tables the first `n` have given back as many blocks as `freed` says.
pub open spec fn freed_as(s: Sequence, freed: Seq<nat>, n: int) -> Sequence {
    let mixed = Seq::new(
        s.freed.len(),
        |g: int|
            if g < n {
                freed[g]
            } else {
                s.freed[g]
            },
    );
    Sequence { freed: mixed, ..s }
}

/// The block tables of a sequence give back their first blocks, in the first `n` groups.
pub proof fn lemma_slides_all(e: Engine, id: int, freed: Seq<nat>, n: int) -> (e2: Engine)
    requires
        inv(e),
        e.has(id),
        0 <= n <= e.groups(),
        forall|g: int|
            0 <= g < n ==> {
                &&& e.seqs[id].freed[g] <= #[trigger] freed[g]
                &&& freed[g] == e.seqs[id].freed[g] || freed[g] * e.shape.block_size <= e.seen_from(
                    id,
                    g,
                )
            },
    ensures
        rearranges(e, e2),
        e2 == e.put(id, freed_as(e.seqs[id], freed, n)),
    decreases n,
{
    let s = e.seqs[id];
    if n == 0 {
        lemma_stays(e);
        assert(freed_as(s, freed, n).freed =~= s.freed);
        assert(e.seqs.insert(id, s) =~= e.seqs);
        return e;
    }
    let g = n - 1;
    let e1 = lemma_slides_all(e, id, freed, g);
    lemma_moves_inv(e, e1, true);
    let e2 = lemma_slides(e1, id, g, freed[g]);
    lemma_moves_trans(e, e1, e2, true);
    assert(e2.seqs[id].freed =~= freed_as(s, freed, n).freed);
    assert(e2.seqs =~= e.put(id, freed_as(s, freed, n)).seqs);
    e2
}

/// Block `b` of group `g` is a sealed one that may be registered for `prefix`.
pub open spec fn registrable(e: Engine, g: int, b: int, prefix: Prefix) -> bool {
    exists|id: int, i: int|
        #![trigger e.block(id, g, i)]
        e.has_block(id, g, i) && e.block(id, g, i) == b && i < e.sealed(id) && block_prefix(
            e,
            id,
            i,
        ) == prefix
}

/// All of `cache` is registered or may be: every block of the groups before `g`, and the blocks
/// below `n` of group `g`, is registered as `cache` has it.
pub proof fn lemma_registers(
    e: Engine,
    cache: spec_fn(int, int) -> Option<Prefix>,
    g: int,
    n: int,
) -> (e2: Engine)
    requires
        0 <= g <= e.groups(),
        0 <= n,
        forall|h: int, b: int| #[trigger]
            e.registered.dom().contains((h, b)) ==> cache(h, b) == Some(e.registered[(h, b)]),
        forall|h: int, b: int|
            cache(h, b) is Some && !e.registered.dom().contains((h, b)) ==> registrable(
                e,
                h,
                b,
                (#[trigger] cache(h, b))->0,
            ),
    ensures
        rearranges(e, e2),
        e2 == (Engine { registered: e2.registered, ..e }),
        forall|h: int, b: int| #[trigger]
            e2.registered.dom().contains((h, b)) <==> e.registered.dom().contains((h, b)) || (cache(
                h,
                b,
            ) is Some && 0 <= b && 0 <= h && (h < g && b < e.shape.num_blocks[h] || h == g && b
                < n)),
        forall|h: int, b: int| #[trigger]
            e2.registered.dom().contains((h, b)) ==> cache(h, b) == Some(e2.registered[(h, b)]),
    decreases g, n,
{
    if n == 0 {
        if g == 0 {
            lemma_stays(e);
            return e;
        }
        return lemma_registers(e, cache, g - 1, e.shape.num_blocks[g - 1] as int);
    }
    let b = n - 1;
    let e1 = lemma_registers(e, cache, g, b);
    if cache(g, b) is None || e1.registered.dom().contains((g, b)) {
        return e1;
    }
    let (id, i) = choose|id: int, i: int|
        #![trigger e.block(id, g, i)]
        e.has_block(id, g, i) && e.block(id, g, i) == b && i < e.sealed(id) && block_prefix(
            e,
            id,
            i,
        ) == cache(g, b)->0;
    let step = Step::Register { id, group: g, index: i };
    lemma_moves_on(e, e1, step, true);
    after(e1, step)
}

} // verus!
