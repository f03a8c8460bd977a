//! Steps that change a block table: Admit (prefix hit), Share (fork), Grow.
use crate::model::*;
use crate::proofs::blocks::*;
use crate::proofs::steps_simple::*;
use crate::trusted::*;
use vstd::prelude::*;

verus! {

/// What a sequence takes over: `count` blocks in each group, each in range, sealed wherever else it
/// occurs, and written for the sequence's own prefix.
pub open spec fn takes_over(e: Engine, id: int, tables: Seq<Seq<int>>, count: nat) -> bool {
    &&& tables.len() == e.groups()
    &&& forall|g: int| 0 <= g < e.groups() ==> #[trigger] tables[g].len() == count
    &&& forall|g: int, i: int|
        0 <= g < e.groups() && 0 <= i < count ==> 0 <= #[trigger] tables[g][i]
            < e.shape.num_blocks[g]
    &&& forall|g: int, i: int, b: int, j: int|
        #![trigger tables[g][i], e.block(b, g, j)]
        0 <= g < e.groups() && 0 <= i < count && e.has_block(b, g, j) && e.block(b, g, j)
            == tables[g][i] ==> j < e.sealed(b)
    &&& forall|g: int, p: int|
        #![trigger e.shape.slot(g, tables[g], p)]
        0 <= g < e.groups() && 0 <= p < count * e.shape.block_size ==> written_for(
            e,
            e.shape.slot(g, tables[g], p),
            position_prefix(e.seqs[id], p),
        )
}

pub proof fn lemma_admitted(e: Engine, id: int, seat: int, tables: Seq<Seq<int>>, count: nat)
    requires
        inv(e),
        waiting(e, id, seat),
        reusable(e, e.seqs[id], count),
        takes_over(e, id, tables, count),
    ensures
        inv(admitted(e, id, seat, tables, count)),
{
    let e2 = admitted(e, id, seat, tables, count);
    lemma_sealed_of_blocks(e.shape.block_size, count);
    lemma_none_freed(e2, e2.seqs[id]);
    lemma_not_in_flight(e, id, e2.seqs[id].computed, e2.seqs[id].known);
}

pub proof fn lemma_admit(e: Engine, id: int, seat: int, blocks: Seq<Seq<int>>)
    requires
        inv(e),
        can_admit(e, id, seat, blocks),
    ensures
        inv(admitted(e, id, seat, blocks, blocks[0].len())),
{
    let count = blocks[0].len();
    let size = e.shape.block_size;
    let s = e.seqs[id];
    assert(takes_over(e, id, blocks, count)) by {
        assert forall|g: int, p: int|
            #![trigger e.shape.slot(g, blocks[g], p)]
            0 <= g < e.groups() && 0 <= p < count * size implies written_for(
            e,
            e.shape.slot(g, blocks[g], p),
            position_prefix(s, p),
        ) by {
            lemma_block_index(size, p, count);
            let i = p / size as int;
            let o = p % size as int;
            assert((i + 1) * size == i * size + size) by (nonlinear_arith);
            assert((i + 1) * size <= count * size) by (nonlinear_arith)
                requires
                    i + 1 <= count,
            ;
            assert(reusable(e, s, blocks[g].len()));
            let whole = s.known.take((i + 1) * size);
            assert(whole.take(whole.len() - size + o + 1) =~= s.known.take(p + 1));
        }
    }
    lemma_admitted(e, id, seat, blocks, count);
}

pub proof fn lemma_share(e: Engine, id: int, seat: int, from: int, count: nat)
    requires
        inv(e),
        can_share(e, id, seat, from, count),
    ensures
        inv(admitted(e, id, seat, first_blocks(e.seqs[from].tables, count), count)),
{
    let size = e.shape.block_size;
    let f = e.seqs[from];
    let s = e.seqs[id];
    let tables = first_blocks(f.tables, count);
    let end = count * size;
    assert(end <= f.computed) by {
        if count > 0 {
            lemma_sealed_positions(size, f.computed, count - 1);
        }
    }
    assert(takes_over(e, id, tables, count)) by {
        assert forall|g: int| 0 <= g < e.groups() implies #[trigger] f.tables[g].len() >= count by {
            assert(count <= f.tables[g].len()) by (nonlinear_arith)
                requires
                    count * size <= f.tables[g].len() * size,
                    size > 0,
            ;
        }
        assert forall|g: int, i: int, b: int, j: int|
            #![trigger tables[g][i], e.block(b, g, j)]
            0 <= g < e.groups() && 0 <= i < count && e.has_block(b, g, j) && e.block(b, g, j)
                == tables[g][i] implies j < e.sealed(b) by {
            assert(tables[g][i] == e.block(from, g, i));
            if (b, j) != (from, i) {
                assert(e.has_block(from, g, i));
            }
        }
        assert forall|g: int, p: int|
            #![trigger e.shape.slot(g, tables[g], p)]
            0 <= g < e.groups() && 0 <= p < end implies written_for(
            e,
            e.shape.slot(g, tables[g], p),
            position_prefix(s, p),
        ) by {
            lemma_block_index(size, p, count);
            assert(tables[g][p / size as int] == e.block(from, g, p / size as int));
            assert(e.shape.slot(g, tables[g], p) == e.slot(from, g, p));
            assert(s.known.take(p + 1) =~= s.known.take(end as int).take(p + 1));
            assert(f.known.take(p + 1) =~= f.known.take(end as int).take(p + 1));
        }
    }
    lemma_admitted(e, id, seat, tables, count);
}

