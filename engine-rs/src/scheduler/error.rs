//! Why a call is refused.
use vstd::prelude::*;

verus! {

/// Why a call was refused. Nothing has changed then.
#[derive(Clone, Copy, PartialEq, Eq, Structural)]
pub enum EngineError {
    /// The prompt has no token.
    EmptyPrompt,
    /// The prompt leaves no room for an output token within `max_model_len`.
    PromptTooLong,
    /// A token is not below `vocab_size`.
    TokenOutOfRange,
    /// No output token was asked for.
    NoOutput,
    /// Logits are wanted from a position that is not in the prompt.
    LogitsFrom,
    /// Prompt and output together need more blocks than a group has.
    NeverFits,
    /// All entries are taken.
    TooManySequences,
    /// No such sequence: never there, finished, or aborted.
    UnknownSequence,
    /// No plan is in flight.
    NoPlan,
    /// Plans are committed oldest first and cancelled newest first.
    WrongPlan,
    /// Not one token for each sampled sequence.
    TokenCount,
    /// Weights change only while no sequence is open.
    Busy,
}

} // verus!
