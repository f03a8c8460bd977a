//! The pages an auditor reads, in this order.
pub mod deployment;
pub mod reference;
pub mod sampler;
pub mod kernel_contract;
pub mod row_functions;
pub mod runner;
pub mod theorem;
pub use self::{
    deployment::*, kernel_contract::*, reference::*, row_functions::*, runner::*, sampler::*,
};
