//! What pyvosti claims, and why it holds. No executable code.
//!
//! An auditor reads `trusted/` (definitions, assumptions, theorems) and nothing else;
//! `model/` is the engine as a state machine, `proofs/` is checked by Verus.
pub mod model;
pub mod proofs;
pub mod trusted;
