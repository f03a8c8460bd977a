//! `CpuModel`: a model on the CPU, from raw tensors to logits.

use std::panic::{catch_unwind, AssertUnwindSafe};

use numpy::{
    IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2,
    PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyMemoryError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use vosti_cpu::batch::{Batch, Table};
use vosti_cpu::isa::Isa;
use vosti_cpu::kernels::linear::{read_row, scratch_blocks};
use vosti_cpu::kernels::rope::{Rope, RopeScaling};
use vosti_cpu::lanes::LANES;
use vosti_cpu::load::Tensor;
use vosti_cpu::matrix::{Matrix, UNIT};
use vosti_cpu::memory::{floats, with_capacity, zeroed, Error};
use vosti_cpu::model::Model;
use vosti_cpu::shelf::Shelf;

use crate::cpu_arguments::{parse_config, parse_isa, parse_rope, parse_tensor};

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<CpuModel>()?;
    m.add_function(wrap_pyfunction!(cpu_isas, m)?)?;
    m.add_function(wrap_pyfunction!(dequantize, m)?)?;
    m.add_function(wrap_pyfunction!(measure_cpu, m)?)?;
    m.add_function(wrap_pyfunction!(rotary_table, m)?)
}

/// Names of the instruction sets that this processor has, the fastest last.
#[pyfunction]
fn cpu_isas() -> Vec<&'static str> {
    Isa::available().iter().map(|isa| isa.name()).collect()
}

/// The f32 values that the CPU backend reads from a tensor: (dtype, shape, bytes) as for
/// `CpuModel` -> float32 [rows, columns]. `isa`: None for the fastest, or one of `cpu_isas()`.
#[pyfunction]
#[pyo3(signature = (tensor, isa = None))]
fn dequantize<'py>(
    py: Python<'py>,
    tensor: &Bound<'py, PyAny>,
    isa: Option<&str>,
) -> PyResult<Bound<'py, PyArray2<f32>>> {
    let (_, format, (rows, cols), raw) = parse_tensor("", tensor)?;
    let (isa, raw) = (parse_isa(isa)?, raw.as_slice()?);
    let read = || -> Result<Vec<f32>, Error> {
        let matrix = Matrix::new(&mut Shelf::default(), format, rows, cols, raw)?;
        let mut scratch = zeroed(scratch_blocks(cols))?;
        let mut row = zeroed(cols.next_multiple_of(UNIT) / LANES)?;
        let mut values = with_capacity(rows * cols)?;
        for i in 0..rows {
            read_row(isa, &matrix, i, &mut row, &mut scratch);
            values.extend_from_slice(&floats(&row)[..cols]);
        }
        Ok(values)
    };
    let values = py.detach(|| guarded(read))?.map_err(python_error)?;
    let flat: Bound<'py, PyArray1<f32>> = values.into_pyarray(py);
    flat.reshape([rows, cols])
}

/// Multiply-then-adds a second and bytes read from memory a second, of all threads; best of
/// `rounds`.
#[pyfunction]
fn measure_cpu(py: Python<'_>, threads: usize, rounds: usize) -> PyResult<(f64, f64)> {
    py.detach(|| guarded(|| vosti_cpu::measure::measure(Isa::best(), threads, rounds)))?
        .map_err(python_error)
}

