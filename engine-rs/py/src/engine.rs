//! `Engine` and `Plan`: the verified engine, its errors as exceptions, its arrays as numpy's.
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use vosti_engine::engine;
use vosti_engine::{ConfigError, EngineError, Outcome};

type Array<T> = Py<PyArray1<T>>;

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<Engine>()?;
    m.add_class::<Plan>()
}

fn config_error(e: ConfigError) -> PyErr {
    PyValueError::new_err(match e {
        ConfigError::Groups => "num_blocks must name 1 to 65,536 layer groups",
        ConfigError::BlockSize => "block_size must be at least 1",
        ConfigError::MaxSeqs => "max_seqs must be at least 1",
        ConfigError::MaxBatchedTokens => "max_batched_tokens must be at least 1",
        ConfigError::MaxModelLen => "max_model_len must be at least 2 and below 2,147,483,648",
        ConfigError::VocabSize => "vocab_size must be at least 1",
        ConfigError::NumBlocks => {
            "each layer group needs at least 1 block, and num_blocks * block_size below 2^32 - 1"
        }
        ConfigError::TableSize => {
            "block tables of max_seqs rows for max_model_len tokens are too large: lower max_seqs \
             or max_model_len, or raise block_size"
        }
    })
}

fn engine_error(e: EngineError) -> PyErr {
    let value = |text: &'static str| PyValueError::new_err(text);
    let state = |text: &'static str| PyRuntimeError::new_err(text);
    match e {
        EngineError::EmptyPrompt => value("the prompt has no token"),
        EngineError::PromptTooLong => value("the prompt must be shorter than max_model_len"),
        EngineError::TokenOutOfRange => value("token ids must be below vocab_size"),
        EngineError::NoOutput => value("max_tokens must be at least 1"),
        EngineError::LogitsFrom => value("logits_from must be a position of the prompt"),
        EngineError::NeverFits => value(
            "prompt and output together need more blocks than the KV cache has: lower max_tokens \
             or raise num_blocks",
        ),
        EngineError::TooManySequences => state("too many sequences: finish or abort some first"),
        EngineError::UnknownSequence => state("no such sequence: it has finished or was aborted"),
        EngineError::NoPlan => state("no plan is in flight: call schedule() first"),
        EngineError::WrongPlan => {
            state("plans are committed oldest first and cancelled newest first")
        }
        EngineError::TokenCount => value("commit needs one token for each of plan.sample_seqs"),
        EngineError::Busy => {
            state("weights change only while no sequence is open: finish or abort all first")
        }
    }
}

/// Scheduler and paged, prefix-sharing KV cache.
#[pyclass(module = "pyvosti._core")]
pub struct Engine {
    /// `None` only while a call runs, or after one panicked: the engine is taken by value.
    engine: Option<engine::Engine>,
}

impl Engine {
    fn lost() -> PyErr {
        PyRuntimeError::new_err("the engine was lost to an internal error: make a new one")
    }

    fn with<T>(&mut self, call: impl FnOnce(engine::Engine) -> (engine::Engine, T)) -> PyResult<T> {
        let (engine, out) = call(self.engine.take().ok_or_else(Self::lost)?);
        self.engine = Some(engine);
        Ok(out)
    }

    fn get(&self) -> PyResult<&engine::Engine> {
        self.engine.as_ref().ok_or_else(Self::lost)
    }
}

