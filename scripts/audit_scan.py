"""Finds every place where Verus is told to believe something, or does not look.

A finding is one occurrence: its item, kind, file and line. The scan reads tokens (rust_source), so
comments and strings neither hide nor fake one. Attributes are judged by an allow-list: a
`verifier::` attribute that is not known to be harmless is a finding of its own name.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from audit_surface import conditional_calls
from rust_source import KEYWORDS, Item, Source, SourceError

# Attributes that only steer the solver or hide definitions; none of them makes a claim true.
HARMLESS = {"type_invariant", "loop_isolation", "rlimit", "spinoff_prover", "opaque", "inline"}
HARMLESS |= {"reject_recursive_types", "accept_recursive_types", "auto_ext_equal", "ext_equal"}
HARMLESS |= {"truncate", "proof_note", "custom_req_err", "custom_err", "nonlinear", "bit_vector"}
HARMLESS |= {"reject_recursive_types_in_ground_variants", "prune_unless_this_module_is_used"}
ASSUMING = {"assume", "assume_", "admit", "assume_new", "assume_new_fallback"}
GHOST_CFG = ("verus_only", "verus_keep_ghost")
CONFIGURES = ("verus", "verifier")
KNOWN = KEYWORDS | {"group", "inner"}
OPEN_ITEMS = ("use", "inner", "mod")


@dataclass(frozen=True, order=True)
class Finding:
    """One escape hatch. `item` is the enclosing or annotated item, `Type::method` for methods."""

    file: str
    line: int
    kind: str
    item: str


@dataclass(frozen=True)
class Crate:
    """A workspace member: its folder, and whether Verus verifies it."""

    name: str
    folder: Path
    verified: bool


def crates(root: Path) -> list[Crate]:
    """The workspace's members. SourceError when a manifest could change what Verus sees."""
    workspace = tomllib.loads((root / "Cargo.toml").read_text(encoding="utf-8"))
    if {"patch", "replace"} & workspace.keys() or (root / ".cargo").exists():
        raise SourceError("Cargo.toml or .cargo replaces dependencies or sets compiler flags")
    folders = [root / member for member in workspace["workspace"]["members"]]
    manifests = {f: tomllib.loads((f / "Cargo.toml").read_text(encoding="utf-8")) for f in folders}
    verus = {f: m["package"].get("metadata", {}).get("verus", {}) for f, m in manifests.items()}
    verified = {f for f, options in verus.items() if options.get("verify") is True}
    allowed = {"vstd"} | {manifests[folder]["package"]["name"] for folder in verified}
    for folder in sorted(verified):
        manifest, file = manifests[folder], f"{folder.name}/Cargo.toml"
        if verus[folder] != {"verify": True} or {"lib", "target"} & manifest.keys():
            raise SourceError(f"{file}: targets, or Verus options beside verify")
        if manifest.get("features", {}) not in ({}, {"probes": []}):
            raise SourceError(f"{file}: features besides one for probes, which must fail")
        if "build" in manifest["package"] or (folder / "build.rs").exists():
            raise SourceError(f"{file}: a verified crate has no build script")
        if others := manifest.get("dependencies", {}).keys() - allowed:
            raise SourceError(f"{file}: depends on {', '.join(sorted(others))}, not verified")
    return [Crate(m["package"]["name"], f, f in verified) for f, m in manifests.items()]


def rust_files(crate: Crate) -> list[Path]:
    """The crate's Rust files, those of crates nested in its folder left out."""
    nested = [m.parent for m in crate.folder.rglob("Cargo.toml") if m.parent != crate.folder]
    return sorted(
        path
        for path in crate.folder.rglob("*.rs")
        if not any(path.is_relative_to(folder) for folder in nested)
    )


def is_test(source: Source, item: Item) -> bool:
    """Whether the item is `#[cfg(test)]`: it exists in no build that verifies or ships."""
    texts = [[t.text for t in source.tokens[a:b]] for a, b in item.attributes]
    return ["cfg", "(", "test", ")"] in texts


def is_probes(source: Source, item: Item) -> bool:
    """Whether the item is `#[cfg(feature = "probes")] mod probes;`: what must fail to verify."""
    texts = [[t.text for t in source.tokens[a:b]] for a, b in item.attributes]
    is_module = item.kind == "mod" and item.name == "probes" and item.body is None
    return is_module and texts == [["cfg", "(", "feature", "=", '"probes"', ")"]]


def sources(crate: Crate) -> dict[Path, Source]:
    """The crate's files that are in its module tree, without those of tests."""
    return _modules(crate.folder / "src" / "lib.rs", tests=False)


def orphans(crate: Crate) -> list[Path]:
    """Files that lie in the crate's `src` but are in no module: Cargo and Verus never see them."""
    files = [p for p in rust_files(crate) if p.is_relative_to(crate.folder / "src")]
    known = _modules(crate.folder / "src" / "lib.rs", tests=True)
    return [path for path in files if path not in known]


def _modules(path: Path, tests: bool) -> dict[Path, Source]:
    source = Source.read(path)
    found = {path: source}
    here = path.parent if path.stem in ("mod", "lib") else path.with_suffix("")
    for item in source.items:
        if item.kind == "mod" and item.body is None and (tests or not is_test(source, item)):
            for file in (here / f"{item.name}.rs", here / item.name / "mod.rs"):
                if file.is_file():
                    found |= _modules(file, tests)
    return found


