//! Row kernels of the CPU backend.
