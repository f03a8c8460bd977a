//! The reference KV of a prefix, position by position; the reference run, output by output.
use crate::trusted::*;
use vstd::prelude::*;

verus! {

/// Position `p`'s reference KV depends on the tokens up to `p` alone.
pub proof fn lemma_kv_at<D: Model>(w: D::Weights, tokens: Seq<Token>, p: int)
    requires
        0 <= p < tokens.len(),
    ensures
        kv_of::<D>(w, tokens).len() == tokens.len(),
        kv_of::<D>(w, tokens)[p] == last_kv_of::<D>(w, tokens.take(p + 1)),
    decreases tokens.len(),
{
    let before = tokens.drop_last();
    lemma_kv_len::<D>(w, before);
    if p == tokens.len() - 1 {
        assert(tokens.take(p + 1) =~= tokens);
    } else {
        lemma_kv_at::<D>(w, before, p);
        assert(before.take(p + 1) =~= tokens.take(p + 1));
    }
}

pub proof fn lemma_kv_len<D: Model>(w: D::Weights, tokens: Seq<Token>)
    ensures
        kv_of::<D>(w, tokens).len() == tokens.len(),
    decreases tokens.len(),
{
    if tokens.len() > 0 {
        lemma_kv_len::<D>(w, tokens.drop_last());
    }
}

/// A longer reference run extends a shorter one.
pub proof fn lemma_reference_extends<D: Model + Sampler>(
    w: D::Weights,
    prompt: Seq<Token>,
    initial: D::State,
    n: nat,
    m: nat,
)
    requires
        n <= m,
    ensures
        reference::<D>(w, prompt, initial, n).tokens.len() == prompt.len() + n,
        reference::<D>(w, prompt, initial, m).tokens.len() == prompt.len() + m,
        reference::<D>(w, prompt, initial, m).tokens.take((prompt.len() + n) as int) == reference::<
            D,
        >(w, prompt, initial, n).tokens,
    decreases m,
{
    if m == 0 {
    } else if n == m {
        lemma_reference_extends::<D>(w, prompt, initial, (m - 1) as nat, (m - 1) as nat);
    } else {
        lemma_reference_extends::<D>(w, prompt, initial, n, (m - 1) as nat);
    }
}

} // verus!
