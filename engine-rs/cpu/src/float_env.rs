//! The floating-point mode: round to nearest even, subnormals kept, no traps, whatever the caller
//! (or a library that it loaded) had set.

/// Sets the mode for this thread and restores the former one when dropped.
pub struct FloatEnv(u64);

#[cfg(target_arch = "x86_64")]
impl FloatEnv {
    /// MXCSR after reset: all exceptions masked, nearest even, no flush to zero.
    const DEFAULT: u32 = 0x1f80;

    pub fn enter() -> Self {
        let mut before = 0u32;
        // SAFETY: stores MXCSR to, and loads it from, four bytes of our own stack.
        unsafe {
            std::arch::asm!("stmxcsr [{}]", in(reg) &mut before, options(nostack));
            std::arch::asm!("ldmxcsr [{}]", in(reg) &Self::DEFAULT, options(nostack));
        }
        Self(u64::from(before))
    }
}

#[cfg(target_arch = "x86_64")]
impl Drop for FloatEnv {
    fn drop(&mut self) {
        let before = self.0 as u32;
        // SAFETY: loads MXCSR from four bytes of our own stack that `enter` read from it.
        unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &before, options(nostack)) };
    }
}

#[cfg(target_arch = "aarch64")]
impl FloatEnv {
    pub fn enter() -> Self {
        let before: u64;
        // SAFETY: reads FPCR and sets it to its default (nearest even, no flush to zero).
        unsafe {
            std::arch::asm!("mrs {}, fpcr", out(reg) before, options(nomem, nostack));
            std::arch::asm!("msr fpcr, xzr", options(nomem, nostack));
        }
        Self(before)
    }
}

#[cfg(target_arch = "aarch64")]
impl Drop for FloatEnv {
    fn drop(&mut self) {
        // SAFETY: restores the FPCR that `enter` read.
        unsafe { std::arch::asm!("msr fpcr, {}", in(reg) self.0, options(nomem, nostack)) };
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
impl FloatEnv {
    pub fn enter() -> Self {
        Self(0)
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::FloatEnv;

    fn mxcsr() -> u32 {
        let mut bits = 0u32;
        // SAFETY: stores MXCSR to four bytes of our own stack.
        unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &mut bits, options(nostack)) };
        bits
    }

    #[test]
    fn sets_and_restores_the_mode() {
        let flush_and_truncate = 0x1f80u32 | 0x8040 | 0x6000;
        // SAFETY: loads MXCSR from four bytes of our own stack; restored below.
        unsafe {
            std::arch::asm!("ldmxcsr [{}]", in(reg) &flush_and_truncate, options(nostack));
        }
        let inside = {
            let _env = FloatEnv::enter();
            mxcsr()
        };
        let after = mxcsr();
        let default = 0x1f80u32;
        // SAFETY: loads MXCSR from four bytes of our own stack.
        unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &default, options(nostack)) };
        assert_eq!(inside & 0xffc0, 0x1f80);
        assert_eq!(after & 0xffc0, flush_and_truncate);
    }
}
