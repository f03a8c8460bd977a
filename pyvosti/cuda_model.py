"""From a loaded model to a GPU runner."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from pyvosti.config import ModelConfig
from pyvosti.cuda_launch import device_arch
from pyvosti.cuda_runner import CudaRunner
from pyvosti.cuda_weights import file_fetch, fused_weights, rotary_tables
from pyvosti.errors import ConfigError
from pyvosti.limits import Limits
from pyvosti.triton_kernels.compile_all import CompileError, compile_all
from pyvosti.triton_kernels.launches import all_specs
from pyvosti.triton_kernels.schedule import SHARED_MEMORY, Shape, make_schedule
from pyvosti.weights import Tensor


def kernel_shape(config: ModelConfig, limits: Limits, dtype: str = "bfloat16") -> Shape:
    """What the schedule classes depend on."""
    groups, windows = config.layer_groups(limits.max_model_len)
    return Shape(
        layers=config.n_layers,
        hidden=config.hidden,
        heads=config.n_heads,
        kv_heads=config.n_kv_heads,
        head_dim=config.head_dim,
        ffn=config.ffn,
        vocab=config.vocab,
        rms_eps=config.rms_eps,
        qkv_bias=config.qkv_bias,
        qk_norm=config.qk_norm,
        layer_groups=tuple(groups),
        windows=tuple(window or 0 for window in windows),
        page=limits.block_size,
        max_model_len=limits.max_model_len,
        dtype=dtype,
    )


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
    that the kernels know, when a size is not one that they cover, or when memory is short.
    """
    if not torch.cuda.is_available():
        raise ConfigError("backend 'cuda' needs an NVIDIA GPU, and PyTorch sees none")
    arch = device_arch()
    if arch not in SHARED_MEMORY:
        raise ConfigError(f"the GPU kernels know sm_80, sm_90 and sm_100, not sm_{arch}")
    shape = kernel_shape(config, limits)
    groups = len(shape.windows)
    try:
        schedule = make_schedule(shape, arch, strict)
        compile_all(all_specs(schedule), arch)
        weights = fused_weights(shape, file_fetch(tensors), config.tie_embeddings)
        runner = CudaRunner(
            schedule,
            weights,
            rotary_tables(shape, config.rope_theta, config.rope_scaling),
            num_blocks=None if limits.num_blocks is None else [limits.num_blocks] * groups,
            max_seqs=limits.max_seqs,
            max_batched_tokens=limits.max_batched_tokens,
            memory_share=limits.gpu_memory_utilization,
            graphs=graphs,
        )
        runner.capture()
        return runner
    except (ValueError, MemoryError, CompileError) as error:
        raise ConfigError(str(error)) from None
    except torch.cuda.OutOfMemoryError:
        raise ConfigError("the model's weights do not fit in the GPU's free memory") from None