#[pymethods]
impl Engine {
    #[new]
    #[pyo3(signature = (num_blocks, block_size, max_seqs, max_batched_tokens, max_model_len,
        vocab_size, prefix_cache = true, windows = None))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        num_blocks: Vec<u32>,
        block_size: u32,
        max_seqs: u32,
        max_batched_tokens: u32,
        max_model_len: u32,
        vocab_size: u32,
        prefix_cache: bool,
        windows: Option<Vec<u32>>,
    ) -> PyResult<Self> {
        let windows = windows.unwrap_or_else(|| vec![0; num_blocks.len()]);
        if windows.len() != num_blocks.len() {
            return Err(PyValueError::new_err(
                "windows must have one entry for each of num_blocks",
            ));
        }
        engine::Engine::new(
            num_blocks,
            windows,
            block_size,
            max_seqs,
            max_batched_tokens,
            max_model_len,
            vocab_size,
            prefix_cache,
        )
        .map(|engine| Engine {
            engine: Some(engine),
        })
        .map_err(config_error)
    }

    #[pyo3(signature = (prompt, max_tokens, stop_token_ids, logits_from, salt = 0))]
    fn add_request(
        &mut self,
        prompt: PyReadonlyArray1<'_, u32>,
        max_tokens: u32,
        stop_token_ids: PyReadonlyArray1<'_, u32>,
        logits_from: u32,
        salt: u64,
    ) -> PyResult<u64> {
        let prompt = prompt.as_array().to_vec();
        let stop = stop_token_ids.as_array().to_vec();
        self.with(|e| e.add(prompt, max_tokens, stop, logits_from, salt))?
            .map_err(engine_error)
    }

    fn fork(&mut self, parent_id: u64) -> PyResult<u64> {
        self.with(|e| e.fork(parent_id))?.map_err(engine_error)
    }

    fn schedule(&mut self, py: Python<'_>) -> PyResult<Option<Plan>> {
        Ok(self.with(|e| e.schedule())?.map(|plan| Plan::new(py, plan)))
    }

    fn commit<'py>(
        &mut self,
        py: Python<'py>,
        plan_id: u64,
        tokens: PyReadonlyArray1<'py, u32>,
    ) -> PyResult<Bound<'py, PyArray1<u8>>> {
        let tokens = tokens.as_array().to_vec();
        let outcomes = self
            .with(|e| e.commit(plan_id, tokens))?
            .map_err(engine_error)?;
        let codes: Vec<u8> = outcomes.iter().map(|outcome| code(*outcome)).collect();
        Ok(codes.into_pyarray(py))
    }

    fn cancel(&mut self, plan_id: u64) -> PyResult<()> {
        self.with(|e| e.cancel(plan_id))?.map_err(engine_error)
    }

    fn abort(&mut self, seq_id: u64) -> PyResult<bool> {
        self.with(|e| e.abort(seq_id))
    }

    fn reset_cache(&mut self) -> PyResult<()> {
        self.with(|e| (e.reset_cache(), ()))
    }

    fn load_weights(&mut self) -> PyResult<()> {
        self.with(|e| e.load_weights())?.map_err(engine_error)
    }

    fn plans<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<u64>>> {
        Ok(self.get()?.plan_ids().into_pyarray(py))
    }

    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let engine = self.get()?;
        let counts = engine.counts();
        let (mut free, mut cached, mut referenced) = (0u64, 0u64, 0u64);
        for blocks in (0..engine.groups()).filter_map(|g| engine.block_counts(g)) {
            free += u64::from(blocks.free);
            cached += u64::from(blocks.cached);
            referenced += u64::from(blocks.referenced);
        }
        let stats = PyDict::new(py);
        stats.set_item("waiting", counts.waiting)?;
        stats.set_item("running", counts.running)?;
        stats.set_item("plans", counts.plans)?;
        stats.set_item("preemptions", counts.preemptions)?;
        stats.set_item("hits", counts.hits)?;
        stats.set_item("free_blocks", free)?;
        stats.set_item("cached_blocks", cached)?;
        stats.set_item("referenced_blocks", referenced)?;
        Ok(stats)
    }
}

fn code(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Running => 0,
        Outcome::Stop => 1,
        Outcome::Length => 2,
        Outcome::Dropped => 3,
    }
}

/// One step: what to compute, where its KV lies, which rows are sampled.
#[pyclass(module = "pyvosti._core", frozen, get_all)]
pub struct Plan {
    plan_id: u64,
    token_ids: Array<u32>,
    positions: Array<u32>,
    slots: Vec<Array<u32>>,
    query_start: Array<u32>,
    seq_lens: Array<u32>,
    seats: Array<u32>,
    seq_ids: Array<u64>,
    logits_rows: Array<u32>,
    sample_seqs: Array<u32>,
    table_updates: Vec<(Array<u32>, Array<u32>, Array<u32>)>,
}

impl Plan {
    fn new(py: Python<'_>, plan: vosti_engine::Plan) -> Self {
        let array = |v: Vec<u32>| v.into_pyarray(py).unbind();
        Plan {
            plan_id: plan.id,
            token_ids: array(plan.token_ids),
            positions: array(plan.positions),
            slots: plan.slots.into_iter().map(array).collect(),
            query_start: array(plan.query_start),
            seq_lens: array(plan.seq_lens),
            seats: array(plan.seats),
            seq_ids: plan.seq_ids.into_pyarray(py).unbind(),
            logits_rows: array(plan.logits_rows),
            sample_seqs: array(plan.sample_seqs),
            table_updates: plan
                .updates
                .into_iter()
                .map(|u| (array(u.seats), array(u.indices), array(u.blocks)))
                .collect(),
        }
    }
}
