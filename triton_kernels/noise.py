"""Counter-based noise: Philox4x32-10 (Salmon et al., 2011), a natural logarithm, Gumbel noise.

Fixed: noise is a function of (seed, sample index, output position, token id) and of nothing else.
The logarithm is Cephes' logf in multiplications and additions only, so that it is accurate where
the argument is near 1 (the upper tail of the noise), where the hardware's is not.
"""

import triton
import triton.language as tl


@triton.jit
def natural_log(x):
    """ln(x) of finite normal f32 x > 0, relative error below 2^-22 (Cephes logf)."""
    bits = x.to(tl.int32, bitcast=True)
    exponent = (bits >> 23) - 126
    fraction = ((bits & 0x007FFFFF) | 0x3F000000).to(tl.float32, bitcast=True)
    low = fraction < 0.70710678
    exponent = tl.where(low, exponent - 1, exponent).to(tl.float32)
    z = tl.where(low, fraction + fraction, fraction) - 1.0
    square = z * z
    y = 7.0376836292e-2 * z - 1.1514610310e-1
    y = y * z + 1.1676998740e-1
    y = y * z - 1.2420140846e-1
    y = y * z + 1.4249322787e-1
    y = y * z - 1.6668057665e-1
    y = y * z + 2.0000714765e-1
    y = y * z - 2.4999993993e-1
    y = y * z + 3.3333331174e-1
    y = y * z * square - 2.12194440e-4 * exponent - 0.5 * square
    return z + y + 0.693359375 * exponent


@triton.jit
def gumbel(seed, sample_index, position, token):
    """Gumbel(0, 1) noise of i32 token ids: u = ((w >> 9) + 0.5) 2^-23, then -ln(-ln(u))."""
    zero = token * 0
    word, _, _, _ = tl.philox(seed, token, zero + position, zero + sample_index, zero)
    uniform = ((word >> 9).to(tl.float32) + 0.5) * 1.1920928955078125e-07
    return -natural_log(-natural_log(uniform))
