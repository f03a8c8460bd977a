//! The sampler's functions of rows of logits.

use numpy::{
    IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2,
    PyUntypedArrayMethods,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use vosti_cpu::float_env::FloatEnv;
use vosti_cpu::isa::Isa;
use vosti_cpu::memory::with_capacity;
use vosti_cpu::sampler::{self, Params};

use crate::cpu::{guarded, python_error, slice};

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(log_softmax, m)?)?;
    m.add_function(wrap_pyfunction!(argmax, m)?)?;
    m.add_function(wrap_pyfunction!(sample, m)?)
}

/// The items and the row length of a matrix of logits.
fn rows<'a>(logits: &'a PyReadonlyArray2<'_, f32>) -> PyResult<(&'a [f32], usize)> {
    let width = logits.shape()[1];
    if width == 0 || width > 1 << 24 {
        return Err(PyValueError::new_err(
            "a row needs between 1 and 2^24 logits",
        ));
    }
    let items = logits
        .as_slice()
        .map_err(|_| PyValueError::new_err("logits must be contiguous"))?;
    Ok((items, width))
}

/// Logarithms of the probabilities of each row: float32 [N, V] -> float32 [N, V]. A NaN stays NaN
/// and takes no part.
#[pyfunction]
fn log_softmax<'py>(
    py: Python<'py>,
    logits: PyReadonlyArray2<'py, f32>,
) -> PyResult<Bound<'py, PyArray2<f32>>> {
    let (items, width) = rows(&logits)?;
    let mut out = with_capacity(items.len()).map_err(python_error)?;
    out.resize(items.len(), 0.0f32);
    py.detach(|| {
        guarded(|| {
            let _env = FloatEnv::enter();
            for (row, out) in items.chunks_exact(width).zip(out.chunks_exact_mut(width)) {
                sampler::log_softmax(Isa::best(), row, out);
            }
        })
    })?;
    let flat: Bound<'py, PyArray1<f32>> = out.into_pyarray(py);
    flat.reshape([items.len() / width, width])
}

/// Id of the largest logit of each row: float32 [N, V] -> uint32 [N]. Ties: the lowest id; a NaN
/// never wins.
#[pyfunction]
fn argmax<'py>(
    py: Python<'py>,
    logits: PyReadonlyArray2<'py, f32>,
) -> PyResult<Bound<'py, PyArray1<u32>>> {
    let (items, width) = rows(&logits)?;
    let mut out = with_capacity(items.len() / width).map_err(python_error)?;
    py.detach(|| {
        guarded(|| {
            out.extend(
                items
                    .chunks_exact(width)
                    .map(|r| sampler::argmax(Isa::best(), r)),
            )
        })
    })?;
    Ok(out.into_pyarray(py))
}

/// Draws a token id from one row of logits (float32 [V]). `prompt`, `output`: uint32 ids so far.
/// The noise is keyed by (seed, sample_index, position, token id). temperature 0: the largest
/// logit; top_k 0, top_p 1, min_p 0, repetition_penalty 1, other penalties 0: off. ValueError for
/// a parameter out of its range.
#[pyfunction]
#[pyo3(signature = (logits, *, seed, sample_index, position, temperature, top_k, top_p, min_p,
    repetition_penalty, presence_penalty, frequency_penalty, logit_bias, prompt, output))]
#[allow(clippy::too_many_arguments)]
fn sample(
    py: Python<'_>,
    logits: PyReadonlyArray1<'_, f32>,
    seed: u64,
    sample_index: u32,
    position: u32,
    temperature: f32,
    top_k: usize,
    top_p: f32,
    min_p: f32,
    repetition_penalty: f32,
    presence_penalty: f32,
    frequency_penalty: f32,
    logit_bias: Vec<(u32, f32)>,
    prompt: PyReadonlyArray1<'_, u32>,
    output: PyReadonlyArray1<'_, u32>,
) -> PyResult<u32> {
    let row = logits
        .as_slice()
        .map_err(|_| PyValueError::new_err("logits must be contiguous"))?;
    let (prompt, output) = (slice("prompt", &prompt)?, slice("output", &output)?);
    let params = Params {
        seed,
        sample_index,
        position,
        temperature,
        top_k,
        top_p,
        min_p,
        repetition_penalty,
        presence_penalty,
        frequency_penalty,
        logit_bias,
    };
    py.detach(|| guarded(|| sampler::sample(Isa::best(), row, &params, prompt, output)))?
        .map_err(python_error)
}
