"""`pyvosti certify`: proves a model's GPU kernels, without a GPU, and shows what was proved."""

from __future__ import annotations

import json as json_module
import sys
import time
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from pyvosti.errors import ConfigError, PyvostiError

if TYPE_CHECKING:
    from pyvosti.triton_kernels.schedule import Schedule


def certify(
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="Folder, GGUF file, Hub id, or smollm2.")
    ] = None,
    shape: Annotated[
        str | None, typer.Option(help="Instead of a model, e.g. llama-3.1-8b or qwen3-8b.")
    ] = None,
    arch: Annotated[int, typer.Option(help="NVIDIA architecture: 80, 90 or 100.")] = 90,
    block_size: Annotated[int | None, typer.Option(help="Tokens of a KV block.")] = None,
    max_model_len: Annotated[int | None, typer.Option(help="Most tokens of a sequence.")] = None,
    strict_kernels: Annotated[
        bool, typer.Option(help="One member of each schedule class.")
    ] = False,
    corpus: Annotated[bool, typer.Option(help="Show that faulty kernels are rejected.")] = True,
    explain: Annotated[
        str | None, typer.Option(help="Only show how this kernel adds a row's terms.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Folder of the certificates (and of pictures).")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="JSON lines; the last one sums up.")] = False,
) -> None:
    """Proves that a model's GPU kernels give equal bits in every batch. Needs no GPU."""
    try:
        if not (find_spec("triton") and find_spec("z3")):
            raise ConfigError(
                "certifying needs Triton and z3; run: pip install 'pyvosti[analyzer]'"
            )
        schedule = _schedule(model, shape, arch, block_size, max_model_len, strict_kernels)
        if explain is not None:
            _explain(schedule, explain, output)
        elif not _certify(schedule, output, corpus, json):
            raise typer.Exit(1)
    except PyvostiError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from None


def _schedule(
    model: str | None,
    shape: str | None,
    arch: int,
    block_size: int | None,
    max_model_len: int | None,
    strict: bool,
) -> Schedule:
    """The schedule of a model, or of a shape that certificates ship for."""
    from pyvosti.kernel_plan import kernel_schedule, shape_schedule

    if model is not None:
        if shape is not None:
            raise ConfigError("give --model or --shape, not both")
        from pyvosti.limits import make_limits
        from pyvosti.loader import load_model

        config = load_model(model).config
        limits = make_limits(config, "cuda", block_size=block_size, max_model_len=max_model_len)
        return kernel_schedule(config, limits, arch, strict)
    from pyvosti.analyzer.shapes import SHAPES

    if block_size is not None or max_model_len is not None:
        raise ConfigError("block_size and max_model_len belong to a --model")
    name = "llama-3.1-8b" if shape is None else shape
    if name not in SHAPES:
        raise ConfigError(f"the shapes are {', '.join(SHAPES)}, not {name!r}")
    return shape_schedule(SHAPES[name], arch, strict)


def _explain(schedule: Schedule, kernel: str, output: Path | None) -> None:
    """Prints the reduction trees of a kernel's specialisations and draws the first."""
    from pyvosti.analyzer.explain import picture, words
    from pyvosti.analyzer.lowering import lowering_of
    from pyvosti.triton_kernels.compile import compiled
    from pyvosti.triton_kernels.launches import all_specs

    specs = [spec for spec in all_specs(schedule) if spec.kernel == kernel]
    if not specs:
        names = dict.fromkeys(spec.kernel for spec in all_specs(schedule))
        raise ConfigError(f"the kernels are {', '.join(names)}, not {kernel!r}")
    texts: dict[str, str] = {}
    for spec in specs:
        described = {
            "kernel": kernel,
            "name": f"{spec.key()}-sm{schedule.arch}",
            "constants": dict(spec.constants),
            "lowering": lowering_of(compiled(spec, schedule.arch).asm).describe(),
        }
        head, *lines = words(described)
        if "\n".join(lines) not in texts:
            texts["\n".join(lines)] = picture(described)
            typer.echo("\n".join([head, *lines]))
    path = (output or Path()) / f"{kernel}.svg"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(next(iter(texts.values())), encoding="utf-8")
    typer.echo(f"drawn in {path}")


