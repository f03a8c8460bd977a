//! `pyvosti._core`: the bindings. Each module converts between numpy and Rust and adds nothing else.
use pyo3::prelude::*;

mod cpu;
mod cpu_arguments;
mod engine;
mod sampler;

#[pymodule]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    cpu::register(m)?;
    engine::register(m)?;
    sampler::register(m)?;
    Ok(())
}