/// Cosines and sines of positions 0 to `positions` - 1, each float32 [positions, head_dim / 2], with
/// arithmetic of our own: the same bits on every host. `rope` as in the configuration.
#[pyfunction]
#[allow(clippy::type_complexity)]
fn rotary_table<'py>(
    py: Python<'py>,
    head_dim: usize,
    positions: u32,
    rope: &Bound<'py, PyDict>,
) -> PyResult<(Bound<'py, PyArray2<f32>>, Bound<'py, PyArray2<f32>>)> {
    let (theta, scaling) = parse_rope(rope)?;
    if head_dim == 0 || !head_dim.is_multiple_of(2) || !(1.0..1e15).contains(&theta) {
        return Err(PyValueError::new_err(
            "head_dim must be even, and theta 1 to 1e15",
        ));
    }
    if positions > 1 << 20 {
        return Err(PyValueError::new_err("positions must be at most 2^20"));
    }
    if matches!(scaling, RopeScaling::Linear { factor } if factor < 0.125) {
        return Err(PyValueError::new_err(
            "a linear factor must be at least 0.125",
        ));
    }
    let (half, rows) = (head_dim / 2, positions as usize);
    let fill = || -> Result<(Vec<f32>, Vec<f32>), Error> {
        let rope = Rope::new(head_dim, theta, scaling)?;
        let (mut cos, mut sin) = (with_capacity(rows * half)?, with_capacity(rows * half)?);
        let mut angles = vec![0.0; head_dim];
        for position in 0..positions {
            rope.angles(position, &mut angles);
            cos.extend_from_slice(&angles[..half]);
            sin.extend_from_slice(&angles[half..]);
        }
        Ok((cos, sin))
    };
    let (cos, sin) = py.detach(|| guarded(fill))?.map_err(python_error)?;
    let table = |values: Vec<f32>| values.into_pyarray(py).reshape([rows, half]);
    Ok((table(cos)?, table(sin)?))
}

/// MemoryError where memory is missing, else ValueError.
pub(crate) fn python_error(error: Error) -> PyErr {
    let message = error.to_string();
    if error.is_memory() {
        PyMemoryError::new_err(message)
    } else {
        PyValueError::new_err(message)
    }
}

/// Runs `body`; a panic becomes a RuntimeError.
pub(crate) fn guarded<T>(body: impl FnOnce() -> T) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(body)).map_err(|panic| {
        let message = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("no message");
        PyRuntimeError::new_err(format!(
            "the CPU backend failed; please report it: {message}"
        ))
    })
}

/// A contiguous u32 array as a slice.
pub(crate) fn slice<'a>(name: &str, array: &'a PyReadonlyArray1<'_, u32>) -> PyResult<&'a [u32]> {
    array
        .as_slice()
        .map_err(|_| PyValueError::new_err(format!("{name} must be contiguous")))
}

/// A decoder of the Llama family on the CPU.
///
/// `config`: as `core_config` in pyvosti/runner.py makes it; ropes has dictionaries with theta and
/// scaling (None or HF's dictionary), layer_ropes and layer_groups name the kind and the group of
/// each layer, group_windows has the positions seen, or None, of each group. `tensors`: name ->
/// (dtype, shape, bytes of the rows as uint8); dtype one of F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q4_K, Q6_K; shape
/// (outputs, inputs) or (length,). Names: embed, norm, head (absent when tied), and
/// layers.{i}.{attn_norm, q, k, v, o, q_bias, k_bias, v_bias, q_norm, k_norm, ffn_norm, gate, up,
/// down}. `num_slots`: KV positions per layer group. `isa`: None for the fastest, or one of
/// `cpu_isas()`. Results depend neither on `threads` nor on `isa`.
#[pyclass(module = "pyvosti._core")]
struct CpuModel {
    model: Model,
}

