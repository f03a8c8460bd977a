"""Hands kernels to the interpreter's process and reads what it found."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Any

from pyvosti.analyzer.replay.interpret import Task
from pyvosti.errors import ConfigError


def replayed(tasks: Sequence[Task]) -> Iterator[dict[str, Any]]:
    """One result a task, in order; a kernel that ends the process (a wild address) is no replay.

    Raises ConfigError where PyTorch, whose tensors the interpreter takes, is not installed.
    """
    if not find_spec("torch"):
        raise ConfigError("replaying needs PyTorch; run: pip install 'pyvosti[cuda]'")
    waiting = list(tasks)
    while waiting:
        with _process() as process:
            assert process.stdin is not None and process.stdout is not None
            while waiting:
                task = waiting.pop(0)
                try:
                    process.stdin.write(pickle.dumps(task))
                    process.stdin.flush()
                    line = process.stdout.readline()
                except BrokenPipeError:
                    line = b""
                if not line:
                    yield {"name": task.name, "replayed": False, "error": "the process ended"}
                    break
                yield json.loads(line)
            process.stdin.close()


def _process() -> subprocess.Popen[bytes]:
    one = {name: "1" for name in ("TRITON_INTERPRET", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
    command = [sys.executable, "-W", "ignore", "-m", "pyvosti.analyzer.replay.interpret"]
    return subprocess.Popen(
        command, env=os.environ | one, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
