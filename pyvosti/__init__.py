"""Deterministic LLM inference with a machine-checked proof."""
