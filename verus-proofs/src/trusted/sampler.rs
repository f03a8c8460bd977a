//! The sampler: a function of one row of logits, its own state and its own request's tokens.
use crate::trusted::*;
use vstd::prelude::*;

verus! {

/// `State` holds the sampling parameters (temperature, top-k, penalties, bias, ...), the seed and the
/// sample index; the output position is the number of tokens drawn. Sample 0 of n starts like n = 1.
pub trait Sampler: Model {
    type State;
    /// The next token, and the sampler's state after it. `history`: prompt and outputs so far.
    spec fn sample(logits: Self::Logits, s: Self::State, history: Seq<Token>) -> (Token, Self::State);
}

/// A sequence's tokens, and its sampler's state.
pub struct Stream<S> { pub tokens: Seq<Token>, pub state: S }

/// One token drawn from `logits` and appended.
pub open spec fn extend<D: Sampler>(s: Stream<D::State>, logits: D::Logits) -> Stream<D::State> {
    let (token, state) = D::sample(logits, s.state, s.tokens);
    Stream { tokens: s.tokens.push(token), state }
}

} // verus!
