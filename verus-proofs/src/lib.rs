//! What pyvosti claims, and why it holds. No executable code.
//!
//! An auditor reads `trusted/` (definitions, assumptions, theorems) and nothing else;
//! `model/` is the engine as a state machine, `proofs/` is checked by Verus.
// What ghost code alone uses looks unused to the compiler proper, which never sees it.
#![allow(unused_imports)]
pub mod model;
#[cfg(feature = "probes")]
pub mod probes;
pub mod proofs;
pub mod trusted;
