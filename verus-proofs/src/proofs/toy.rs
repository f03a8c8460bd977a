//! A toy deployment: the KV of a position is its token prefix itself, read from the position before
//! it, through a window of two; so are the logits; the sampler counts. It keeps every obligation of
//! the traits.
use crate::proofs::ideal::*;
use crate::trusted::*;
use vstd::prelude::*;

verus! {

pub struct Toy;

/// The prefix at the position before, and this token.
pub open spec fn toy_prefix(past: Seq<Seq<Seq<Token>>>, token: Token) -> Seq<Token> {
    if past.len() == 0 {
        seq![token]
    } else {
        past[past.len() - 1][0].push(token)
    }
}

impl Model for Toy {
    type Weights = int;

    type Kv = Seq<Token>;

    type Logits = (int, Seq<Token>);

    open spec fn windows() -> Seq<nat> {
        seq![2nat]
    }

    open spec fn forward(weights: int, past: Seq<Seq<Seq<Token>>>, token: Token) -> (
        Seq<Seq<Token>>,
        (int, Seq<Token>),
    ) {
        (seq![toy_prefix(past, token)], (weights, toy_prefix(past, token)))
    }

    proof fn forward_fills_groups(weights: int, past: Seq<Seq<Seq<Token>>>, token: Token) {
    }

    proof fn forward_sees_windows(
        weights: int,
        past: Seq<Seq<Seq<Token>>>,
        other: Seq<Seq<Seq<Token>>>,
        token: Token,
    ) {
    }
}

impl Sampler for Toy {
    type State = int;

    open spec fn sample(logits: (int, Seq<Token>), state: int, history: Seq<Token>) -> (
        Token,
        int,
    ) {
        (logits.0 + logits.1.len() + state, state + 1)
    }
}

impl Kernels for Toy {
    open spec fn executes(x: Execution<Toy>) -> bool {
        x == ideal::<Toy>(x.weights, x.shape, x.plan, x.padding, x.before)
    }

    proof fn contract(x: Execution<Toy>) {
        lemma_ideal::<Toy>(x.weights, x.shape, x.plan, x.padding, x.before);
    }
}

/// Cached KV of the toy *is* the token prefix.
pub proof fn lemma_toy_kv(weights: int, tokens: Seq<Token>)
    requires
        tokens.len() > 0,
    ensures
        last_kv_of::<Toy>(weights, tokens) == seq![tokens],
    decreases tokens.len(),
{
    let before = tokens.drop_last();
    let past = kv_of::<Toy>(weights, before);
    if before.len() > 0 {
        lemma_toy_kv(weights, before);
    }
    assert(toy_prefix(past, tokens.last()) =~= tokens);
}

} // verus!
