//! libfreestone as a program's global allocator:
//!
//! ```
//! #[global_allocator]
//! static ALLOCATOR: freestone::Freestone = freestone::Freestone;
//!
//! fn main() {
//!     let words = vec!["served", "by", "freestone"];
//!     assert!(freestone::statistics().in_use > 0);
//!     println!("{} under {}", words.join(" "), freestone::version());
//! }
//! ```
//!
//! Rust's own memory is served, and that alone: `malloc` of the C libraries in the program stays what it was. With the feature
//! `override` they are served as well, by one heap.
//!
//! What the allocator can be told, without a rebuild, is said by the environment variable `FREESTONE_OPTIONS`: `harden=1` for one
//! that stops at misuse, `guard=1000` for guard pages around one block in a thousand, and more.
#![no_std]

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
compile_error!("freestone serves 64-bit Linux only");

use core::alloc::{GlobalAlloc, Layout};
use core::ffi::{c_char, c_void, CStr};

/// What every block is aligned to, whatever its size, in bytes.
const ALWAYS: usize = 16;

mod native {
    use super::{c_char, c_void, Statistics};

    extern "C" {
        #[cfg_attr(not(feature = "override"), link_name = "freestone_malloc")]
        pub fn malloc(size: usize) -> *mut c_void;
        #[cfg_attr(not(feature = "override"), link_name = "freestone_calloc")]
        pub fn calloc(count: usize, size: usize) -> *mut c_void;
        #[cfg_attr(not(feature = "override"), link_name = "freestone_realloc")]
        pub fn realloc(block: *mut c_void, size: usize) -> *mut c_void;
        #[cfg_attr(not(feature = "override"), link_name = "freestone_aligned_alloc")]
        pub fn aligned_alloc(alignment: usize, size: usize) -> *mut c_void;
        #[cfg_attr(not(feature = "override"), link_name = "freestone_free_sized")]
        pub fn free_sized(block: *mut c_void, size: usize);
        #[cfg_attr(not(feature = "override"), link_name = "freestone_free_aligned_sized")]
        pub fn free_aligned_sized(block: *mut c_void, alignment: usize, size: usize);
        pub fn freestone_version() -> *const c_char;
        pub fn freestone_purge() -> usize;
        pub fn freestone_stats_read(stats: *mut Statistics);
    }
}

/// The allocator: it has no state of its own, and every value of this type is the same heap.
#[derive(Clone, Copy, Debug, Default)]
pub struct Freestone;

// SAFETY: blocks are of at least the size and the alignment that was asked for, belong to the caller until freed, and are freed by
// the family that made them; nothing unwinds; the functions are thread-safe and call none of Rust's allocator.
unsafe impl GlobalAlloc for Freestone {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: an alignment is a power of two.
        unsafe {
            if layout.align() <= ALWAYS {
                native::malloc(layout.size()).cast()
            } else {
                native::aligned_alloc(layout.align(), layout.size()).cast()
            }
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= ALWAYS {
            // SAFETY: any size may be asked for.
            return unsafe { native::calloc(1, layout.size()).cast() };
        }
        // SAFETY: the caller's promises are handed on.
        let block = unsafe { self.alloc(layout) };
        if !block.is_null() {
            // SAFETY: it is that large, and nobody else's.
            unsafe { block.write_bytes(0, layout.size()) };
        }
        block
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller says that the block is of this layout, so it came from the family that is called here.
        unsafe {
            if layout.align() <= ALWAYS {
                native::free_sized(block.cast(), layout.size());
            } else {
                native::free_aligned_sized(block.cast(), layout.align(), layout.size());
            }
        }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if layout.align() <= ALWAYS {
            // SAFETY: the caller says that the block is of this layout and `size` is not 0.
            return unsafe { native::realloc(block.cast(), size).cast() };
        }
        // realloc promises 16 bytes of alignment only.
        // SAFETY: the caller says that `size`, rounded up to the alignment, does not overflow.
        let moved = unsafe { self.alloc(Layout::from_size_align_unchecked(size, layout.align())) };
        if !moved.is_null() {
            // SAFETY: both are at least that long, and they are two.
            unsafe {
                core::ptr::copy_nonoverlapping(block, moved, layout.size().min(size));
                self.dealloc(block, layout);
            }
        }
        moved
    }
}

/// What the library holds at the moment, in bytes unless said. Parts are read one after the other, and may be a little apart while
/// other threads run.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Address space of the arena; costs no memory.
    pub reserved: usize,
    /// Of which ever handed out.
    pub extent: usize,
    /// Blocks the program holds, by size class; what threads keep for reuse counts as held.
    pub in_use: usize,
    /// Of which in spans and mappings of their own.
    pub large: usize,
    /// Spans cut into blocks.
    pub slabs: usize,
    /// Free in slabs.
    pub free_blocks: usize,
    /// Free spans kept for reuse, not yet given back.
    pub retained: usize,
    /// Given back to the system since the start.
    pub purged: usize,
    /// What the allocator needs for itself.
    pub bookkeeping: usize,
    /// Number of mappings of their own: blocks above 128 MiB.
    pub mappings: usize,
    /// Their bytes; part of `large`.
    pub mapped: usize,
    /// Number of heaps in use.
    pub heaps: usize,
    /// Pages of free blocks that the kernel has back; part of `slabs` and `free_blocks`.
    pub clean: usize,
    /// Number of guards that were asked for by `harden=1` or `guard=N` and left out: refused by the system, or too many.
    pub unguarded: usize,
    /// Number of blocks that `guard=N` has guarded since the start.
    pub guarded: usize,
}

/// The library's figures now.
#[must_use]
pub fn statistics() -> Statistics {
    let mut figures = Statistics::default();
    // SAFETY: the two structures have the same fields in the same order, and it writes one of them.
    unsafe { native::freestone_stats_read(&mut figures) };
    figures
}

/// Gives every page that holds no block back to the system, as far as whole free spans go; returns the bytes given back.
pub fn purge() -> usize {
    // SAFETY: may be called at any time, by any thread.
    unsafe { native::freestone_purge() }
}

/// The version of libfreestone, for example `0.1.0`.
#[must_use]
pub fn version() -> &'static str {
    // SAFETY: it is a constant of the library, and ends with a zero.
    let text = unsafe { CStr::from_ptr(native::freestone_version()) };
    text.to_str().unwrap_or("")
}
