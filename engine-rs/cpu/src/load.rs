//! From named tensors to the weights of a model, every shape checked.

use crate::config::Config;
use crate::isa::Isa;
use crate::kernels::linear;
use crate::lanes::Block;
use crate::matrix::{Format, Matrix};
use crate::memory::{zeroed, Error};
use crate::model::{stride, Layer};
use crate::shelf::Shelf;

/// A tensor as it lies in a file; a vector has one row.
pub struct Tensor<'a> {
    pub format: Format,
    pub rows: usize,
    pub cols: usize,
    pub raw: &'a [u8],
}

/// Gives tensors out by name, with their shape checked.
pub(crate) struct Loader<F> {
    pub find: F,
    pub isa: Isa,
    pub shelf: Shelf,
}

impl<'a, F: FnMut(&str) -> Option<Tensor<'a>>> Loader<F> {
    pub fn matrix(&mut self, name: &str, rows: usize, cols: usize) -> Result<Matrix, Error> {
        let Some(t) = (self.find)(name) else {
            return Err(Error::new(format!("tensor {name} is missing")));
        };
        if (t.rows, t.cols) != (rows, cols) {
            return Err(Error::new(format!(
                "tensor {name} has shape ({}, {}), the model needs ({rows}, {cols})",
                t.rows, t.cols
            )));
        }
        Matrix::new(&mut self.shelf, t.format, rows, cols, t.raw)
            .map_err(|e| e.about(&format!("tensor {name}")))
    }

    pub fn vector(&mut self, name: &str, len: usize) -> Result<Vec<Block>, Error> {
        let matrix = self.matrix(name, 1, len)?;
        let mut out = zeroed(stride(len) / 16)?;
        let mut scratch = zeroed(linear::scratch_blocks(len))?;
        linear::read_row(self.isa, &matrix, 0, &mut out, &mut scratch);
        Ok(out)
    }

    fn optional(&mut self, name: &str, len: usize) -> Result<Option<Vec<Block>>, Error> {
        match (self.find)(name) {
            Some(_) => self.vector(name, len).map(Some),
            None => Ok(None),
        }
    }

    pub fn layer(&mut self, c: &Config, i: usize) -> Result<Layer, Error> {
        let (q, kv) = (c.n_heads * c.head_dim, c.n_kv_heads * c.head_dim);
        let name = |part: &str| format!("layers.{i}.{part}");
        let head_norm = |loader: &mut Self, part: &str| {
            c.qk_norm
                .then(|| loader.vector(&name(part), c.head_dim))
                .transpose()
        };
        let out_norm = |loader: &mut Self, part: &str| {
            c.sandwich_norms
                .then(|| loader.vector(&name(part), c.hidden))
                .transpose()
        };
        Ok(Layer {
            group: c.layer_groups[i],
            rope: c.layer_ropes[i],
            attn_norm: self.vector(&name("attn_norm"), c.hidden)?,
            q: self.matrix(&name("q"), q, c.hidden)?,
            k: self.matrix(&name("k"), kv, c.hidden)?,
            v: self.matrix(&name("v"), kv, c.hidden)?,
            o: self.matrix(&name("o"), c.hidden, q)?,
            bias: [
                self.optional(&name("q_bias"), q)?,
                self.optional(&name("k_bias"), kv)?,
                self.optional(&name("v_bias"), kv)?,
            ],
            q_norm: head_norm(self, "q_norm")?,
            k_norm: head_norm(self, "k_norm")?,
            attn_out_norm: out_norm(self, "attn_out_norm")?,
            ffn_norm: self.vector(&name("ffn_norm"), c.hidden)?,
            ffn_out_norm: out_norm(self, "ffn_out_norm")?,
            gate: self.matrix(&name("gate"), c.ffn, c.hidden)?,
            up: self.matrix(&name("up"), c.ffn, c.hidden)?,
            down: self.matrix(&name("down"), c.hidden, c.ffn)?,
        })
    }
}