#[pymethods]
impl CpuModel {
    #[new]
    #[pyo3(signature = (config, tensors, num_slots, block_size, threads, isa = None))]
    fn new(
        py: Python<'_>,
        config: &Bound<'_, PyDict>,
        tensors: &Bound<'_, PyDict>,
        num_slots: Vec<usize>,
        block_size: usize,
        threads: usize,
        isa: Option<&str>,
    ) -> PyResult<Self> {
        let config = parse_config(config)?;
        let isa = parse_isa(isa)?;
        let mut parsed = Vec::with_capacity(tensors.len());
        for (name, tensor) in tensors.iter() {
            parsed.push(parse_tensor(&name.extract::<String>()?, &tensor)?);
        }
        let mut raws = Vec::with_capacity(parsed.len());
        for (name, format, shape, raw) in &parsed {
            raws.push((name.as_str(), *format, *shape, raw.as_slice()?));
        }
        let mut used = std::collections::BTreeSet::new();
        let model = py.detach(|| {
            let find = |wanted: &str| {
                let index = raws.iter().position(|(name, ..)| *name == wanted)?;
                used.insert(index);
                let (_, format, (rows, cols), raw) = raws[index];
                Some(Tensor {
                    format,
                    rows,
                    cols,
                    raw,
                })
            };
            guarded(|| Model::new(config, find, &num_slots, block_size, threads, isa))
        })?;
        let model = model.map_err(python_error)?;
        if let Some(extra) = (0..raws.len()).find(|index| !used.contains(index)) {
            let name = raws[extra].0;
            return Err(PyValueError::new_err(format!(
                "tensor {name} is not used by this model"
            )));
        }
        Ok(Self { model })
    }

    #[getter]
    fn isa(&self) -> &'static str {
        self.model.isa().name()
    }

    #[getter]
    fn threads(&self) -> usize {
        self.model.threads()
    }

    /// One step. All arrays uint32: token_ids, positions [R]; slots: [R] per layer group;
    /// query_start [S + 1]; seq_lens, seats [S]; tables: [seats, blocks] per layer group;
    /// logits_rows [L], ascending. Returns float32 [L, vocab]. ValueError for a bad argument,
    /// MemoryError where there is none left for the step, with nothing written.
    #[allow(clippy::too_many_arguments)]
    fn forward<'py>(
        &mut self,
        py: Python<'py>,
        token_ids: PyReadonlyArray1<'py, u32>,
        positions: PyReadonlyArray1<'py, u32>,
        slots: Vec<PyReadonlyArray1<'py, u32>>,
        query_start: PyReadonlyArray1<'py, u32>,
        seq_lens: PyReadonlyArray1<'py, u32>,
        seats: PyReadonlyArray1<'py, u32>,
        tables: Vec<PyReadonlyArray2<'py, u32>>,
        logits_rows: PyReadonlyArray1<'py, u32>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let table = |table| -> PyResult<Table<'_>> {
            let table: &PyReadonlyArray2<'py, u32> = table;
            let items = table
                .as_slice()
                .map_err(|_| PyValueError::new_err("tables must be contiguous"))?;
            Ok(Table {
                items,
                rows: table.shape()[0],
                cols: table.shape()[1],
            })
        };
        let batch = Batch {
            token_ids: slice("token_ids", &token_ids)?,
            positions: slice("positions", &positions)?,
            slots: slots
                .iter()
                .map(|s| slice("slots", s))
                .collect::<PyResult<_>>()?,
            query_start: slice("query_start", &query_start)?,
            seq_lens: slice("seq_lens", &seq_lens)?,
            seats: slice("seats", &seats)?,
            tables: tables.iter().map(table).collect::<PyResult<_>>()?,
            logits_rows: slice("logits_rows", &logits_rows)?,
        };
        let step = batch.check(self.model.limits()).map_err(python_error)?;
        let (rows, vocab) = (step.logits_rows(), self.model.config().vocab);
        let mut logits = with_capacity(rows * vocab).map_err(python_error)?;
        logits.resize(rows * vocab, 0.0f32);
        let model = &mut self.model;
        py.detach(|| guarded(|| model.forward(&step, &mut logits)))?
            .map_err(python_error)?;
        let flat: Bound<'py, PyArray1<f32>> = logits.into_pyarray(py);
        flat.reshape([rows, vocab])
    }

    /// Overwrites the keys and values of one slot of a layer group, for tests that poison free
    /// pages: what no row sees must change no bit.
    fn fill_slot(&mut self, group: usize, slot: usize, value: f32) -> PyResult<()> {
        self.model
            .fill_slot(group, slot, value)
            .map_err(python_error)
    }
}
