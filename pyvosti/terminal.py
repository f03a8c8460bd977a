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
                f"tokens {len(sample.token_ids)} logits sha256:{sample.digest}\n"
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


def questions() -> Iterator[str]:
    """What the user types, line by line, until the input ends."""
    while True:
        try:
            line = input("> " if sys.stdin.isatty() else "").strip()
        except EOFError:
            return
        if line:
            yield line