pub proof fn lemma_grow(e: Engine, id: int, group: int, block: int)
    requires
        inv(e),
        can_grow(e, id, group, block),
    ensures
        inv(after(e, Step::Grow { id, group, block })),
{
    let e2 = after(e, Step::Grow { id, group, block });
    let size = e.shape.block_size;
    let s = e.seqs[id];
    let s2 = e2.seqs[id];
    assert(s2.tables[group].len() * size >= s.tables[group].len() * size) by (nonlinear_arith)
        requires
            s2.tables[group].len() == s.tables[group].len() + 1,
    ;
    // positions that the table covered before keep their slots
    assert forall|g: int, p: int|
        0 <= g < e.groups() && 0 <= p < s.tables[g].len() * size implies #[trigger] e2.slot(
        id,
        g,
        p,
    ) == e.slot(id, g, p) by {
        lemma_block_index(size, p, s.tables[g].len());
    }
    assert(inv_chunks(e2)) by {
        assert forall|n: int|
            0 <= n < e.plans.len() && #[trigger] e.plans[n].chunks.dom().contains(
                id,
            ) implies inv_chunk(e2, s2, e.plans[n].chunks[id]) by {
            let c = e.plans[n].chunks[id];
            assert(inv_chunk(e, s, c));
            assert forall|g: int| 0 <= g < e.groups() implies {
                &&& c.end() <= #[trigger] c.tables[g].len() * size
                &&& c.tables[g].len() <= s2.tables[g].len()
                &&& c.tables[g] == s2.tables[g].take(c.tables[g].len() as int)
            } by {
                assert(c.tables[g] =~= s2.tables[g].take(c.tables[g].len() as int));
            }
        }
    }
    assert(inv_unwritten(e2)) by {
        assert forall|n: int, a: int, g: int, p: int|
            #![trigger e2.plans[n].chunks.dom().contains(a), e2.slot(a, g, p)]
            row_in_flight(e2, n, a, g, p) implies !e2.content.dom().contains(e2.slot(a, g, p)) by {
            lemma_pinned_covers(e, n, a, g);
        }
    }
}

pub proof fn lemma_slide(e: Engine, id: int, group: int)
    requires
        inv(e),
        can_slide(e, id, group),
    ensures
        inv(after(e, Step::Slide { id, group })),
{
    let e2 = after(e, Step::Slide { id, group });
    let s = e.seqs[id];
    assert(e.kept_from(id, group) <= e2.kept_from(id, group)) by (nonlinear_arith)
        requires
            e.kept_from(id, group) == s.freed[group] * e.shape.block_size,
            e2.kept_from(id, group) == (s.freed[group] + 1) * e.shape.block_size,
    ;
}

/// The rows of a chunk in flight lie within their sequence's tables, as they are now.
pub proof fn lemma_pinned_covers(e: Engine, n: int, id: int, g: int)
    requires
        inv(e),
        0 <= n < e.plans.len(),
        e.plans[n].chunks.dom().contains(id),
        0 <= g < e.groups(),
    ensures
        e.has(id),
        e.seqs[id].computed <= e.plans[n].chunks[id].first,
        e.plans[n].chunks[id].end() <= e.seqs[id].tables[g].len() * e.shape.block_size,
{
    let c = e.plans[n].chunks[id];
    let covered = c.tables[g].len() * e.shape.block_size;
    assert(covered <= e.seqs[id].tables[g].len() * e.shape.block_size) by (nonlinear_arith)
        requires
            covered == c.tables[g].len() * e.shape.block_size,
            c.tables[g].len() <= e.seqs[id].tables[g].len(),
    ;
}

} // verus!
