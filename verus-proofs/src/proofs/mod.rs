//! Why the theorems hold. Checked by Verus; no need to read.
pub mod accounting;
pub mod blocks;
pub mod engine;
pub mod execute;
pub mod executions;
pub mod isolation;
pub mod kv;
pub mod chains;
pub mod ownership;
pub mod steps_simple;
pub mod steps_table;
pub mod steps_plan;
pub mod streams;
pub mod system_commit;
pub mod system_engine;
pub mod system_execute;
pub mod system_inv;
