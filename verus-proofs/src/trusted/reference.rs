//! The meaning of a request: what a model that computes one token after the other, alone, would say.
use crate::trusted::*;
use vstd::prelude::*;

verus! {

/// One model as a mathematical function; which one it is does not matter to the engine.
/// `Kv` is what one position leaves in one group of layers for later positions to read.
pub trait Model: Sized {
    type Weights; type Kv; type Logits;
    /// By group of layers (each has its own block tables): how far back a row sees, as in `Shape`.
    spec fn windows() -> Seq<nat>;
    /// One position: from the KV of all earlier ones (`past[position][group]`) and its token to its own
    /// KV (by group) and its row of logits.
    spec fn forward(w: Self::Weights, past: Seq<Seq<Self::Kv>>, t: Token) -> (Seq<Self::Kv>, Self::Logits);
    /// Obligation: a position leaves KV in every group.
    proof fn forward_fills_groups(w: Self::Weights, past: Seq<Seq<Self::Kv>>, t: Token)
        ensures Self::forward(w, past, t).0.len() == Self::windows().len();
    /// Obligation: what a row does not see does not matter.
    proof fn forward_sees_windows(
        w: Self::Weights, past: Seq<Seq<Self::Kv>>, other: Seq<Seq<Self::Kv>>, t: Token)
        requires same_seen(Self::windows(), past, other),
        ensures Self::forward(w, past, t) == Self::forward(w, other, t);
}

/// Two pasts that a row cannot tell apart.
pub open spec fn same_seen<Kv>(windows: Seq<nat>, past: Seq<Seq<Kv>>, other: Seq<Seq<Kv>>) -> bool {
    past.len() == other.len() && forall|g: int, p: int| 0 <= g < windows.len()
        && first_seen(windows[g], past.len() as int) <= p < past.len()
        ==> #[trigger] past[p][g] == other[p][g]
}

/// The KV of every position of `tokens`: the meaning of "cached KV is tied to its token prefix".
pub open spec fn kv_of<D: Model>(w: D::Weights, tokens: Seq<Token>) -> Seq<Seq<D::Kv>>
    decreases tokens.len(),
{
    if tokens.len() == 0 { Seq::empty() } else {
        let past = kv_of::<D>(w, tokens.drop_last());
        past.push(D::forward(w, past, tokens.last()).0)
    }
}

/// The KV (by group) of the last position of `tokens`.
pub open spec fn last_kv_of<D: Model>(w: D::Weights, tokens: Seq<Token>) -> Seq<D::Kv> {
    D::forward(w, kv_of::<D>(w, tokens.drop_last()), tokens.last()).0
}

/// The row of logits of the last position of `tokens`.
pub open spec fn logits_of<D: Model>(w: D::Weights, tokens: Seq<Token>) -> D::Logits {
    D::forward(w, kv_of::<D>(w, tokens.drop_last()), tokens.last()).1
}

/// The reference run of one request: its tokens and sampler state after `outputs` draws.
pub open spec fn reference<D: Sampler>(
    w: D::Weights, prompt: Seq<Token>, initial: D::State, outputs: nat,
) -> Stream<D::State>
    decreases outputs,
{
    if outputs == 0 { Stream { tokens: prompt, state: initial } } else {
        let before = reference::<D>(w, prompt, initial, (outputs - 1) as nat);
        extend::<D>(before, logits_of::<D>(w, before.tokens))
    }
}

} // verus!
