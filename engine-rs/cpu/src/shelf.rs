//! Where weights lie: matrices side by side in a few large pieces of memory, so that all are on
//! huge pages, however small they are. With small ones every 4 KiB of weights would cost a walk of
//! the page tables, and end what the processor reads ahead.

use std::alloc::{alloc, dealloc, Layout};
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::lanes::Block;
use crate::memory::{advise_huge_pages, Error, HUGE_PAGE};

/// Bytes of a piece, unless a matrix needs more; what is not written takes no memory.
const PIECE: usize = 64 << 20;

struct Piece {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: a piece is plain memory; nothing is written to it after items were handed out.
unsafe impl Send for Piece {}
// SAFETY: as for Send.
unsafe impl Sync for Piece {}

impl Piece {
    /// As large as is good for what comes after, or at least for this.
    fn new(bytes: usize) -> Result<Self, Error> {
        Self::of_size(bytes.max(PIECE)).or_else(|_| Self::of_size(bytes))
    }

    fn of_size(bytes: usize) -> Result<Self, Error> {
        let refused = || Error::no_memory(bytes, "");
        let size = bytes
            .max(1)
            .checked_next_multiple_of(HUGE_PAGE)
            .ok_or_else(refused)?;
        let layout = Layout::from_size_align(size, HUGE_PAGE).map_err(|_| refused())?;
        // SAFETY: the size is not 0.
        let start = NonNull::new(unsafe { alloc(layout) }).ok_or_else(refused)?;
        advise_huge_pages(start.as_ptr() as usize, size);
        Ok(Self { start, layout })
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and nobody holds items in it any more.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

/// Hands out room in pieces.
#[derive(Default)]
pub struct Shelf {
    piece: Option<Arc<Piece>>,
    used: usize,
}

/// Items that were put on a shelf. They stay as they are.
pub struct Shelved<T> {
    start: NonNull<T>,
    len: usize,
    _piece: Arc<Piece>,
}

// SAFETY: the items are shared, and only read.
unsafe impl<T: Sync> Send for Shelved<T> {}
// SAFETY: as for Send.
unsafe impl<T: Sync> Sync for Shelved<T> {}

impl Shelf {
    /// Puts down the first `len` items (all, if there are fewer).
    pub fn put<T: Copy>(
        &mut self,
        len: usize,
        items: impl Iterator<Item = T>,
    ) -> Result<Shelved<T>, Error> {
        const { assert!(align_of::<T>() <= align_of::<Block>()) };
        let bytes = len.checked_mul(size_of::<T>());
        let bytes = bytes.and_then(|bytes| bytes.checked_next_multiple_of(align_of::<Block>()));
        let bytes = bytes.ok_or_else(|| Error::no_memory(usize::MAX, ""))?;
        let piece = match self.piece.take() {
            Some(piece) if bytes <= piece.layout.size() - self.used => piece,
            _ => {
                self.used = 0;
                Arc::new(Piece::new(bytes)?)
            }
        };
        // SAFETY: `used` is within the piece, and a multiple of the alignment, as the start is.
        let start = unsafe { piece.start.add(self.used) }.cast::<T>();
        let mut count = 0;
        for item in items.take(len) {
            // SAFETY: item `count` of `len` lies in the `bytes` from `start` on, which nobody else
            // was given.
            unsafe { start.add(count).write(item) };
            count += 1;
        }
        self.used += bytes;
        self.piece = Some(piece.clone());
        Ok(Shelved {
            start,
            len: count,
            _piece: piece,
        })
    }
}

impl<T> Deref for Shelved<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `len` items were written from `start` on, and the piece is kept.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_keep_their_values_and_their_memory() {
        let mut shelf = Shelf::default();
        let small: Vec<_> = (0..100u32)
            .map(|n| shelf.put(n as usize, (0..).map(|i| i * n)).unwrap())
            .collect();
        let large = shelf.put(PIECE / 8 + 1, 0..u64::MAX).unwrap();
        let bytes = shelf.put(9, [1u8, 2].into_iter()).unwrap();
        drop(shelf);
        for (n, items) in small.iter().enumerate() {
            assert_eq!(items.len(), n);
            assert!(items.iter().zip(0..).all(|(&item, i)| item == i * n as u32));
            assert_eq!(items.as_ptr() as usize % 64, 0);
        }
        drop(small);
        assert!(large.len() == PIECE / 8 + 1 && large.iter().zip(0..).all(|(&x, i)| x == i));
        assert_eq!(bytes[..], [1, 2]);
    }

    #[test]
    fn a_size_that_overflows_is_refused() {
        let mut shelf = Shelf::default();
        assert!(shelf.put(usize::MAX / 4, [1u64].into_iter()).is_err());
        assert!(shelf.put(usize::MAX / 16, [1u64].into_iter()).is_err());
        assert_eq!(shelf.put(1, [1u64].into_iter()).unwrap()[..], [1]);
    }
}
