"""Finds an installed Verus, and runs `cargo verus verify` on one crate."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from verified_sources import VERUS

SUMMARY = re.compile(r"verification results:: (\d+) verified, (\d+) errors")
HOW_TO_GET = f"""\
Verus {VERUS} was not found in $VERUS, ~/.verus or PATH.
Get that release for your system from the releases of the GitHub project verus-lang/verus
(tag release/{VERUS}), unpack it, and set VERUS to the folder that holds `verus`, `cargo-verus`
and `z3`. The release says which Rust toolchain it needs.
Without Verus, `just check-verified` tells whether these sources are the verified ones."""


class VerusError(Exception):
    """Verus is missing, of another version, or did not verify everything."""


@dataclass(frozen=True)
class Verus:
    """An installed Verus of the pinned version: its folder and the environment to run it in."""

    folder: Path
    environment: dict[str, str]

    def verify(
        self, root: Path, crate: str, target: Path, arguments: list[str]
    ) -> list[tuple[int, float]]:
        """Verifies one crate of the workspace at `root`, and what it depends on.

        Returns `(functions verified, seconds)` of each summary line, in the order in which they
        come. Raises VerusError when Verus fails, finds an error or verifies in part.
        """
        code, results = self._run(root, ["-p", crate], target, arguments, None)
        if code != 0 or any(errors for _, errors, _ in results):
            raise VerusError(f"{crate} is not verified: Verus ended with exit code {code}")
        return [(verified, seconds) for verified, _, seconds in results]

    def probe(self, root: Path, crate: str, target: Path) -> tuple[int, int]:
        """Functions verified and errors of a crate with its probes, which have to fail."""
        options = ["-p", crate, "--features", "probes"]
        _, results = self._run(root, options, target, [], subprocess.DEVNULL)
        if len(results) != 1:
            raise VerusError(f"cargo verus verify {' '.join(options)}: no result, see its output")
        return results[0][:2]

    def _run(
        self, root: Path, options: list[str], target: Path, arguments: list[str], stderr: int | None
    ) -> tuple[int, list[tuple[int, int, float]]]:
        """Exit code, and `(verified, errors, seconds)` of each summary line as it comes."""
        command = ["cargo", "verus", "verify", *options, "--locked", "--target-dir", str(target)]
        command += ["--fwd-verus-args-to", "roots", "--", "--no-report-long-running", *arguments]
        if not any(argument.startswith("--num-threads") for argument in arguments):
            command += every_core()
        results, start = [], time.monotonic()
        with subprocess.Popen(
            command,
            cwd=root,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        ) as running:
            assert running.stdout is not None
            for line in running.stdout:
                print(line, end="", flush=True)
                if "verification results::" in line:
                    summary = SUMMARY.fullmatch(line.rstrip("\n"))
                    if summary is None:
                        raise VerusError(f"not a whole verification: {line.rstrip()}")
                    now = time.monotonic()
                    results.append((int(summary[1]), int(summary[2]), now - start))
                    start = now
        return running.returncode, results

    def versions(self) -> dict[str, str]:
        """The versions of the solver and of the compiler that Verus uses, as they print them."""
        z3 = self.environment.get("VERUS_Z3_PATH", str(self.folder / "z3"))
        rustc = self.environment.get("RUSTC", "rustc")
        return {"z3": self._ask(z3), "rustc": self._ask(rustc)}

    def _ask(self, program: str) -> str:
        done = subprocess.run(
            [program, "--version"], env=self.environment, capture_output=True, text=True
        )
        return done.stdout.splitlines()[0].strip() if done.stdout else "unknown"


def every_core() -> list[str]:
    """Verus's options to use every core; by itself it leaves one idle, half of a small machine."""
    return ["--num-threads", str(os.cpu_count() or 1)]


def find_verus() -> Verus:
    """The pinned Verus in $VERUS, ~/.verus or on PATH. Raises VerusError with what to do next."""
    on_path = shutil.which("cargo-verus")
    places = [os.environ.get("VERUS"), str(Path.home() / ".verus")]
    places.append(str(Path(on_path).resolve().parent) if on_path else None)
    for place in places:
        folder = Path(place) if place else None
        if folder and (folder / "verus").is_file() and (folder / "cargo-verus").is_file():
            found = Verus(folder, _environment(folder))
            reported = subprocess.run(
                [folder / "verus", "--version"],
                env=found.environment,
                capture_output=True,
                text=True,
            ).stdout
            if VERUS not in reported.split():
                version = " ".join(reported.split()) or "no version"
                raise VerusError(f"{folder}/verus is not Verus {VERUS}: it reports {version}")
            return found
    raise VerusError(HOW_TO_GET)


def _environment(folder: Path) -> dict[str, str]:
    """The environment with Verus first on PATH, its env.sh applied, and no compiler flags."""
    script = folder / "env.sh"
    environment = dict(os.environ)
    if script.is_file():
        shown = subprocess.run(
            ["bash", "-c", 'set -e; source "$1" >&2; exec env -0', "env", script],
            stdout=subprocess.PIPE,
            check=True,
        ).stdout.decode()
        environment = dict(entry.split("=", 1) for entry in shown.split("\0") if "=" in entry)
    for name in ("RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_RUSTFLAGS"):
        environment.pop(name, None)
    environment["PATH"] = f"{folder}{os.pathsep}{environment['PATH']}"
    return environment
