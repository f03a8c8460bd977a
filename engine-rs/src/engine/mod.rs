//! What Python may call: total functions over a scheduler that is always whole.
mod counts;
mod exec;
#[cfg(test)]
mod tests;

pub use counts::*;
pub use exec::*;
