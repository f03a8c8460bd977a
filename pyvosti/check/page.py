"""The report as one HTML page: a picture of the matrix, and what it does not tell."""

from __future__ import annotations

from html import escape
from typing import Any

COLOURS = {
    "equal": "#2a9d5c", "different": "#d6293a", "failed": "#8a1c7c", "blind": "#e9a500",
    "skipped": "#c3c8ce",
}  # fmt: skip
SIDE, GAP, LABEL = 18, 4, 190
"""Pixels: a cell's side, the space between two, the room for a group's name."""
COLUMNS = 32

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
       color: #1c2126; }
h1 { font-size: 1.3rem; } h2 { font-size: 1.05rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; }
td, th { text-align: left; vertical-align: top; padding: .25rem .6rem .25rem 0;
         border-bottom: 1px solid #e3e6e9; }
code { font: 13px ui-monospace, monospace; overflow-wrap: anywhere; }
svg { max-width: 100%; height: auto; }
"""


def make_page(report: dict[str, Any]) -> str:
    """The page; it needs no other file."""
    engine = report["engine"]
    facts = ", ".join(f"{k} {v}" for k, v in engine.items() if k != "title")
    parts = [
        f"<h1>{escape(report['summary'])}</h1>",
        f"<p>{escape(facts)}; extent {report['extent']}; {report['totals']['rows']:,} rows of "
        f"logits compared; {report['date']}, {escape(report['machine'])}</p>",
        picture(report["cells"]),
        _differences(report["cells"]),
        _controls(report["controls"]),
        _skipped(report["cells"]),
        _all(report["cells"]),
    ]
    title = escape(engine["title"])
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width">'
        f"<title>Determinism of {title}</title><style>{_STYLE}</style></head>\n"
        f"<body>\n{chr(10).join(parts)}\n</body></html>\n"
    )


def picture(cells: list[dict[str, Any]]) -> str:
    """An SVG: a row of squares for each group, their names as tooltips."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for cell in cells:
        groups.setdefault(cell["group"], []).append(cell)
    step, drawn, top = SIDE + GAP, [], 0
    for name, members in groups.items():
        drawn.append(
            f'<text x="{LABEL - 10}" y="{top + SIDE - 5}" text-anchor="end">{escape(name)}</text>'
        )
        for i, cell in enumerate(members):
            x, y = LABEL + i % COLUMNS * step, top + i // COLUMNS * step
            hint = f"{cell['cell']}: {cell['says']}: {cell['status']}"
            drawn.append(
                f'<rect x="{x}" y="{y}" width="{SIDE}" height="{SIDE}" rx="3" '
                f'fill="{COLOURS[cell["status"]]}"><title>{escape(hint)}</title></rect>'
            )
        top += -(-len(members) // COLUMNS) * step + GAP
    top += GAP
    present = [status for status in COLOURS if any(c["status"] == status for c in cells)]
    for i, status in enumerate(present):
        x = LABEL + i * 110
        drawn.append(
            f'<rect x="{x}" y="{top}" width="{SIDE}" height="{SIDE}" rx="3" '
            f'fill="{COLOURS[status]}"/>'
            f'<text x="{x + SIDE + 6}" y="{top + SIDE - 5}">{status}</text>'
        )
    width = LABEL + COLUMNS * step
    return (
        f'<svg viewBox="0 0 {width} {top + step}" width="{width}" role="img" '
        f'font-family="system-ui, sans-serif" font-size="13">{"".join(drawn)}</svg>'
    )


def _differences(cells: list[dict[str, Any]]) -> str:
    rows = []
    for cell in cells:
        found = cell["difference"]
        if found is not None:
            told = [f"{found['kind']} at position {found['position']}, output {found['output']}"]
            told += [found[name] for name in ("bits", "layer", "repeat") if found.get(name)]
            rows.append((cell["cell"], "<br>".join(escape(str(line)) for line in told)))
        elif cell["status"] in ("failed", "blind"):
            rows.append((cell["cell"], escape(cell["reason"])))
    return _table("What differs", rows)


def _controls(controls: list[dict[str, Any]]) -> str:
    rows = [
        (c["name"], escape(f"{c['says']}: " + (f"caught by {', '.join(c['failed'])}" if c["failed"]
         else f"NOT CAUGHT by {', '.join(c['cells'])}")))
        for c in controls
    ]  # fmt: skip
    return _table("Planted faults", rows)


def _skipped(cells: list[dict[str, Any]]) -> str:
    rows = [(c["cell"], escape(c["reason"])) for c in cells if c["status"] == "skipped"]
    return _table("Skipped", rows)


def _all(cells: list[dict[str, Any]]) -> str:
    rows = [
        (c["cell"], f"{escape(c['says'])}: {c['status']}, {c['rows']:,} rows, {c['seconds']} s")
        for c in cells
    ]
    return _table("All cells", rows)


def _table(title: str, rows: list[tuple[str, str]]) -> str:
    if not rows:
        return ""
    body = "".join(f"<tr><td><code>{escape(a)}</code></td><td>{b}</td></tr>" for a, b in rows)
    return f"<h2>{title}</h2><table>{body}</table>"
