//! The row kernels. Each is a function of the weights, one row and what that row sees of the KV;
//! the sums run over sixteen lanes (element k in lane k mod 16, ascending) and end in the tree of
//! `Lanes::sum`. Every stored NaN is the canonical one.

pub mod attention;
mod block;
pub mod geglu;
pub mod linear;
pub mod norm;
pub mod rope;
pub mod swiglu;
pub(crate) mod weights;
