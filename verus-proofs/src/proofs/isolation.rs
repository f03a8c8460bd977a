//! The prefix cache as one salt sees it.
use crate::model::*;
use crate::trusted::*;
use vstd::prelude::*;

verus! {

pub proof fn lemma_same_longest_hit(
    e: Engine,
    e2: Engine,
    salt: Salt,
    tokens: Seq<Token>,
    most: nat,
)
    requires
        e.shape == e2.shape,
        forall|g: int, t: Seq<Token>| cached(e2, salt, g, t) == #[trigger] cached(e, salt, g, t),
    ensures
        longest_hit(e2, salt, tokens, most) == longest_hit(e, salt, tokens, most),
    decreases most,
{
    assert(hit(e, salt, tokens, most) == hit(e2, salt, tokens, most)) by {
        assert forall|g: int, i: int|
            0 <= g < e.groups() && 0 < i <= most implies #[trigger] cached(
            e2,
            salt,
            g,
            tokens.take(i * e.shape.block_size),
        ) == cached(e, salt, g, tokens.take(i * e.shape.block_size)) by {}
    }
    if most > 0 {
        lemma_same_longest_hit(e, e2, salt, tokens, (most - 1) as nat);
    }
}

pub proof fn lemma_isolation_of_hits(e: Engine, e2: Engine, step: Step, salt: Salt)
    requires
        next(e, step, e2),
        !e2.evicted,
        step matches Step::Register { id, .. } ==> e.seqs[id].request.salt != salt,
    ensures
        forall|g: int, tokens: Seq<Token>|
            cached(e2, salt, g, tokens) == #[trigger] cached(e, salt, g, tokens),
        forall|tokens: Seq<Token>, most: nat|
            longest_hit(e2, salt, tokens, most) == #[trigger] longest_hit(e, salt, tokens, most),
{
    assert forall|g: int, tokens: Seq<Token>|
        cached(e2, salt, g, tokens) == #[trigger] cached(e, salt, g, tokens) by {
        if cached(e, salt, g, tokens) {
            let b = choose|b: int| #[trigger]
                e.registered.dom().contains((g, b)) && e.registered[(g, b)] == (Prefix {
                    salt,
                    tokens,
                });
            assert(e2.registered.dom().contains((g, b)));
        }
    }
    assert forall|tokens: Seq<Token>, most: nat|
        longest_hit(e2, salt, tokens, most) == #[trigger] longest_hit(e, salt, tokens, most) by {
        lemma_same_longest_hit(e, e2, salt, tokens, most);
    }
}

} // verus!
