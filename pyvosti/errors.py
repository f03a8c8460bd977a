"""What can go wrong, as exceptions whose message is one sentence that says what to do."""

from __future__ import annotations


class PyvostiError(Exception):
    """Base of every error that pyvosti raises on purpose; the command line exits with code 2."""


class ModelError(PyvostiError):
    """The model cannot be found, read or served: unknown name, damaged file, unsupported kind."""


class ConfigError(PyvostiError, ValueError):
    """A constructor argument of `LLM` is wrong."""


class RequestError(PyvostiError, ValueError):
    """One request is wrong; the others of the same call go on."""
