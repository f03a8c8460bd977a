//! Why the theorems hold. Checked by Verus; no need to read.
pub mod blocks;
pub mod chains;
pub mod ownership;
