//! Allocation that fails with an error, and the one type of error.

use crate::lanes::{Block, LANES};

/// A refused argument, or memory that could not be had. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    message: String,
    memory: bool,
}

impl Error {
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            memory: false,
        }
    }

    /// Memory of this size could not be had; `what` says what for, or what to do.
    pub(crate) fn no_memory(bytes: usize, what: &str) -> Self {
        let mib = bytes.div_ceil(1 << 20);
        Self {
            message: format!("not enough memory: {mib} MiB could not be allocated{what}"),
            memory: true,
        }
    }

    /// The same error, of this thing.
    pub(crate) fn about(self, what: &str) -> Self {
        Self {
            message: format!("{what}: {}", self.message),
            ..self
        }
    }

    /// Whether memory was missing, rather than an argument wrong.
    pub fn is_memory(&self) -> bool {
        self.memory
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// An empty vector with room for `len` items.
pub fn with_capacity<T>(len: usize) -> Result<Vec<T>, Error> {
    let mut items = Vec::new();
    items
        .try_reserve_exact(len)
        .map_err(|_| no_memory(len.saturating_mul(std::mem::size_of::<T>())))?;
    let bytes = items.capacity() * std::mem::size_of::<T>();
    advise_huge_pages(items.as_ptr() as usize, bytes);
    Ok(items)
}

fn no_memory(bytes: usize) -> Error {
    Error::no_memory(bytes, "")
}

pub(crate) const HUGE_PAGE: usize = 2 << 20;

/// Asks Linux for huge pages where they pay: weights and KV are streamed, and with small pages
/// every 4 KiB costs a walk of the page tables. `start`, `bytes`: an allocation of the caller's.
pub(crate) fn advise_huge_pages(start: usize, bytes: usize) {
    #[cfg(target_os = "linux")]
    {
        extern "C" {
            fn madvise(start: *mut std::ffi::c_void, len: usize, advice: i32) -> i32;
        }
        const MADV_HUGEPAGE: i32 = 14;
        let first = start.next_multiple_of(HUGE_PAGE);
        let end = start + bytes;
        if end.saturating_sub(first) >= HUGE_PAGE {
            let len = (end - first) / HUGE_PAGE * HUGE_PAGE;
            // SAFETY: the pages lie inside of one allocation; the advice changes no content, and a
            // refusal changes nothing at all.
            unsafe { madvise(first as *mut std::ffi::c_void, len, MADV_HUGEPAGE) };
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (start, bytes);
}

/// `len` blocks of zeros.
pub fn zeroed(len: usize) -> Result<Vec<Block>, Error> {
    let mut blocks = with_capacity(len)?;
    blocks.resize(len, Block::ZERO);
    Ok(blocks)
}

/// Blocks of zeros that take no memory until they are written. The allocator hands out fresh pages
/// as they are only for its own alignment, 16 bytes (for a larger one it writes the zeros itself);
/// so the blocks lie somewhere inside of an allocation of that alignment.
pub struct LazyBlocks {
    memory: Vec<u128>,
    len: usize,
}

impl LazyBlocks {
    pub fn zeroed(len: usize) -> Result<Self, Error> {
        let refused = || no_memory(len.saturating_mul(std::mem::size_of::<Block>()));
        let words = len.checked_mul(4).and_then(|words| words.checked_add(4));
        let words = words.ok_or_else(refused)?;
        let layout = std::alloc::Layout::array::<u128>(words).map_err(|_| refused())?;
        // SAFETY: the layout is not empty; the vector takes over memory of exactly its layout, all
        // of it initialised.
        let memory = unsafe {
            let start = std::alloc::alloc_zeroed(layout).cast::<u128>();
            if start.is_null() {
                return Err(refused());
            }
            Vec::from_raw_parts(start, words, words)
        };
        advise_huge_pages(memory.as_ptr() as usize, layout.size());
        Ok(Self { memory, len })
    }
}

impl std::ops::Deref for LazyBlocks {
    type Target = [Block];

    fn deref(&self) -> &[Block] {
        // SAFETY: any 64 aligned bytes are a Block; align_to gives the aligned middle.
        let (_, blocks, _) = unsafe { self.memory.align_to() };
        &blocks[..self.len]
    }
}

impl std::ops::DerefMut for LazyBlocks {
    fn deref_mut(&mut self) -> &mut [Block] {
        // SAFETY: as in `deref`.
        let (_, blocks, _) = unsafe { self.memory.align_to_mut() };
        &mut blocks[..self.len]
    }
}

/// Blocks that hold `len` floats.
pub fn blocks_for(len: usize) -> usize {
    len.div_ceil(LANES)
}

/// The floats of `blocks`, padding included.
pub fn floats(blocks: &[Block]) -> &[f32] {
    // SAFETY: a Block is LANES floats and nothing else (repr(C), size 64 = align 64).
    unsafe { std::slice::from_raw_parts(blocks.as_ptr().cast(), blocks.len() * LANES) }
}

/// The floats of `blocks`, padding included.
pub fn floats_mut(blocks: &mut [Block]) -> &mut [f32] {
    // SAFETY: as in `floats`; the exclusive borrow is passed on.
    unsafe { std::slice::from_raw_parts_mut(blocks.as_mut_ptr().cast(), blocks.len() * LANES) }
}

/// A buffer that tasks of one job write together, each its own part.
#[derive(Clone, Copy)]
pub struct SharedFloats<'a> {
    start: *mut f32,
    len: usize,
    owner: std::marker::PhantomData<&'a mut [f32]>,
}

// SAFETY: access goes through `slice`, whose caller promises disjoint parts.
unsafe impl Send for SharedFloats<'_> {}
// SAFETY: as for Send.
unsafe impl Sync for SharedFloats<'_> {}

impl<'a> SharedFloats<'a> {
    pub fn new(floats: &'a mut [f32]) -> Self {
        Self {
            start: floats.as_mut_ptr(),
            len: floats.len(),
            owner: std::marker::PhantomData,
        }
    }

    /// The floats at `start..start + len`.
    ///
    /// # Safety
    /// While the slice lives nobody else reads or writes this range.
    ///
    /// # Panics
    /// When the range is not inside the buffer.
    #[allow(clippy::mut_from_ref)]
    #[inline(always)]
    pub unsafe fn slice(&self, start: usize, len: usize) -> &'a mut [f32] {
        assert!(
            start <= self.len && len <= self.len - start,
            "range outside of the buffer"
        );
        std::slice::from_raw_parts_mut(self.start.add(start), len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages of this process in memory.
    #[cfg(target_os = "linux")]
    fn resident() -> usize {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
        statm.split(' ').nth(1).unwrap().parse().unwrap()
    }

    #[test]
    fn lazy_blocks_are_zeros_and_keep_what_is_written() {
        for len in [0, 1, 3, 100_000] {
            let mut blocks = LazyBlocks::zeroed(len).unwrap();
            assert_eq!(blocks.len(), len);
            assert!(blocks.iter().all(|block| *block == Block::ZERO));
            for (i, block) in blocks.iter_mut().enumerate() {
                *block = Block([i as f32; LANES]);
            }
            assert!((0..len).all(|i| blocks[i] == Block([i as f32; LANES])));
        }
        assert!(LazyBlocks::zeroed(usize::MAX / 64).is_err());
        assert!(LazyBlocks::zeroed(1 << 52).is_err());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn lazy_blocks_take_no_memory_until_they_are_written() {
        let (before, len) = (resident(), (1 << 30) / 64);
        let mut blocks = LazyBlocks::zeroed(len).unwrap();
        blocks[len / 2] = Block([1.0; LANES]);
        // The other tests of this program take some too, but far less than the GiB.
        let taken = resident().saturating_sub(before) * 4096;
        assert!(taken < 256 << 20, "{taken} bytes");
        assert_eq!(blocks[len / 2 + 1], Block::ZERO);
    }
}
