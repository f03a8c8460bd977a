//! What Python may call: total functions over a scheduler that is always whole.
mod exec;
#[cfg(test)]
mod tests;

pub use exec::*;
