"""From a loaded model to a GPU runner."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from pyvosti.certified import require
from pyvosti.config import ModelConfig
from pyvosti.cuda_launch import device_arch
from pyvosti.cuda_runner import CudaRunner
from pyvosti.cuda_weights import file_fetch, fused_weights, rotary_tables
from pyvosti.errors import ConfigError
from pyvosti.kernel_plan import kernel_schedule
from pyvosti.limits import Limits
from pyvosti.triton_kernels.compile_all import CompileError, compile_all
from pyvosti.triton_kernels.launches import all_specs
from pyvosti.weights import Tensor


def make_cuda_runner(
    config: ModelConfig,
    tensors: Mapping[str, Tensor],
    limits: Limits,
    *,
    strict: bool = False,
    graphs: bool = True,
) -> CudaRunner:
    """Loads a model onto the current CUDA device, in bf16.

    `strict` pins one member of each schedule class. Raises ConfigError when there is no device
    that the kernels know, when a size is not one that they cover, when a kernel is not certified,
    or when memory is short.
    """
    if not torch.cuda.is_available():
        raise ConfigError("backend 'cuda' needs an NVIDIA GPU, and PyTorch sees none")
    schedule = kernel_schedule(config, limits, device_arch(), strict)
    shape = schedule.shape
    groups = len(shape.windows)
    try:
        compile_all(all_specs(schedule), schedule.arch)
        against = require(schedule)
        weights = fused_weights(shape, file_fetch(tensors), config.tie_embeddings)
        runner = CudaRunner(
            schedule,
            weights,
            rotary_tables(shape, config.ropes),
            num_blocks=None if limits.num_blocks is None else [limits.num_blocks] * groups,
            max_seqs=limits.max_seqs,
            max_batched_tokens=limits.max_batched_tokens,
            memory_share=limits.gpu_memory_utilization,
            graphs=graphs,
        )
        runner.uncertified = against
        runner.capture()
        return runner
    except (ValueError, MemoryError, CompileError) as error:
        raise ConfigError(str(error)) from None
    except torch.cuda.OutOfMemoryError:
        raise ConfigError("the model's weights do not fit in the GPU's free memory") from None