def _certify(schedule: Schedule, output: Path | None, with_corpus: bool, as_json: bool) -> bool:
    """Certifies, prints, and says whether all is proved and all of the corpus rejected."""
    from pyvosti.analyzer.certificate import cache_store
    from pyvosti.analyzer.certify import certify as certify_specs
    from pyvosti.analyzer.certify import judged, reject_corpus, stored
    from pyvosti.triton_kernels.launches import all_specs

    start = time.monotonic()
    folder = cache_store() if output is None else output
    specs = all_specs(schedule)
    _watched("Certifying", certify_specs(specs, schedule.arch, folder), len(specs))
    certified = judged(stored(specs, schedule.arch, folder), schedule.arch)
    faults = _watched("Rejecting", reject_corpus(), None) if with_corpus else []
    rejected = sum(_is_rejected(fault) for fault in faults)
    below = _refused_below() if with_corpus else []
    certificates = list(certified.certificates.values())
    if as_json:
        _print_lines([*(_line(one) for one in certificates), *faults, *below])
        _print_lines({"objection": text} for text in certified.objections)
    else:
        _print_certificates(certificates)
        _print_corpus(faults, below)
        for text in certified.objections:
            typer.echo(f"not certified: {text}")
        typer.echo(f"certificates in {folder}")
    result = {
        "kernels": len(specs),
        "proved": certified.proved,
        "corpus": len(faults),
        "rejected": rejected,
        "seconds": round(time.monotonic() - start, 1),
    }
    sys.stdout.write(json_module.dumps(result) + "\n")
    refused = all(fault["reason"] for fault in below)
    return not certified.objections and rejected == len(faults) and refused


def _refused_below() -> list[dict[str, Any]]:
    """Faults that only the compiler's output shows, and why each is refused."""
    from pyvosti.analyzer.corpus.compiled import COMPILED, refusal

    return [{"name": one.name, "kind": one.kind, "reason": refusal(one)} for one in COMPILED]


def _is_rejected(fault: dict[str, Any]) -> bool:
    return bool(fault["verdict"] == "unequal" and fault["replay"]["replayed"])


def _watched(what: str, results: Iterable[Any], total: int | None) -> list[Any]:
    """All results, behind a progress bar on stderr."""
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        found = []
        for result in results:
            found.append(result)
            bar.advance(task)
        return found


def _line(one: dict[str, Any]) -> dict[str, Any]:
    """What JSON output says of a certificate; the file holds the rest."""
    keys = ("kernel", "name", "verdict", "reason", "obligations", "family", "assumptions")
    return {key: one[key] for key in keys}


def _print_lines(entries: Iterable[dict[str, Any]]) -> None:
    for entry in entries:
        sys.stdout.write(json_module.dumps(entry) + "\n")


def _print_certificates(certificates: Sequence[dict[str, Any]]) -> None:
    table = Table("kernel", "specialisation", "verdict", "obligations", "queries", "seconds")
    for one in certificates:
        done = one["obligations"]
        names = ", ".join(
            entry["name"] if entry["verdict"] == "proved" else f"{entry['name']}: {entry['detail']}"
            for entry in done
        )
        queries = sum(entry["queries"] for entry in done)
        seconds = sum(entry["seconds"] for entry in done)
        table.add_row(
            one["kernel"], one["name"], one["verdict"], names, str(queries), f"{seconds:.1f}"
        )
    Console().print(table)


def _print_corpus(faults: Sequence[dict[str, Any]], below: Sequence[dict[str, Any]]) -> None:
    if not faults:
        return
    table = Table("faulty kernel", "kind", "verdict", "by", "two launches: row of rows", "seconds")
    for fault in faults:
        shown = fault["replay"]
        launches = "not shown"
        if shown["replayed"]:
            pairs = [f"{one['row']} of {one['rows']}" for one in shown["launches"]]
            launches = f"{' and '.join(pairs)}: {shown['a']} and {shown['b']}"
        by = str(fault.get("obligation"))
        seconds = f"{fault['seconds']:.1f}"
        table.add_row(fault["name"], fault["kind"], fault["verdict"], by, launches, seconds)
    Console().print(table)
    table = Table("fault of the compiled artifact", "kind", "refused because")
    for fault in below:
        table.add_row(fault["name"], fault["kind"], fault["reason"] or "NOT REFUSED")
    Console().print(table)
