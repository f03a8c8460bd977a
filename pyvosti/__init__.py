"""Deterministic LLM inference with a machine-checked proof.

    import pyvosti
    llm = pyvosti.LLM("smollm2")
    print(llm.generate("The capital of France is")[0].outputs[0].text)

Names are imported when they are first used, so that `import pyvosti` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyvosti.errors import ConfigError, ModelError, PyvostiError, RequestError
    from pyvosti.llm import LLM
    from pyvosti.outputs import CompletionOutput, Logprob, RequestOutput, StreamChunk
    from pyvosti.params import SamplingParams

__all__ = [
    "LLM",
    "CompletionOutput",
    "ConfigError",
    "Logprob",
    "ModelError",
    "PyvostiError",
    "RequestError",
    "RequestOutput",
    "SamplingParams",
    "StreamChunk",
]

_HOME = {
    "LLM": "llm",
    "CompletionOutput": "outputs",
    "ConfigError": "errors",
    "Logprob": "outputs",
    "ModelError": "errors",
    "PyvostiError": "errors",
    "RequestError": "errors",
    "RequestOutput": "outputs",
    "SamplingParams": "params",
    "StreamChunk": "outputs",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("pyvosti._core").__version__
    if name not in _HOME:
        raise AttributeError(f"module 'pyvosti' has no attribute {name!r}")
    return getattr(import_module(f"pyvosti.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
