"""What the command line shows: results on stdout, progress and errors on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from pyvosti.models import FoundModel
    from pyvosti.outputs import RequestOutput, StreamChunk
    from pyvosti.triton_kernels.schedule import Schedule


def status(message: str) -> AbstractContextManager[Any]:
    """A spinner with a message while something loads; nothing when stderr is no terminal."""
    return Console(stderr=True).status(message)


def live(chunks: Iterable[StreamChunk]) -> list[RequestOutput]:
    """Prints the text of one sample as it comes."""
    outputs = []
    for chunk in chunks:
        sys.stdout.write(chunk.text)
        sys.stdout.flush()
        if chunk.output is not None:
            outputs.append(chunk.output)
    sys.stdout.write("\n")
    return outputs


def progress(chunks: Iterable[StreamChunk], samples: int) -> list[RequestOutput]:
    """Waits for all requests behind a progress bar; results in the order of the prompts."""
    from rich.progress import Progress

    outputs = []
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("Generating", total=samples)
        for chunk in chunks:
            if chunk.finish_reason is not None:
                bar.advance(task)
            if chunk.output is not None:
                outputs.append(chunk.output)
    return sorted(outputs, key=lambda output: output.request_id)


def print_json(outputs: Sequence[RequestOutput]) -> None:
    """One JSON object per line and request."""
    for output in outputs:
        sys.stdout.write(json.dumps(output.to_dict(), ensure_ascii=False) + "\n")


def print_outputs(outputs: Sequence[RequestOutput]) -> None:
    """The texts, each under a line that names its prompt."""
    for output in outputs:
        for sample in output.outputs:
            which = f", sample {sample.index}" if len(output.outputs) > 1 else ""
            sys.stdout.write(f"--- prompt {output.request_id}{which}\n{sample.text}\n")


def print_report(outputs: Sequence[RequestOutput]) -> None:
    """The digest of each sample: equal digests mean equal bits in every row of logits."""
    for output in outputs:
        for sample in output.outputs:
            sys.stdout.write(
                f"request {output.request_id} sample {sample.index} seed {output.seed} "
                f"tokens {len(sample.token_ids)} logits sha256:{sample.digest}"
                f"{' UNCERTIFIED' if output.uncertified else ''}\n"
            )


def print_errors(outputs: Sequence[RequestOutput]) -> int:
    """Names the refused requests; returns how many there are."""
    refused = [output for output in outputs if output.error is not None]
    for output in refused:
        sys.stderr.write(f"error: prompt {output.request_id}: {output.error}\n")
    return len(refused)


def print_models(found: Sequence[FoundModel], as_json: bool, hint: str) -> None:
    """A table of models, or what to do when there is none."""
    if as_json:
        for model in found:
            entry = {"name": model.name, "path": str(model.path), "bytes": model.size}
            sys.stdout.write(json.dumps(entry) + "\n")
        return
    if not found:
        sys.stdout.write(f"no model found; {hint}\n")
        return
    table = Table("model", "size", "path")
    for model in found:
        table.add_row(model.name, f"{model.size / 1e6:,.0f} MB", str(model.path))
    Console().print(table)


def print_plan(schedule: Schedule, rows: int, as_json: bool) -> None:
    """The classes, and the launches of a step of `rows` rows; one layer stands for all."""
    from pyvosti import kernel_plan

    if as_json:
        sys.stdout.write(json.dumps(kernel_plan.plan_as_data(schedule, rows)) + "\n")
        return
    console = Console()
    console.print(f"sm_{schedule.arch}, schedule {kernel_plan.schedule_id(schedule)}")
    classes = Table("operation", "order of a row's sums", "members")
    for line in kernel_plan.class_rows(schedule):
        classes.add_row(*line)
    console.print(classes)
    launches = Table("launch", "kernel", "grid", "reads and writes", title=f"a step of {rows} rows")
    for launch in kernel_plan.step_launches(schedule, rows):
        name = launch.name.replace("layers.0.", "each layer: ")
        if not name.startswith("layers."):
            grid = " x ".join(str(entry) for entry in launch.grid)
            launches.add_row(name, launch.spec.kernel, grid, ", ".join(launch.buffers))
    console.print(launches)


def questions() -> Iterator[str]:
    """What the user types, line by line, until the input ends."""
    while True:
        try:
            line = input("> " if sys.stdin.isatty() else "").strip()
        except EOFError:
            return
        if line:
            yield line
