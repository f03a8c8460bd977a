"""Two concrete launches that share one row, run under Triton's interpreter, compared in bits.

`launches` builds them from a contract's roles, `interpret` runs them in a process of its own (one
process cannot both interpret and compile), `search` hands kernels over and reads what was found.
"""
