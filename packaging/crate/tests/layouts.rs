//! Every layout, by chance: alignment, contents and zeroes, over many steps of alloc, realloc and dealloc.

use std::alloc::{GlobalAlloc, Layout};

#[global_allocator]
static ALLOCATOR: freestone::Freestone = freestone::Freestone;

const SERVED: freestone::Freestone = freestone::Freestone;

/// xorshift64*: the same numbers in every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let high = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32;
        usize::try_from(high).expect("32 bits") % bound
    }

    /// Small ones mostly, and some of every power of two up to 4 MiB. Never 0, as for any `GlobalAlloc`.
    fn size(&mut self) -> usize {
        let scale = if self.below(8) == 0 { 22 } else { 11 };
        let power = self.below(scale + 1);
        1 + self.below(1 << power)
    }

    /// From 1 to 64 KiB, mostly what types have.
    fn align(&mut self) -> usize {
        let most = if self.below(8) == 0 { 17 } else { 7 };
        1 << self.below(most)
    }
}

/// A block and what was written into it.
struct Held {
    block: *mut u8,
    layout: Layout,
    mark: u8,
}

impl Held {
    /// Written at every 61st byte, and at the last one: a step that is a part of no size.
    fn places(size: usize) -> impl Iterator<Item = usize> {
        (0..size).step_by(61).chain(std::iter::once(size - 1))
    }

    fn write(&self) {
        for place in Self::places(self.layout.size()) {
            // SAFETY: inside the block.
            unsafe { self.block.add(place).write(self.mark) };
        }
    }

    fn check(&self, size: usize) {
        for place in (0..size).step_by(61) {
            // SAFETY: inside the block.
            let byte = unsafe { self.block.add(place).read() };
            assert_eq!(byte, self.mark, "byte {place} of {:?}", self.layout);
        }
        assert_eq!(
            self.block as usize % self.layout.align(),
            0,
            "{:?}",
            self.layout
        );
    }
}

fn take(chance: &mut Chance) -> Held {
    let layout = Layout::from_size_align(chance.size(), chance.align()).expect("a layout");
    let zeroed = chance.below(3) == 0;
    // SAFETY: the size is not 0.
    let block = unsafe {
        if zeroed {
            SERVED.alloc_zeroed(layout)
        } else {
            SERVED.alloc(layout)
        }
    };
    assert!(!block.is_null(), "{layout:?}");
    if zeroed {
        // SAFETY: it is of that size.
        let bytes = unsafe { std::slice::from_raw_parts(block, layout.size()) };
        assert!(bytes.iter().all(|&byte| byte == 0), "{layout:?}");
    }
    let mark = u8::try_from(1 + chance.below(255)).expect("a byte");
    let held = Held {
        block,
        layout,
        mark,
    };
    held.write();
    held.check(layout.size());
    held
}

fn resize(held: &mut Held, size: usize) {
    let least = held.layout.size().min(size);
    // SAFETY: the block is of that layout, and the size is not 0.
    let block = unsafe { SERVED.realloc(held.block, held.layout, size) };
    assert!(!block.is_null());
    held.block = block;
    held.layout = Layout::from_size_align(size, held.layout.align()).expect("a layout");
    held.check(least);
    held.write();
}

fn give_back(held: &Held) {
    held.check(held.layout.size());
    // SAFETY: the block is of that layout, and nobody has it any more.
    unsafe { SERVED.dealloc(held.block, held.layout) };
}

#[test]
fn blocks_keep_their_alignment_and_what_is_in_them() {
    let mut chance = Chance(0x5EED);
    let mut all: Vec<Held> = Vec::new();
    for _ in 0..60_000 {
        match chance.below(8) {
            0..=3 if all.len() < 400 => all.push(take(&mut chance)),
            4 | 5 if !all.is_empty() => {
                let which = chance.below(all.len());
                let size = chance.size();
                resize(&mut all[which], size);
            }
            _ if !all.is_empty() => {
                let which = chance.below(all.len());
                give_back(&all.swap_remove(which));
            }
            _ => {}
        }
    }
    all.iter().for_each(give_back);
}

#[test]
fn every_alignment_up_to_two_mebibytes_is_kept_by_every_way_to_a_block() {
    for power in 0..=21 {
        for size in [1, 8, 15, 16, 17, 100, 4096, 70_000] {
            let layout = Layout::from_size_align(size, 1 << power).expect("a layout");
            // SAFETY: the size is not 0.
            let mut held = unsafe {
                [SERVED.alloc(layout), SERVED.alloc_zeroed(layout)].map(|block| Held {
                    block,
                    layout,
                    mark: 0x5A,
                })
            };
            for each in &mut held {
                assert!(!each.block.is_null());
                each.write();
                each.check(size);
                resize(each, size * 3);
                resize(each, size);
            }
            held.iter().for_each(give_back);
        }
    }
}

#[test]
fn zeroed_is_zero_where_others_have_written() {
    for size in [1, 16, 64, 1000, 4096, 40_000, 300_000] {
        for align in [1, 16, 32, 4096] {
            let layout = Layout::from_size_align(size, align).expect("a layout");
            for _ in 0..64 {
                // SAFETY: the size is not 0, and each block is freed once, as what it is.
                unsafe {
                    let dirty = SERVED.alloc(layout);
                    dirty.write_bytes(0xFF, size);
                    SERVED.dealloc(dirty, layout);
                    let zeroed = SERVED.alloc_zeroed(layout);
                    assert!(
                        std::slice::from_raw_parts(zeroed, size)
                            .iter()
                            .all(|&byte| byte == 0),
                        "{layout:?}"
                    );
                    zeroed.write_bytes(0xFF, size);
                    SERVED.dealloc(zeroed, layout);
                }
            }
        }
    }
}

#[test]
fn what_cannot_be_had_is_null() {
    let layout = Layout::from_size_align(isize::MAX as usize - 4095, 4096).expect("a layout");
    // SAFETY: the size is not 0.
    assert!(unsafe { SERVED.alloc(layout) }.is_null());
    let small = Layout::from_size_align(isize::MAX as usize - 7, 8).expect("a layout");
    // SAFETY: the size is not 0.
    assert!(unsafe { SERVED.alloc_zeroed(small) }.is_null());
    let mut some: Vec<u8> = Vec::new();
    assert!(some.try_reserve_exact(isize::MAX as usize).is_err());
}
