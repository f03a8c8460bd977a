"""GPU kernels in Triton, one file each, and the fixed plans by which they are launched.

`schedule` fixes the order of every reduction for one model shape, `launches` lists what runs in
a step, `compile` turns an entry of that list into one compiled artifact with no hidden variant.
"""
