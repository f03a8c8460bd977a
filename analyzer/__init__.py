"""Proves, for each compiled kernel, that a row's stored bits do not depend on the batch.

`contracts` says as data what a kernel's arguments hold, `ttir` reads what the compiler made of
it, `analyse` compares two symbolic launches that share one row and nothing else.
"""
