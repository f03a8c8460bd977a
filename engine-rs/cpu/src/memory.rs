//! Allocation that fails with an error, and the one type of error.

use crate::lanes::{Block, LANES};

/// A refused argument, or memory that could not be had. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error(String);

impl Error {
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

/// An empty vector with room for `len` items.
pub fn with_capacity<T>(len: usize) -> Result<Vec<T>, Error> {
    let mut items = Vec::new();
    items.try_reserve_exact(len).map_err(|_| {
        let mib = len.saturating_mul(std::mem::size_of::<T>()) >> 20;
        Error::new(format!(
            "not enough memory: {mib} MiB could not be allocated"
        ))
    })?;
    advise_huge_pages(&items);
    Ok(items)
}

/// Asks Linux for huge pages where they pay: weights and KV are streamed, and with small pages
/// every 4 KiB costs a walk of the page tables.
fn advise_huge_pages<T>(items: &Vec<T>) {
    #[cfg(target_os = "linux")]
    {
        extern "C" {
            fn madvise(start: *mut std::ffi::c_void, len: usize, advice: i32) -> i32;
        }
        const HUGE_PAGE: usize = 2 << 20;
        const MADV_HUGEPAGE: i32 = 14;
        let start = items.as_ptr() as usize;
        let end = start + items.capacity() * std::mem::size_of::<T>();
        let first = start.next_multiple_of(HUGE_PAGE);
        if end.saturating_sub(first) >= HUGE_PAGE {
            let len = (end - first) / HUGE_PAGE * HUGE_PAGE;
            // SAFETY: the pages lie inside of our allocation; the advice changes no content, and a
            // refusal changes nothing at all.
            unsafe { madvise(first as *mut std::ffi::c_void, len, MADV_HUGEPAGE) };
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = items;
}

/// `len` blocks of zeros.
pub fn zeroed(len: usize) -> Result<Vec<Block>, Error> {
    let mut blocks = with_capacity(len)?;
    blocks.resize(len, Block::ZERO);
    Ok(blocks)
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
