"""Turns the results of `kernel_mutants.py` into the report that is committed.

python benchmarks/kernel_mutants_report.py mutants.json ... > docs/reports/kernel-mutants.md
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from pyvosti.analyzer.patched import kernel_file

CLASSES = (
    "unequal", "not analysable", "another row function", "the same rows", "no change", "invalid",
)  # fmt: skip

UNUSED_LANES = "the lanes that are masked are neither stored nor added"
ONE_TILE = "the small specialisation has one whole tile of columns and GROUP_N = 1"
PAST_THE_COUNT = "a row of the tile past its count: it is neither stored nor read by another"
PAST_THE_KEYS = (
    "a padding tile stores nothing, and no row of a tile sees a key past its last position"
)
UNSEEN = "a key that no row of the tile sees has weight +0.0"
EQUAL_LOGITS = "another function where the bound falls among equal logits, which no run had"
EXPLAINED: tuple[tuple[str, str, str], ...] = (
    ("linear", "tl.program_id", ONE_TILE),
    ("linear", "column < N", ONE_TILE),
    ("linear", "N %", ONE_TILE),
    ("gate_up", "tl.program_id", ONE_TILE),
    ("gate_up", "column < N", ONE_TILE),
    ("gate_up", "N %", ONE_TILE),
    ("embedding", "last = tl.load", "the last token is used only where the row's own is negative"),
    ("embedding", "token = tl.where", "another function, of token 0 alone, which no run had"),
    ("argmax", "better = value > best", "another function, of ties within one lane alone"),
    ("log_softmax", "for base in range", "another function where the first column is largest"),
    (
        "log_softmax",
        "value",
        "a lane past the row is not stored: the store has its own mask",
    ),
    ("adjust", "scaled = tl.where", "at 0 both branches give 0"),
    ("adjust", "tl.load", UNUSED_LANES),
    ("attention_combine", "position = tl.where", "any negative position makes a dead row"),
    ("attention_combine", "last_split = tl.where", "any negative split makes an empty walk"),
    ("attention_combine", "- WINDOW + 1", "another function where a window begins a split"),
    ("attention_combine", "first_split = tl.maximum", "0 and 1 lie in the same split"),
    ("attention_combine", "real = (head < HEADS)", "BLOCK_H divides HEADS: there is no such head"),
    ("attention_combine", "for base in range", "one more step, in which no row sees a split"),
    *(
        (kernel, part, text)
        for kernel in ("attention_splits", "attention_whole")
        for part, text in (
            ("position = tl.load(positions_ptr + row", PAST_THE_COUNT),
            ("key_end = tl.load", PAST_THE_KEYS),
            ("key_start = tl.maximum", UNSEEN),
            ("q = tl.load", PAST_THE_COUNT),
            ("state = tl.load", PAST_THE_COUNT),
            ("pages = tl.load", "a page past the tile's last key is never read"),
            ("present = ", UNSEEN),
            ("v = tl.load", UNSEEN),
            ("sees = has_live_key", "another function where a window begins at a block's last key"),
        )
    ),
    ("rope_kv_write", "value = tl.load", "every lane holds a head: no lane is masked"),
    ("rope_kv_write", "flagged = ", "another function where some V is not finite and K is"),
    ("sandwich_norm", "weight = tl.load", "the lanes past the row hold 0 and are not stored"),
    (
        "sample",
        "flip = ",
        "a shift by the width is undefined; the interpreter gives the sign again",
    ),
    ("sample", "none = ", "the search for the id of a tie begins one lower and ends at the same"),
    ("sample", "kept = passes", "another function where a logit is the bound, which no run had"),
    ("sample", "one = (none", EQUAL_LOGITS),
    ("sample", "digit", EQUAL_LOGITS),
    ("sample", "token += 1", EQUAL_LOGITS),
)
"""Kernel, part of the changed line, why its rows are the same; the first that fits."""

INTRODUCTION = """\
# Mechanical faults in the GPU kernels

Made by `benchmarks/kernel_mutants.py`: one comparison, operator, constant, mask or bound of a
kernel is changed, and the analyzer judges the result by the contract. It is asked whether a
row is a function of its own data, not which function: a mutant that computes another function of
the row alone has to stay proved. Every mutant that stays proved was run under Triton's interpreter,
12 pairs of launches each: no pair told the row apart (that would be an error of the analyzer), and
its rows were compared with the shipped kernel's. Of attention_whole, rope_kv_write and sample each
sixth mutant was taken (`--share 6`; three pairs of launches each for sample), of sandwich_norm each
second, of the others every one.

- unequal: rejected, with a counterexample; not analysable: rejected without one;
- another row function: proved, and its rows are other ones, alike in every launch;
- the same rows: proved, and no run told it from the shipped kernel; each is explained below;
- no change: the compiler makes the same TTIR of it; invalid: it does not compile.
"""


def why(one: dict[str, Any]) -> str:
    """Why a mutant's rows are the shipped kernel's."""
    line = kernel_file(one["kernel"]).read_text(encoding="utf-8").splitlines()[one["line"] - 1]
    for kernel, part, text in EXPLAINED:
        if kernel == one["kernel"] and part in line:
            return text
    return UNUSED_LANES if one["kind"] in ("mask dropped", "other changed") else "UNEXPLAINED"


def table(head: list[str], rows: list[list[Any]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        "| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in lines
    )


def main() -> int:
    found = [one for path in sys.argv[1:] for one in json.loads(Path(path).read_text())]
    kernels = list(dict.fromkeys(one["kernel"] for one in found))
    rows: list[list[Any]] = []
    for kernel in kernels:
        counts = Counter(one["class"] for one in found if one["kernel"] == kernel)
        rows.append([kernel, sum(counts.values()), *(counts[name] for name in CLASSES)])
    rows.append(["all", *(sum(row[i] for row in rows) for i in range(1, len(CLASSES) + 2))])
    print(INTRODUCTION)
    print(table(["kernel", "mutants", *CLASSES], rows))
    for title, kind in (
        ("The same rows", "the same rows"),
        ("Another function of the row", "another row function"),
    ):
        print(f"\n## {title}\n")
        chosen = [one for one in found if one["class"] == kind]
        extra = kind == "the same rows"
        head = ["kernel", "line", "fault", "before", "after", *(["why"] if extra else [])]
        keys = ("kernel", "line", "kind", "before", "after")
        print(table(head, [[*(x[k] for k in keys), *([why(x)] if extra else [])] for x in chosen]))
    return int(any(why(one) == "UNEXPLAINED" for one in found if one["class"] == "the same rows"))


if __name__ == "__main__":
    sys.exit(main())
