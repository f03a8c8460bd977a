"""Runs `interpreted_kernels.py` under Triton's interpreter, in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton")
pytest.importorskip("torch")


@pytest.mark.parametrize(
    "kernels",
    ["embedding or gather or rms_norm or argmax or log_softmax", "linear or gate_up",
     "rope or finite or attention or flagged", "sample or adjust"],
)  # fmt: skip
def test_kernels_match_their_oracles(kernels: str) -> None:
    here = Path(__file__).resolve().parent
    env = os.environ | {
        "TRITON_INTERPRET": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    env["PYTHONPATH"] = os.pathsep.join([str(here.parent), env.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "pytest", "-q", "--noconftest", "-k", kernels]
    done = subprocess.run(
        [*command, str(here / "interpreted_kernels.py")], env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
