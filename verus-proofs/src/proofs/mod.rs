//! Why the theorems hold. Checked by Verus; no need to read.
pub mod blocks;
pub mod engine;
pub mod chains;
pub mod ownership;
pub mod steps_simple;
pub mod steps_table;
pub mod steps_plan;