def scan(root: Path) -> list[Finding]:
    """All findings of the workspace, in order of file and line."""
    found: list[Finding] = []
    for crate in crates(root):
        if crate.verified:
            files = sources(crate)
            open_calls = conditional_calls(crate.folder / "src", files)
            for path, source in files.items():
                name = path.relative_to(root).as_posix()
                places = [*hatches(source), *open_calls.get(path, [])]
                found += [Finding(name, line, kind, item) for line, kind, item in places]
            lost = [path.relative_to(root).as_posix() for path in orphans(crate)]
            found += [Finding(name, 1, "orphan", "(file)") for name in lost]
        for path in rust_files(crate):
            source, name = Source.read(path), path.relative_to(root).as_posix()
            words = source.words(0, len(source.tokens))
            lines = [source.tokens[at].line for at, word in words if word == "unsafe"]
            found += [Finding(name, line, "unsafe", "unsafe") for line in lines]
    return sorted(found)


def hatches(source: Source) -> Iterator[tuple[int, str, str]]:
    """`(line, kind, item)` of each escape hatch in one file of a verified crate."""
    skipped = [(i.start, i.end) for i in source.all_items() if is_test(source, i)]

    def tested(at: int) -> bool:
        return any(start <= at < end for start, end in skipped)

    for at, kind in [*_words(source), *_attributes(source)]:
        if not tested(at):
            imported = kind == "broadcast_axiom" and source.text_at(at) != "axiom"
            name = source.text_at(at) if imported else source.enclosing(at)
            yield source.tokens[at].line, kind, name
    for item in source.all_items():
        line = source.tokens[item.keyword].line
        if tested(item.start):
            continue
        if item.kind == "macro":
            yield line, "macro", item.name
        elif item.kind not in KNOWN or (
            not item.in_verus and item.kind not in OPEN_ITEMS and not item.owner
        ):
            yield line, "outside", item.path


def _words(source: Source) -> Iterator[tuple[int, str]]:
    """Findings that a word and its neighbours show."""
    imports = _imports(source)
    for at, word in source.words(0, len(source.tokens)):
        before, after = source.text_at(at - 1), source.text_at(at + 1)
        imported = next((use for use in imports if use[0] < at < use[1]), None)
        if word in ASSUMING:
            # A module, function or field of the project's own may have one of these names.
            own = before in ("fn", ".") or after == ":"
            own |= word == "admit" and not _bare(source, at) and not imported
            if not own:
                yield at, word.removesuffix("_fallback").rstrip("_")
        elif (word == "uninterp" and after == "spec") or word == "assume_specification":
            yield at, word
        elif word == "axiom" and after == "fn":
            yield at, "broadcast_axiom" if before == "broadcast" else "axiom"
        elif word == "cfg" and after == "!":
            yield at, "ghost_cfg"
        elif imported and "axiom" in word and source.text_at(imported[0] - 1) == "broadcast":
            yield at, "broadcast_axiom"
        elif "axiom" in word and source.innermost(at, "group"):
            yield at, "broadcast_axiom"
        elif word in ("verus_verify", "verus_spec"):
            yield at, word
        elif word == "internal" and before == ":" and source.text_at(at - 3) == "verus":
            yield at, "internal"
        elif word == "verifier":
            yield from _verifier(source, at)


def _imports(source: Source) -> list[tuple[int, int]]:
    """Ranges from each `use` to its `;`, those inside functions too."""
    ends = [at for at, token in enumerate(source.tokens) if token.text == ";"]
    starts = [at for at, word in source.words(0, len(source.tokens)) if word == "use"]
    return [(at, next((e for e in ends if e > at), len(source.tokens))) for at in starts]


def _bare(source: Source, at: int) -> bool:
    return source.text_at(at + 1) == "(" and source.text_at(at + 2) == ")"


def _verifier(source: Source, at: int) -> Iterator[tuple[int, str]]:
    """`verifier::name` and `verifier(name, …)`, unless the name is known to be harmless."""
    if source.text_at(at + 1) == "(":
        names = [w for _, w in source.words(at + 2, source.match[at + 1])]
    else:
        names = [source.text_at(at + 3)]
    for name in names:
        if name not in HARMLESS:
            yield at, name


def _attributes(source: Source) -> Iterator[tuple[int, str]]:
    """Conditional code that Verus and the wheel could see differently, and files from elsewhere."""
    probes = {a for i in source.items if is_probes(source, i) for a, _ in i.attributes}
    uses = {a for i in source.all_items() if i.kind == "use" for a, _ in i.attributes}
    for at in range(len(source.tokens) - 2):
        if source.text_at(at) != "#":
            continue
        inner = source.text_at(at + 1) == "!"
        first = at + 3 if inner else at + 2
        if source.text_at(first - 1) != "[" or source.tokens[first - 1].kind != "punct":
            continue
        words = [w for _, w in source.words(first, source.match[first - 1])]
        on_use = first in uses and words[1:] in (["verus_only"], ["verus_keep_ghost"])
        steers = inner and words[1:2] and words[1] in GHOST_CFG and words[2] in CONFIGURES
        if words[:1] == ["path"]:
            yield first, "path"
        if words[:1] == ["cfg"] and words[1:] != ["test"] and not on_use and first not in probes:
            yield first, "ghost_cfg"
        if words[:1] == ["cfg_attr"] and not steers:
            yield first, "ghost_cfg"
