//! Which instructions a kernel was compiled for, and the choice among them at run time.

/// An instruction set that this processor has. Results do not depend on it, only speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Isa(Level);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Baseline,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Isa {
    /// All that this processor has, the fastest last.
    pub fn available() -> Vec<Isa> {
        #[allow(unused_mut)]
        let mut found = vec![Isa(Level::Baseline)];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("f16c") {
                found.push(Isa(Level::Avx2));
                if is_x86_feature_detected!("avx512f") {
                    found.push(Isa(Level::Avx512));
                }
            }
        }
        found
    }

    /// The fastest that this processor has.
    pub fn best() -> Isa {
        *Self::available().last().unwrap_or(&Isa(Level::Baseline))
    }

    /// "baseline", "avx2" or "avx512"; an error says which of them this processor has.
    pub fn named(name: &str) -> Result<Isa, String> {
        let available = Self::available();
        available
            .iter()
            .copied()
            .find(|isa| isa.name() == name)
            .ok_or_else(|| {
                let names: Vec<&str> = available.iter().map(Isa::name).collect();
                format!(
                    "isa {name:?} is not one of this processor's: {}",
                    names.join(", ")
                )
            })
    }

    pub fn name(&self) -> &'static str {
        match self.0 {
            Level::Baseline => "baseline",
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => "avx512",
        }
    }

    pub(crate) fn level(self) -> Level {
        self.0
    }
}

/// Compiles one generic body for each instruction set and calls the one that `isa` names:
/// `kernel! { pub fn f(a: A, b: B) -> C = baseline body::<Portable>, avx2 …, avx512 … }`.
macro_rules! kernel {
    ($(#[$doc:meta])* $vis:vis fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? =
        $base:expr, $avx2:expr, $avx512:expr;) => {
        $(#[$doc])*
        $vis fn $name(isa: $crate::isa::Isa, $($arg: $ty),*) $(-> $ret)? {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,f16c")]
            fn avx2($($arg: $ty),*) $(-> $ret)? {
                ($avx2)($($arg),*)
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx2,f16c")]
            fn avx512($($arg: $ty),*) $(-> $ret)? {
                ($avx512)($($arg),*)
            }
            match isa.level() {
                $crate::isa::Level::Baseline => ($base)($($arg),*),
                #[cfg(target_arch = "x86_64")]
                // SAFETY: an `Isa` of this level exists only where the processor has it.
                $crate::isa::Level::Avx2 => unsafe { avx2($($arg),*) },
                #[cfg(target_arch = "x86_64")]
                // SAFETY: an `Isa` of this level exists only where the processor has it.
                $crate::isa::Level::Avx512 => unsafe { avx512($($arg),*) },
            }
        }
    };
}
pub(crate) use kernel;
