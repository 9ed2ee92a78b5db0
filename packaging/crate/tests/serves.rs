//! Whose memory it is that a program gets.

use std::ffi::{c_char, c_void};

#[global_allocator]
static ALLOCATOR: freestone::Freestone = freestone::Freestone;

/// Larger than anything the arena serves: it becomes a mapping of its own, which is counted one by one.
const MAPPED: usize = 200 << 20;

extern "C" {
    fn strndup(text: *const c_char, most: usize) -> *mut c_char;
    fn free(block: *mut c_void);
}

/// One test, and so one thread: the figures are the whole process's.
#[test]
fn rusts_memory_is_served_and_cs_as_the_feature_says() {
    let before = freestone::statistics();
    let large = vec![1_u8; MAPPED];
    let with_it = freestone::statistics();
    assert_eq!(with_it.mappings, before.mappings + 1);
    assert!(with_it.mapped - before.mapped >= MAPPED);
    drop(large);
    assert_eq!(freestone::statistics().mappings, before.mappings);

    let mut text = vec![b'x'; MAPPED];
    text.push(0);
    let before = freestone::statistics();
    // SAFETY: the text ends with a zero, and what it gives is freed by the function that belongs to it.
    let copied = unsafe {
        let copy = strndup(text.as_ptr().cast(), MAPPED);
        assert!(!copy.is_null());
        let copied = freestone::statistics().mappings - before.mappings;
        free(copy.cast());
        copied
    };
    assert_eq!(
        copied,
        usize::from(cfg!(feature = "override")),
        "what libc asked malloc for"
    );
    assert_eq!(freestone::statistics().mappings, before.mappings);
}

#[test]
fn it_says_which_version_it_is() {
    assert_eq!(freestone::version(), env!("CARGO_PKG_VERSION"));
}
