"""Compiles many specialisations, each in one of several processes, into Triton's cache on disk.

A process of its own each time, not `multiprocessing`: that would run the user's script again.
"""

import os
import pickle
import subprocess
import sys
from collections.abc import Sequence

from .compile import Spec, compiled


class CompileError(Exception):
    """A kernel could not be compiled."""


def compile_all(specs: Sequence[Spec], arch: int) -> None:
    """Compiles all specs for sm_`arch`; afterwards `compiled` only reads them from the cache.

    Raises CompileError when one cannot be compiled; its reason is on standard error.
    """
    workers = min(len(specs), os.cpu_count() or 1)
    shares = [specs[first::workers] for first in range(workers)]
    command = [sys.executable, "-m", "pyvosti.triton_kernels.compile_all"]
    processes = [subprocess.Popen(command, stdin=subprocess.PIPE) for _ in shares]
    for process, share in zip(processes, shares, strict=True):
        assert process.stdin is not None
        with process.stdin as pipe:
            pipe.write(pickle.dumps((share, arch)))
    if any([process.wait() for process in processes]):
        raise CompileError("a GPU kernel could not be compiled; the reason is printed above")


if __name__ == "__main__":
    share, arch = pickle.load(sys.stdin.buffer)
    for spec in share:
        compiled(spec, arch)
