//! What `CpuModel` is given: configuration, tensors, instruction set.

use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use vosti_cpu::config::Config;
use vosti_cpu::isa::Isa;
use vosti_cpu::kernels::rope::RopeScaling;
use vosti_cpu::matrix::Format;

use crate::cpu::python_error;

fn item<'py, T: FromPyObjectOwned<'py>>(dict: &Bound<'py, PyDict>, key: &str) -> PyResult<T> {
    let value = dict
        .get_item(key)?
        .ok_or_else(|| PyValueError::new_err(format!("config has no {key:?}")))?;
    value.extract::<T>().map_err(|e| {
        let e: PyErr = Into::<PyErr>::into(e);
        PyValueError::new_err(format!("config[{key:?}]: {e}"))
    })
}

/// HF's dictionary; the kind is under `rope_type` (or `type` in older files).
fn rope_scaling(rope: &Bound<'_, PyDict>) -> PyResult<RopeScaling> {
    let Some(scaling) = rope.get_item("scaling")?.filter(|value| !value.is_none()) else {
        return Ok(RopeScaling::None);
    };
    let scaling: Bound<'_, PyDict> = scaling
        .cast_into()
        .map_err(|_| PyValueError::new_err("the scaling of a rope must be None or a dictionary"))?;
    let key = if scaling.contains("rope_type")? {
        "rope_type"
    } else {
        "type"
    };
    let number = |name: &str| -> PyResult<f64> {
        let value: f64 = item(&scaling, name)?;
        if value.is_finite() && value > 0.0 {
            Ok(value)
        } else {
            Err(PyValueError::new_err(format!(
                "rope_scaling: {name} must be positive"
            )))
        }
    };
    match item::<String>(&scaling, key)?.as_str() {
        "default" => Ok(RopeScaling::None),
        "linear" => Ok(RopeScaling::Linear {
            factor: number("factor")?,
        }),
        "llama3" => Ok(RopeScaling::Llama3 {
            factor: number("factor")?,
            low_freq: number("low_freq_factor")?,
            high_freq: number("high_freq_factor")?,
            original_positions: number("original_max_position_embeddings")?,
        }),
        kind => Err(PyValueError::new_err(format!(
            "rope_scaling of type {kind:?} is not supported; default, linear and llama3 are"
        ))),
    }
}

pub fn parse_isa(name: Option<&str>) -> PyResult<Isa> {
    name.map_or(Ok(Isa::best()), |name| {
        Isa::named(name).map_err(PyValueError::new_err)
    })
}

/// Of each kind of rotary embedding its base and scaling.
fn ropes(config: &Bound<'_, PyDict>) -> PyResult<Vec<(f64, RopeScaling)>> {
    let kinds: Vec<Bound<'_, PyDict>> = item(config, "ropes")?;
    kinds.iter().map(parse_rope).collect()
}

pub fn parse_rope(kind: &Bound<'_, PyDict>) -> PyResult<(f64, RopeScaling)> {
    Ok((item(kind, "theta")?, rope_scaling(kind)?))
}

pub fn parse_config(config: &Bound<'_, PyDict>) -> PyResult<Config> {
    Ok(Config {
        n_layers: item(config, "n_layers")?,
        hidden: item(config, "hidden")?,
        n_heads: item(config, "n_heads")?,
        n_kv_heads: item(config, "n_kv_heads")?,
        head_dim: item(config, "head_dim")?,
        ffn: item(config, "ffn")?,
        vocab: item(config, "vocab")?,
        rms_eps: item(config, "rms_eps")?,
        ropes: ropes(config)?,
        layer_ropes: item(config, "layer_ropes")?,
        qk_norm: item(config, "qk_norm")?,
        sandwich_norms: item(config, "sandwich_norms")?,
        gelu: item(config, "gelu")?,
        attention_scale: item(config, "attention_scale")?,
        embed_scale: item(config, "embed_scale")?,
        tie_embeddings: item(config, "tie_embeddings")?,
        layer_groups: item(config, "layer_groups")?,
        group_windows: item(config, "group_windows")?,
    })
}

/// Name, format, shape (a vector has one row) and bytes.
pub type RawTensor<'py> = (String, Format, (usize, usize), PyReadonlyArray1<'py, u8>);

pub fn parse_tensor<'py>(name: &str, tensor: &Bound<'py, PyAny>) -> PyResult<RawTensor<'py>> {
    let parse = || -> PyResult<RawTensor<'py>> {
        let (dtype, shape, raw): (String, Bound<'py, PyTuple>, PyReadonlyArray1<'py, u8>) =
            tensor.extract()?;
        let shape: Vec<usize> = shape.extract()?;
        let (rows, cols) = match shape[..] {
            [cols] => (1, cols),
            [rows, cols] => (rows, cols),
            _ => {
                return Err(PyValueError::new_err(
                    "the shape must have one or two numbers",
                ))
            }
        };
        raw.as_slice()
            .map_err(|_| PyValueError::new_err("the bytes must be contiguous"))?;
        let format = Format::named(&dtype).map_err(python_error)?;
        Ok((name.to_owned(), format, (rows, cols), raw))
    };
    parse().map_err(|e| PyValueError::new_err(format!("tensor {name}: {e}")))
}
