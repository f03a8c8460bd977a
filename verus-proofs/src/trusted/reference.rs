//! The meaning of a request: what a model that computes one token after the other, alone, would say.
use vstd::prelude::*;
use crate::trusted::deployment::*;
use crate::trusted::sampler::*;

verus! {

/// One model as a mathematical function; which one it is does not matter to the engine.
/// `Kv` is what one position leaves in one group of layers for later positions to read.
pub trait Model: Sized {
    type Weights;

    type Kv;

    type Logits;

    /// How many groups of layers (each has its own block tables).
    spec fn groups() -> nat;

    /// One position: from the KV of all earlier ones (`past[position][group]`) and its token, its own
    /// KV (by group) and its row of logits.
    spec fn forward(
        weights: Self::Weights,
        past: Seq<Seq<Self::Kv>>,
        token: Token,
    ) -> (Seq<Self::Kv>, Self::Logits);

    /// Obligation: a position leaves KV in every group.
    proof fn forward_fills_groups(weights: Self::Weights, past: Seq<Seq<Self::Kv>>, token: Token)
        ensures
            Self::forward(weights, past, token).0.len() == Self::groups(),
    ;
}

/// The KV of every position of `tokens`: the meaning of "cached KV is tied to its token prefix".
pub open spec fn kv_of<D: Model>(weights: D::Weights, tokens: Seq<Token>) -> Seq<Seq<D::Kv>>
    decreases tokens.len(),
{
    if tokens.len() == 0 {
        Seq::empty()
    } else {
        let past = kv_of::<D>(weights, tokens.drop_last());
        past.push(D::forward(weights, past, tokens.last()).0)
    }
}

/// The KV (by group) of the last position of `tokens`.
pub open spec fn last_kv_of<D: Model>(weights: D::Weights, tokens: Seq<Token>) -> Seq<D::Kv> {
    D::forward(weights, kv_of::<D>(weights, tokens.drop_last()), tokens.last()).0
}

/// The row of logits of the last position of `tokens`.
pub open spec fn logits_of<D: Model>(weights: D::Weights, tokens: Seq<Token>) -> D::Logits {
    D::forward(weights, kv_of::<D>(weights, tokens.drop_last()), tokens.last()).1
}

/// A sequence and its sampler's state.
pub struct Stream<S> {
    pub tokens: Seq<Token>,
    pub state: S,
}

/// The reference run of one request: prompt and sampler state after `outputs` tokens are drawn.
pub open spec fn reference<D: Model + Sampler>(
    weights: D::Weights,
    prompt: Seq<Token>,
    initial: D::State,
    outputs: nat,
) -> Stream<D::State>
    decreases outputs,
{
    if outputs == 0 {
        Stream { tokens: prompt, state: initial }
    } else {
        let before = reference::<D>(weights, prompt, initial, (outputs - 1) as nat);
        extend::<D>(before, logits_of::<D>(weights, before.tokens))
    }
}

} // verus!
