#include "os.h"

#include "memory_hooks.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef MREMAP_MAYMOVE
#define MREMAP_MAYMOVE 1
#define MREMAP_FIXED 2
#endif
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

long os_call(long number, long a, long b, long c, long d, long e, long f) {
#if defined(__x86_64__)
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
#else
    int saved = errno;
    long result = syscall(number, a, b, c, d, e, f);
    if (result == -1) {
        result = -errno;
    }
    errno = saved;
    return result;
#endif
}

/* The library's own take five arguments at most. */
static long kernel(long number, long a, long b, long c, long d, long e) { return os_call(number, a, b, c, d, e, 0); }

#if !defined(__x86_64__)
#ifndef OS_PAGE_LEAST
#define OS_PAGE_LEAST 4096 /* a build for an emulator says more (cmake/cross.cmake) */
#endif

size_t os_page_bytes(void) {
    static size_t cached; /* every thread would store the same value */
    size_t bytes = __atomic_load_n(&cached, __ATOMIC_RELAXED);
    if (bytes == 0) {
        /* Asked by a range of no bytes, which has to begin with a page: a program may replace getauxval. If it is refused, the largest will do. */
        bytes = OS_PAGE_LEAST;
        while (bytes < OS_PAGE_MOST && kernel(SYS_madvise, (long)bytes, 0, MADV_NORMAL, 0, 0) != 0) {
            bytes *= 2;
        }
        __atomic_store_n(&cached, bytes, __ATOMIC_RELAXED);
    }
    return bytes;
}
#endif

/* Only mmap and mremap return addresses; the last page of the address space is never one. */
static void *address_or_null(long result) { return result < 0 && result > -4096 ? NULL : (void *)result; }

static void *map_anywhere(size_t bytes, int protection, int flags) {
    return address_or_null(kernel(SYS_mmap, 0, (long)bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1));
}

/* Maps `bytes` at a multiple of `alignment`: more is mapped where the kernel's choice does not fit, and the ends are
 * given back. */
static void *map_aligned(size_t bytes, size_t alignment, int protection, int flags) {
    void *at = map_anywhere(bytes, protection, flags);
    if (at == NULL || ((uintptr_t)at & (alignment - 1)) == 0) {
        return at;
    }
    (void)os_unmap_unseen(at, bytes);
    size_t slack = alignment - os_page_bytes();
    if (bytes + slack < bytes) {
        return NULL;
    }
    at = map_anywhere(bytes + slack, protection, flags);
    if (at == NULL) {
        return NULL;
    }
    uintptr_t start = (uintptr_t)at;
    uintptr_t fit = bits_round_up(start, alignment);
    size_t head = fit - start;
    if (head > 0) {
        (void)os_unmap_unseen(at, head);
    }
    if (slack > head) {
        (void)os_unmap_unseen((void *)(fit + bytes), slack - head);
    }
    return (void *)fit;
}

void *os_reserve(size_t bytes, size_t alignment) { return map_aligned(bytes, alignment, PROT_NONE, MAP_NORESERVE); }

bool os_commit(void *at, size_t bytes) {
    return kernel(SYS_mprotect, (long)at, (long)bytes, PROT_READ | PROT_WRITE, 0, 0) == 0;
}

static bool may_be_filtered(void);

bool os_seal(void *const *places, size_t count, bool sealed) {
#if defined(__x86_64__)
    if (may_be_filtered()) {
        return false;
    }
    size_t page = os_page_bytes();
    uintptr_t start = UINTPTR_MAX, end = 0; /* they lie side by side */
    for (size_t i = 0; i < count; i++) {
        start = bits_min(start, (uintptr_t)places[i] & ~(page - 1));
        end = bits_max(end, bits_round_up((uintptr_t)places[i] + sizeof(void *), page));
    }
    return kernel(SYS_mprotect, (long)start, (long)(end - start), PROT_READ | (sealed ? 0 : PROT_WRITE), 0, 0) == 0;
#else
    (void)places;
    (void)count;
    (void)sealed;
    return true;
#endif
}

bool os_guard(void *at, size_t bytes) { return kernel(SYS_mprotect, (long)at, (long)bytes, PROT_NONE, 0, 0) == 0; }

/* Each word is its own: whoever learns one of them has learned no other. */
void os_random(void *at, size_t bytes) {
    if (kernel(SYS_getrandom, (long)at, (long)bytes, 1 /* GRND_NONBLOCK */, 0, 0) == (long)bytes) {
        return;
    }
    uint64_t weak = (uintptr_t)&weak * UINT64_C(0x9E3779B97F4A7C15);
    for (size_t done = 0; done < bytes; done += sizeof weak) {
        weak = (weak ^ weak >> 31) * UINT64_C(0xbf58476d1ce4e5b9) + os_nanoseconds();
        uint64_t word = weak ^ weak >> 29;
        memcpy((char *)at + done, &word, bits_min(bytes - done, sizeof word));
    }
}

void os_decommit(void *at, size_t bytes) {
    (void)os_purge_unseen(at, bytes);
    (void)kernel(SYS_mprotect, (long)at, (long)bytes, PROT_NONE, 0, 0);
}

void *os_find(size_t bytes, size_t alignment) {
    void *at = os_reserve(bytes, alignment);
    if (at != NULL) {
        (void)os_unmap_unseen(at, bytes);
    }
    return at;
}

enum os_answer os_map_at(void *at, size_t bytes) {
    enum { FLAGS = MAP_PRIVATE | MAP_ANONYMOUS };
    long result = kernel(SYS_mmap, (long)at, (long)bytes, PROT_READ | PROT_WRITE, FLAGS | MAP_FIXED_NOREPLACE, -1);
    if (address_or_null(result) == NULL && result != -EEXIST && result != -ENOMEM) {
        /* A filter may know only the flags that libc's malloc passes. The address is but a wish then. */
        result = kernel(SYS_mmap, (long)at, (long)bytes, PROT_READ | PROT_WRITE, FLAGS, -1);
    }
    if (result == (long)at) {
        return OS_DONE;
    }
    if (address_or_null(result) != NULL) { /* such a wish, as the flag is to a kernel before 4.17 */
        (void)os_unmap_unseen((void *)result, bytes);
        return OS_OCCUPIED;
    }
    return result == -EEXIST ? OS_OCCUPIED : OS_REFUSED;
}

/* The kernel gives an address to one thread only after another has given it back. The thread sanitizer does not see these calls
 * and is told in its own words: whoever maps comes after whoever has unmapped (acquire and release in one). */
static void order_for_sanitizer(void) {
#ifdef __SANITIZE_THREAD__
    static _Atomic uint32_t turns;
    (void)atomic_fetch_add_explicit(&turns, 1, memory_order_acq_rel);
#endif
}

void *os_map(size_t bytes, size_t alignment) {
    void *at = map_aligned(bytes, alignment, PROT_READ | PROT_WRITE, 0);
    order_for_sanitizer();
    return at;
}

bool os_has_room(size_t bytes) {
    bytes = bits_round_up(bytes, os_page_bytes());
    void *at = os_map(bytes, os_page_bytes());
    if (at != NULL) {
        (void)os_unmap_unseen(at, bytes);
    }
    return at != NULL;
}

bool os_unmap_unseen(void *at, size_t bytes) {
    order_for_sanitizer();
    bool unmapped = kernel(SYS_munmap, (long)at, (long)bytes, 0, 0, 0) == 0;
    if (!unmapped) {
        (void)os_purge_unseen(at, bytes); /* too many mappings to split one: at least the memory goes back */
    }
    return unmapped;
}

/* Of a page that is locked the kernel takes nothing back. */
bool os_locks_what_comes(void) {
    void *page = os_map(os_page_bytes(), os_page_bytes());
    bool locked = page != NULL && kernel(SYS_madvise, (long)page, (long)os_page_bytes(), MADV_DONTNEED, 0, 0) != 0;
    if (page != NULL) {
        (void)os_unmap_unseen(page, os_page_bytes());
    }
    return locked;
}

/* -- seen by memory hooks ------------------------------------------------------------------------------------ */

/* Memory to be unmapped by a thread that may not do so now: freed within a hook, or found by the keeper beside one. Described at its own start.
 * Release when put there and acquire when taken: who unmaps it finds the description. */
struct postponed {
    struct postponed *next;
    size_t bytes;
};
static _Atomic(struct postponed *) all_postponed;

static void postpone(void *at, size_t bytes) {
    if (!os_commit(at, os_page_bytes())) { /* nobody may have been allowed to write there */
        (void)os_unmap_unseen(at, bytes);
        return;
    }
    struct postponed *postponed = at;
    postponed->bytes = bytes;
    postponed->next = atomic_load_explicit(&all_postponed, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&all_postponed, &postponed->next, postponed, memory_order_release,
                                                  memory_order_relaxed)) {
    }
}

static void unmap(void *at, size_t bytes) {
    order_for_sanitizer();
    if (!memory_hooks_munmap(at, bytes)) { /* what a hook refuses it has seen */
        os_unmap_unseen(at, bytes);
    }
}

/* To be called behind each call that a hook may have seen. What is freed within the hooks of these calls is unmapped here too. */
static void unmap_postponed(void) {
    while (unlikely(atomic_load_explicit(&all_postponed, memory_order_relaxed) != NULL) && memory_hooks_may_call()) {
        struct postponed *postponed = atomic_exchange_explicit(&all_postponed, NULL, memory_order_acquire);
        while (postponed != NULL) {
            struct postponed *next = postponed->next;
            unmap(postponed, postponed->bytes);
            postponed = next;
        }
    }
}

void os_unmap(void *at, size_t bytes) {
    if (!memory_hooks_may_call()) {
        postpone(at, bytes);
        return;
    }
    unmap(at, bytes);
    unmap_postponed();
}

/* `to` matters only where the flags ask for a place. */
static void *move(void *at, size_t old_bytes, size_t new_bytes, int flags, void *to) {
    if (!memory_hooks_may_call()) {
        return NULL;
    }
    void *moved = memory_hooks_mremap(at, old_bytes, new_bytes, flags, to);
    unmap_postponed();
    return moved;
}

void *os_remap(void *at, size_t old_bytes, size_t new_bytes) {
    return move(at, old_bytes, new_bytes, MREMAP_MAYMOVE, NULL);
}

enum { COLD = 20 }; /* MADV_COLD: younger than some headers */

void *os_move(void *at, size_t bytes) {
    enum { DONTUNMAP = 4 }; /* MREMAP_DONTUNMAP: younger than some headers */
    /* A move that leaves the old mapping there unlocks all of it: whoever locked memory would lose that unasked. */
    if (kernel(SYS_madvise, (long)at, (long)os_page_bytes(), COLD, 0, 0) != 0) {
        return NULL;
    }
    return move(at, bytes, bytes, MREMAP_MAYMOVE | DONTUNMAP, NULL);
}

/* -- piece by piece -------------------------------------------------------------------------------------------- */

/* Before 6.17 the kernel moves no range that lies in several mappings, and neighbours that it could join may stay several: where huge pages were
 * asked for in one of them when it had pages already, or after a fork. The pieces keep what each mapping is (locked, advised, protected).
 *
 * A piece takes its address space along: no other thread can use up in between what a limit leaves. In return the place that it moves to is reserved
 * only if the limit has room for that too. It is therefore one where the kernel puts nothing by its own choice. Nothing moves back, since the kernel
 * may have given the old addresses to another thread: a move that has begun goes on until it is done. */
enum {
    MOVE_ALIGNMENT = 2 * 1024 * 1024
}; /* pages that are huge stay so where both places differ by a multiple, and advice ends there */

/* A place far from where the kernel puts mappings, and not in the heap's street: it changes from call to call. 0 when memory is out. */
static uintptr_t far_place(const void *from) {
    enum { SHARE = 16, STEPS = 4096, TURNS = 128 }; /* between an 16th and 3 32nds below the kernel's choice */
    static _Atomic uint32_t turns; /* relaxed: any will do */
    uint32_t turn = atomic_fetch_add_explicit(&turns, 1, memory_order_relaxed) % TURNS;
    uintptr_t near = (uintptr_t)os_find(os_page_bytes(), os_page_bytes());
    uintptr_t place = (near - near / SHARE - near / STEPS * turn) & ~(uintptr_t)(MOVE_ALIGNMENT - 1);
    return near == 0 ? 0 : place + (uintptr_t)from % MOVE_ALIGNMENT;
}

/* Where pages move to. `claimed` bytes behind those that have moved are mapped and empty. */
struct place {
    char *at;
    size_t claimed;
};

/* Finds a place of `new_bytes` that nobody has, and maps what lies behind the first `bytes`: only that can be refused by a limit. */
static bool find_place(struct place *place, const void *from, size_t bytes, size_t new_bytes) {
    enum { PLACES = 8 };
    enum os_answer answer = OS_OCCUPIED;
    for (int i = 0; i < PLACES && answer == OS_OCCUPIED; i++) {
        place->at = (char *)far_place(from);
        answer = place->at == NULL ? OS_REFUSED : os_map_at(place->at, new_bytes);
    }
    place->claimed = answer == OS_DONE ? bytes : 0;
    return answer == OS_DONE ||
           (place->at != NULL && answer == OS_REFUSED && os_map_at(place->at + bytes, new_bytes - bytes) == OS_DONE);
}

/* Whether a range lies in one mapping: else the kernel neither lets it grow nor says that there is no room. A page that it has grown by goes. */
static bool is_one_mapping(char *at, size_t bytes) {
    long grown = kernel(SYS_mremap, (long)at, (long)bytes, (long)(bytes + os_page_bytes()), 0, 0);
    if (grown == (long)at) {
        (void)os_unmap_unseen(at + bytes, os_page_bytes());
    }
    return grown != -EFAULT;
}

/* Moves the pages of one mapping. What is refused for want of address space alone is nobody's. */
static bool move_piece(struct place *place, char *from, size_t bytes) {
    if (bytes > place->claimed) {
        enum os_answer answer = os_map_at(place->at + place->claimed, bytes - place->claimed);
        if (answer == OS_OCCUPIED) {
            return false;
        }
        place->claimed = answer == OS_DONE ? bytes : place->claimed;
    }
    bool moved = move(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, place->at) == place->at;
    if (moved) {
        place->at += bytes;
        place->claimed -= bits_min(place->claimed, bytes);
    } else if (place->claimed > 0 && os_unmap_unseen(place->at, place->claimed)) {
        place->claimed = 0;
    }
    return moved;
}

/* As much of [from, from + most) as ends where advice may. */
static size_t to_edge(const char *from, size_t most) {
    size_t behind = ((uintptr_t)from + most) % MOVE_ALIGNMENT;
    return behind < most ? most - behind : most;
}

/* Returns how many bytes have moved, from the first on: fewer if a single page is refused. */
static size_t move_pieces(struct place *place, char *from, size_t bytes) {
    size_t page = os_page_bytes(), done = 0, most = bytes, refused = 0;
    while (done < bytes && refused != page) {
        size_t size = most < bytes - done ? to_edge(from + done, most) : bytes - done;
        while (size > page && !is_one_mapping(from + done, size)) {
            size = bits_max(size / 2 & ~(page - 1), page);
        }
        bool moved = move_piece(place, from + done, size);
        done += moved ? size : 0;
        refused = moved ? 0 : size;
        most = moved ? 2 * size : bits_max(size / 2 & ~(page - 1), page);
    }
    return done;
}

/* What has moved in part is no block: the rest follows, or the program ends. The kernel refuses that only while the process has all the mappings that
 * it may have, or memory is out, which others can end. */
static void *move_far(char *at, size_t bytes, size_t new_bytes) {
    enum { TRIES = 10000 };
    struct place place;
    if (!find_place(&place, at, bytes, new_bytes)) {
        return NULL;
    }
    char *to = place.at;
    size_t moved = move_pieces(&place, at, bytes);
    for (int tries = 0; moved > 0 && moved < bytes; tries++) {
        if (tries == TRIES) {
            os_abort();
        }
        os_nap(1);
        moved += move_pieces(&place, at + moved, bytes - moved);
    }
    if (moved == 0) {
        if (place.claimed > 0) {
            (void)os_unmap_unseen(to, place.claimed);
        }
        (void)os_unmap_unseen(to + bytes, new_bytes - bytes);
    }
    return moved == bytes ? to : NULL;
}

void *os_move_away(void *at, size_t bytes, size_t new_bytes) {
    os_avoid_huge(at, bytes); /* where mappings differ only in this they are one from then on, and move at once */
    char *moved = os_remap(at, bytes, new_bytes);
    if (moved == at) { /* it has grown where it is, into addresses that are not its own */
        (void)os_unmap_unseen((char *)at + bytes, new_bytes - bytes);
    }
    return moved != NULL && moved != at ? moved : move_far(at, bytes, new_bytes);
}

static bool purge_unseen(void *at, size_t bytes) {
    return kernel(SYS_madvise, (long)at, (long)bytes, MADV_DONTNEED, 0, 0) == 0;
}

enum purging { PURGING_UNTRIED, PURGING_WORKS, PURGING_DOES_NOTHING, PURGING_DOUBTED };

/* By a byte that nobody else tries it by meanwhile. */
static enum purging try_page(char *page) {
    static _Atomic uint32_t tries; /* relaxed: a number for each, and no more */
    volatile char *byte = page + atomic_fetch_add_explicit(&tries, 1, memory_order_relaxed) % os_page_bytes();
    *byte = 1;
    return !purge_unseen(page, os_page_bytes()) ? PURGING_UNTRIED : *byte == 0 ? PURGING_WORKS : PURGING_DOES_NOTHING;
}

/* By a page of the library's own data, since there may be no room for another. Untried where that is locked in memory. */
static enum purging try_own_page(void) {
#if defined(__x86_64__)
    enum { PAGE_MOST = 4096 };
#else
    enum { PAGE_MOST = 65536 };
#endif
    static char data[2 * PAGE_MOST];
    size_t page = os_page_bytes();
    bool fits = page <= PAGE_MOST;
    return fits ? try_page(data + bits_round_up((uintptr_t)data, page) - (uintptr_t)data) : PURGING_UNTRIED;
}

/* Looks whether a purged page reads as zero. QEMU's user mode before 7.1 and some sandboxes say that they have purged, and leave the pages as they
 * are. */
static enum purging try_purging(void) {
    enum purging found = try_own_page();
    size_t page = os_page_bytes();
    char *mapped = found != PURGING_UNTRIED ? NULL : map_anywhere(page, PROT_READ | PROT_WRITE, 0);
    if (mapped != NULL) {
        found = try_page(mapped);
        (void)kernel(SYS_munmap, (long)mapped, (long)page, 0, 0, 0);
    }
    return found;
}

/* relaxed: whoever tries it meanwhile finds the same, and it is doubted before the call that puts a filter on. From then on each thread may have
 * filters of its own, and no call may come that was not made before, such as mmap. */
static _Atomic uint32_t purging;

void os_doubt_purging(void) { atomic_store_explicit(&purging, PURGING_DOUBTED, memory_order_relaxed); }

/* Also before the library is loaded, by the constructor of a library that this one stands behind: none of the calls of a start is made then. */
static bool may_be_filtered(void) { return atomic_load_explicit(&purging, memory_order_relaxed) == PURGING_DOUBTED; }

/* Whether what this thread has just purged reads as zero. */
static bool is_purged(void) {
    uint32_t known = atomic_load_explicit(&purging, memory_order_relaxed);
    if (unlikely(known == PURGING_DOUBTED)) {
        return try_own_page() == PURGING_WORKS;
    }
    if (unlikely(known == PURGING_UNTRIED)) {
        uint32_t untried = known;
        known = try_purging();
        (void)atomic_compare_exchange_strong_explicit(&purging, &untried, known, memory_order_relaxed,
                                                      memory_order_relaxed);
    }
    return known == PURGING_WORKS;
}

bool os_purge_unseen(void *at, size_t bytes) { return purge_unseen(at, bytes) && is_purged(); }

/* A hook may answer in libc's place, and fail or do nothing: it has seen the pages go, and go they do. */
bool os_purge(void *at, size_t bytes) {
    bool may = memory_hooks_may_call(), hooked = memory_hooks_installed();
    bool told = may && memory_hooks_purge(at, bytes);
    bool purged = may && ((told && !hooked) || purge_unseen(at, bytes)) && is_purged();
    unmap_postponed();
    return purged;
}

unsigned os_present(const void *at, unsigned pages) {
    static const uint64_t ones = 0x0101010101010101u, bytes = 0x00ff00ff00ff00ffu, sums = 0x0001000100010001u;
    uint64_t state[OS_PRESENT_MOST / 8] = {0}, present = 0; /* a byte for each page */
    if (kernel(SYS_mincore, (long)at, (long)(pages * os_page_bytes()), (long)state, 0, 0) != 0) {
        return OS_PRESENT_UNKNOWN;
    }
    for (unsigned i = 0; i < OS_PRESENT_MOST / 8; i++) { /* at most 64 in each byte */
        present += state[i] & ones;
    }
    return (unsigned)(((present & bytes) + (present >> 8 & bytes)) * sums >> 48);
}

void os_prefer_huge(void *at, size_t bytes) { (void)kernel(SYS_madvise, (long)at, (long)bytes, MADV_HUGEPAGE, 0, 0); }

void os_populate(void *at, size_t bytes) {
    enum { POPULATE_WRITE = 23 }; /* MADV_POPULATE_WRITE: younger than some headers */
    (void)kernel(SYS_madvise, (long)at, (long)bytes, POPULATE_WRITE, 0, 0);
}

void os_avoid_huge(void *at, size_t bytes) { (void)kernel(SYS_madvise, (long)at, (long)bytes, MADV_NOHUGEPAGE, 0, 0); }

void os_wait(const _Atomic uint32_t *word, uint32_t expected) {
    (void)kernel(SYS_futex, (long)word, FUTEX_WAIT_PRIVATE, (long)expected, 0, 0);
}

/* Only the kernel says that the time is over; whether a clock of ours goes meanwhile is no matter. */
static bool wait_for(const _Atomic uint32_t *word, int operation, uint32_t expected, uint32_t milliseconds) {
    struct timespec timeout = {.tv_sec = milliseconds / 1000, .tv_nsec = (long)(milliseconds % 1000) * 1000000};
    return kernel(SYS_futex, (long)word, operation, (long)expected, (long)&timeout, 0) == -ETIMEDOUT;
}

bool os_wait_for(const _Atomic uint32_t *word, uint32_t expected, uint32_t milliseconds) {
    return wait_for(word, FUTEX_WAIT_PRIVATE, expected, milliseconds);
}

void os_nap(uint32_t milliseconds) {
    static const _Atomic uint32_t never;
    (void)os_wait_for(&never, 0, milliseconds);
}

bool os_wait_for_thread(const _Atomic uint32_t *word, uint32_t expected, uint32_t milliseconds) {
    return wait_for(word, FUTEX_WAIT, expected, milliseconds); /* the kernel's wake is no private one */
}

void os_await_thread_gone(uint32_t thread, uint32_t milliseconds) {
    enum { LOOKS = 200 }; /* before the first nap: it is a matter of microseconds */
    for (uint32_t looks = 0; looks < LOOKS + milliseconds; looks++) {
        if (!os_has_thread(thread)) {
            return;
        }
        if (looks >= LOOKS) {
            os_nap(1);
        }
    }
}

void os_wake_for_thread(const _Atomic uint32_t *word) {
    (void)kernel(SYS_futex, (long)word, FUTEX_WAKE, INT32_MAX, 0, 0);
}

void os_wake(const _Atomic uint32_t *word) { (void)kernel(SYS_futex, (long)word, FUTEX_WAKE_PRIVATE, 1, 0, 0); }

void os_wake_all(const _Atomic uint32_t *word) {
    (void)kernel(SYS_futex, (long)word, FUTEX_WAKE_PRIVATE, INT32_MAX, 0, 0);
}

void os_write_error(const char *text, size_t length) {
    while (length > 0) {
        long written = kernel(SYS_write, STDERR_FILENO, (long)text, (long)length, 0, 0);
        if (written == -EINTR) {
            continue;
        }
        if (written <= 0) {
            return;
        }
        text += written;
        length -= (size_t)written;
    }
}

/* Where no such operation exists the kernel says so once it has read the set. The one call that does, and that no filter forbids a program whose
 * threads have masks. */
bool os_can_read(const void *at) {
    enum { NO_OPERATION = -1, BYTES = 8 };
    return kernel(SYS_rt_sigprocmask, NO_OPERATION, (long)at, 0, BYTES, 0) != -EFAULT;
}

uint32_t os_thread(void) { return (uint32_t)kernel(SYS_gettid, 0, 0, 0, 0, 0); }

uint32_t os_thread_of_libc(void) {
#ifdef __GLIBC__
    /* glibc has the kernel clear a word of the thread's description, which lies beside the thread pointer, when the thread ends. */
    enum { GET_TID_ADDRESS = 40, NEAR = 40960 }; /* on ppc64le the pointer leads 28 KiB behind it */
    uintptr_t word = 0, pointer = os_thread_itself();
    if (kernel(SYS_prctl, GET_TID_ADDRESS, (long)&word, 0, 0, 0) != 0 || word - (pointer - NEAR) >= (size_t)2 * NEAR) {
        return 0;
    }
#endif
    return os_thread();
}

bool os_has_thread(uint32_t thread) {
    return kernel(SYS_tgkill, kernel(SYS_getpid, 0, 0, 0, 0, 0), (long)thread, 0, 0, 0) == 0;
}

bool os_thread_is_gone(uint32_t process, uint32_t thread) {
    return kernel(SYS_tgkill, (long)process, (long)thread, 0, 0, 0) == -ESRCH;
}

void os_raise(int number) {
    (void)kernel(SYS_tgkill, kernel(SYS_getpid, 0, 0, 0, 0, 0), kernel(SYS_gettid, 0, 0, 0, 0, 0), number, 0, 0);
}

/* The kernel's, not libc's; nothing but zeros asks for the default action. */
struct kernel_action {
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)(void);
    uint64_t mask;
};
enum { SIGNAL_SET_BYTES = 8 };
static const uint64_t abort_only = UINT64_C(1) << (SIGABRT - 1);

static bool is_pending(void) {
    uint64_t pending = 0;
    return kernel(SYS_rt_sigpending, (long)&pending, SIGNAL_SET_BYTES, 0, 0, 0) == 0 && (pending & abort_only) != 0;
}

/* From a thread that libc does not know, on which no handler of the program's could run: one of the program's threads takes the signal, whichever
 * does not block it, and has some time for it. */
static void have_handled(void) {
    enum { TAKEN_MS = 200, HANDLED_MS = 5000 };
    struct kernel_action action = {0};
    if (kernel(SYS_rt_sigaction, SIGABRT, 0, (long)&action, SIGNAL_SET_BYTES, 0) != 0 || action.handler == SIG_DFL ||
        action.handler == SIG_IGN || kernel(SYS_kill, kernel(SYS_getpid, 0, 0, 0, 0, 0), SIGABRT, 0, 0, 0) != 0) {
        return;
    }
    for (int ms = 0; ms < TAKEN_MS && is_pending(); ms++) {
        os_nap(1);
    }
    for (int ms = 0; ms < HANDLED_MS && !is_pending(); ms++) {
        os_nap(1);
    }
}

_Noreturn void os_abort(void) {
    const struct kernel_action by_default = {0};
    bool own = os_is_own_thread();
    if (own) {
        have_handled();
    }
    for (bool first = true;; first = false) {
        /* On the second round: a handler has returned, or it is ignored. */
        if ((own || !first) && kernel(SYS_rt_sigaction, SIGABRT, (long)&by_default, 0, SIGNAL_SET_BYTES, 0) != 0) {
            __builtin_trap(); /* a sandbox that forbids even this */
        }
        (void)kernel(SYS_rt_sigprocmask, SIG_UNBLOCK, (long)&abort_only, 0, SIGNAL_SET_BYTES, 0);
        os_raise(SIGABRT);
    }
}

void os_wipe_on_fork(void *at, size_t bytes) {
    enum { WIPE_ON_FORK = 18 }; /* MADV_WIPEONFORK: younger than some headers */
    (void)kernel(SYS_madvise, (long)at, (long)bytes, WIPE_ON_FORK, 0, 0);
}

/* -- what the process was started with ------------------------------------------------------------------------ */

enum { CPUS_MOST = 8192 }; /* that kernels are built for */

static struct {
    uint32_t filters;
    uint32_t process;
    bool capable; /* of something that it may give up */
    unsigned cpus; /* that it may run on */
    long mask_bytes; /* of the mask that the kernel uses */
    uint64_t mask[CPUS_MOST / 64];
} at_start = {.filters = OS_FILTERS_UNKNOWN};

/* The lines of /proc/self/status that are asked for: each value is the text behind its key and what is blank, NULL without that line. */
enum { PROCESS, MODE, FILTERS, CPUS, CAPABILITIES, USERS, LINES };
struct lines {
    const char *value[LINES];
};

static const char *behind(const char *line, const char *key) {
    while (*key != '\0') {
        if (*line++ != *key++) {
            return NULL;
        }
    }
    while (*line == ' ' || *line == '\t') {
        line++;
    }
    return line;
}

/* The first letters of the keys. */
static bool may_be_key(char c) { return c == 'N' || c == 'S' || c == 'C' || c == 'U'; }

/* In one pass: every process that starts pays for it. */
static struct lines lines_of(const char *status) {
    static const char keys[LINES][20] = {
        [PROCESS] = "NStgid:",    [MODE] = "Seccomp:",        [FILTERS] = "Seccomp_filters:",
        [CPUS] = "Cpus_allowed:", [CAPABILITIES] = "CapPrm:", [USERS] = "Uid:"};
    struct lines found = {{NULL}};
    for (const char *at = status; *at != '\0'; at += *at == '\n') {
        for (int line = 0; may_be_key(*at) && line < LINES; line++) {
            const char *value = behind(at, keys[line]);
            found.value[line] = value != NULL ? value : found.value[line];
        }
        while (*at != '\n' && *at != '\0') {
            at++;
        }
    }
    return found;
}

/* The number there, at the line's end; OS_FILTERS_UNKNOWN without one. */
static uint32_t number_at(const char *text) {
    if (text == NULL || *text < '0' || *text > '9') {
        return OS_FILTERS_UNKNOWN;
    }
    uint32_t number = 0;
    for (; *text >= '0' && *text <= '9'; text++) {
        number = number * 10 + (uint32_t)(*text - '0');
    }
    return *text == '\n' ? number : OS_FILTERS_UNKNOWN; /* the text may end too early */
}

/* In each namespace that it is in a number of its own; the last is what it knows itself by. */
static uint32_t process_in(const struct lines *status) {
    const char *number = status->value[PROCESS];
    for (const char *at = number; at != NULL && *at != '\n' && *at != '\0'; at++) {
        number = *at == '\t' ? at + 1 : number;
    }
    uint32_t process = number_at(number);
    return process == OS_FILTERS_UNKNOWN ? 0 : process;
}

static uint32_t filters_in(const struct lines *status) {
    uint32_t mode = number_at(status->value[MODE]);
    return mode == 2 ? number_at(status->value[FILTERS]) : mode == 0 ? 0 : OS_FILTERS_UNKNOWN;
}

static int digit(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The mask as the text there has it: hexadecimal digits, the last CPUs first, a comma between every eight. False where it has none, or not all. */
static bool mask_in(const char *first) {
    if (first == NULL) {
        return false;
    }
    const char *end = first;
    while (digit(*end) >= 0 || *end == ',') {
        end++;
    }
    if (*end != '\n') {
        return false;
    }
    size_t digits = 0;
    for (const char *at = end; at > first; at--) {
        if (at[-1] != ',') {
            if (digits >= CPUS_MOST / 4) {
                return false;
            }
            at_start.mask[digits / 16] |= (uint64_t)digit(at[-1]) << digits % 16 * 4;
            digits++;
        }
    }
    at_start.mask_bytes = (long)((digits + 15) / 16 * 8);
    return digits > 0;
}

/* True without that line. */
static bool capable_in(const struct lines *status) {
    const char *at = status->value[CAPABILITIES];
    while (at != NULL && *at == '0') {
        at++;
    }
    return at == NULL || digit(*at) > 0;
}

/* Whether the real, effective and saved user are one; true without that line. */
static bool users_differ_in(const struct lines *status) {
    const char *real = status->value[USERS], *at = real;
    while (at != NULL && *at != '\n') {
        size_t i = 0;
        while (digit(real[i]) >= 0 && at[i] == real[i]) {
            i++;
        }
        if (i == 0 || digit(real[i]) >= 0 || digit(at[i]) >= 0) {
            return true;
        }
        at += i + (at[i] == '\t');
    }
    return at == NULL;
}

long os_open(const char *name) {
    return kernel(SYS_openat, AT_FDCWD, (long)name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0, 0);
}

long os_read(long file, char *text, size_t bytes) { return kernel(SYS_read, file, (long)text, (long)bytes, 0, 0); }

void os_close(long file) { (void)kernel(SYS_close, file, 0, 0, 0, 0); }

/* A file that is longer than its first `length` bytes in `text` (a process may be in 65,536 groups): only lines that are asked for stay. Returns
 * how many bytes those have. */
static long read_on(long file, char *text, long length, long room) {
    enum { START, KEPT, LEFT_OUT } line = START;
    long kept = 0, from = 0;
    while (length > 0) {
        for (long i = from; i < from + length; i++) {
            char c = text[i]; /* the kernel wrote it: NOLINT(clang-analyzer-core.uninitialized.Assign) */
            line = line != START ? line : may_be_key(c) ? KEPT : LEFT_OUT;
            if (line == KEPT) {
                text[kept++] = c;
            }
            line = c == '\n' ? START : line;
        }
        from = kept;
        length = kept < room ? kernel(SYS_read, file, (long)(text + kept), room - kept, 0, 0) : 0;
    }
    return kept;
}

/* The lines of a file that are asked for, perhaps others too, and a zero. */
static bool read_file(const char *name, char *text, size_t bytes) {
    long file = os_open(name);
    if (file < 0) {
        return false;
    }
    long room = (long)bytes - 1;
    long length = os_read(file, text, (size_t)room);
    if (length == room) {
        length = read_on(file, text, length, room);
    }
    os_close(file);
    text[length > 0 ? length : 0] = '\0';
    return length > 0;
}

/* When the library is loaded: the one moment at which a descriptor more is nobody's business, since the dynamic linker has just opened
 * files itself, and at which the process has one thread. Later a program may count its descriptors, close them all, or be
 * forbidden to open any. */
__attribute__((constructor)) static void note_start(void) {
    char status[4096];
    bool filtered = may_be_filtered();
    if (filtered || !read_file("/proc/thread-self/status", status, sizeof status)) {
        status[0] = '\0';
    }
    struct lines lines = lines_of(status);
    at_start.filters = filters_in(&lines);
    at_start.process = process_in(&lines);
    at_start.capable = capable_in(&lines) || users_differ_in(&lines);
    if (!mask_in(lines.value[CPUS]) && !filtered) {
        /* The raw call reports how many bytes of the mask it filled, and fails when the mask is shorter than the kernel's. */
        at_start.mask_bytes = kernel(SYS_sched_getaffinity, 0, sizeof at_start.mask, (long)at_start.mask, 0, 0);
    }
    for (long i = 0; i < at_start.mask_bytes / 8; i++) {
        at_start.cpus += (unsigned)__builtin_popcountll(at_start.mask[i]);
    }
}

uint32_t os_mappings_most(void) {
    enum { USUAL = 65530, DIGITS = 9 };
    char text[32];
    uint32_t most = 0;
    if (may_be_filtered() || !read_file("/proc/sys/vm/max_map_count", text, sizeof text)) {
        return USUAL;
    }
    for (unsigned i = 0; i < DIGITS && text[i] >= '0' && text[i] <= '9'; i++) {
        most = most * 10 + (uint32_t)(text[i] - '0');
    }
    return most;
}

bool os_tasks_are_few(void) {
    enum { FEW = 1024 };
    struct rlimit limit = {0};
    return kernel(SYS_prlimit64, 0, RLIMIT_NPROC, 0, (long)&limit, 0) == 0 && limit.rlim_cur < FEW;
}

uint32_t os_filters(void) { return at_start.filters; }

uint32_t os_process(void) { return (uint32_t)kernel(SYS_getpid, 0, 0, 0, 0, 0); }

uint32_t os_process_at_start(void) { return at_start.process; }

unsigned os_cpus(void) { return at_start.cpus > 0 ? at_start.cpus : 1; }

/* -- a plain thread ------------------------------------------------------------------------------------------- */

bool os_is_privileged_at_start(void) { return at_start.capable; }

/* Whether the calling thread has something that its program can give up: a capability, or a user or group beside its real one. */
static bool is_privileged(void) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0}};
    uint32_t user[3] = {0}, group[3] = {0};
    bool known = kernel(SYS_capget, (long)&header, (long)data, 0, 0, 0) == 0 &&
                 kernel(SYS_getresuid, (long)&user[0], (long)&user[1], (long)&user[2], 0, 0) == 0 &&
                 kernel(SYS_getresgid, (long)&group[0], (long)&group[1], (long)&group[2], 0, 0) == 0;
    return !known || (data[0].permitted | data[1].permitted) != 0 || user[0] != user[1] || user[0] != user[2] ||
           group[0] != group[1] || group[0] != group[2];
}

static void drop_capabilities(void) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};
    (void)kernel(SYS_capset, (long)&header, (long)none, 0, 0, 0);
}

static bool confine(void);

bool os_be_plain(const char *name) {
    struct sched_param plain = {0};
    if (at_start.mask_bytes > 0) {
        (void)kernel(SYS_sched_setaffinity, 0, at_start.mask_bytes, (long)at_start.mask, 0, 0);
    }
    (void)kernel(SYS_sched_setscheduler, 0, SCHED_OTHER, (long)&plain, 0, 0);
    (void)kernel(SYS_setpriority, PRIO_PROCESS, 0, 0, 0, 0);
    bool privileged = is_privileged();
    drop_capabilities(); /* behind all that takes some */
    bool harmless = !privileged || confine();
    (void)kernel(SYS_prctl, PR_SET_NAME, (long)name, 0, 0,
                 0); /* last: who sees a thread of that name sees a plain one */
    return harmless;
}

/* -- a thread of the kernel's alone -------------------------------------------------------------------------- */

#if (defined(__x86_64__) || defined(__aarch64__)) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)

#if defined(__x86_64__)
#define AUDIT_ARCH_OWN AUDIT_ARCH_X86_64
#else
#define AUDIT_ARCH_OWN AUDIT_ARCH_AARCH64
#endif

/* Valgrind makes calls of its own on each thread of the program, and ends if they are refused. Its documented question: these instructions do
 * nothing elsewhere. */
static bool is_under_valgrind(void) {
    unsigned long question[6] = {0x1001 /* RUNNING_ON_VALGRIND */};
    unsigned long depth = 0;
#if defined(__x86_64__)
    __asm__ volatile("rolq $3, %%rdi\n\trolq $13, %%rdi\n\trolq $61, %%rdi\n\trolq $51, %%rdi\n\t"
                     "xchgq %%rbx, %%rbx"
                     : "+d"(depth)
                     : "a"(question)
                     : "cc", "memory");
#elif defined(__aarch64__)
    register unsigned long x3 __asm__("x3") = depth;
    register unsigned long *x4 __asm__("x4") = question;
    __asm__ volatile("ror x12, x12, #3\n\tror x12, x12, #13\n\tror x12, x12, #51\n\tror x12, x12, #61\n\t"
                     "orr x10, x10, x10"
                     : "+r"(x3)
                     : "r"(x4)
                     : "cc", "memory", "x12");
    depth = x3;
#endif
    return depth != 0;
}

enum first_argument { ANY, STANDARD_ERROR, OWN_PROCESS, OWN_NAME };

/* All that a thread of the library's own calls once it is plain, the most frequent first. None of them asks who the thread is. The kernel itself
 * makes restart_syscall of a wait that a stop has interrupted. */
static const struct {
    uint16_t number;
    uint8_t first; /* enum first_argument */
} plain_calls[] = {
    {__NR_futex, ANY},
    {__NR_madvise, ANY},
    {__NR_munmap, ANY},
    {__NR_mprotect, ANY},
    {__NR_mmap, ANY},
    {__NR_mremap, ANY},
    {__NR_clock_gettime, ANY},
    {__NR_sched_yield, ANY},
    {__NR_restart_syscall, ANY},
    {__NR_getrandom, ANY},
    {__NR_getpid, ANY},
    {__NR_gettid, ANY},
    {__NR_rt_sigprocmask, ANY},
    {__NR_rt_sigaction, ANY},
    {__NR_rt_sigpending, ANY},
    {__NR_write, STANDARD_ERROR},
    {__NR_kill, OWN_PROCESS},
    {__NR_tgkill, OWN_PROCESS},
    {__NR_exit, ANY},
    {__NR_prctl, OWN_NAME},
};
enum { PLAIN_CALLS = sizeof plain_calls / sizeof *plain_calls, EACH = 5 };

static struct sock_filter load(size_t offset) {
    return (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset);
}

static struct sock_filter answer(uint32_t action) { return (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action); }

/* Goes on behind the next `steps` instructions unless what was loaded is `value`. */
static struct sock_filter unless(uint32_t value, uint8_t steps) {
    return (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, steps);
}

/* The calling thread alone makes no other calls any more, whoever comes to choose what it runs. They fail, as they may anywhere else: nothing
 * ends that was right, should a debugger make the thread call something. False if the kernel refuses. */
static bool confine(void) {
    if (is_under_valgrind()) {
        return false;
    }
    const uint32_t values[] = {
        [STANDARD_ERROR] = STDERR_FILENO, [OWN_PROCESS] = os_process(), [OWN_NAME] = PR_SET_NAME};
    struct sock_filter filter[5 + PLAIN_CALLS * EACH];
    uint16_t length = 0;
    filter[length++] = load(offsetof(struct seccomp_data, arch));
    filter[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_OWN, 1, 0);
    filter[length++] = answer(SECCOMP_RET_ERRNO | EPERM); /* another table of numbers */
    filter[length++] = load(offsetof(struct seccomp_data, nr));
    for (int call = 0; call < PLAIN_CALLS; call++) {
        bool any = plain_calls[call].first == ANY;
        filter[length++] = unless(plain_calls[call].number, any ? 1 : 4);
        if (!any) {
            filter[length++] = load(offsetof(struct seccomp_data, args)); /* its lower half, of which it is made */
            filter[length++] = unless(values[plain_calls[call].first], 1);
        }
        filter[length++] = answer(SECCOMP_RET_ALLOW);
        if (!any) {
            filter[length++] = answer(SECCOMP_RET_ERRNO | EPERM);
        }
    }
    filter[length++] = answer(SECCOMP_RET_ERRNO | EPERM);
    struct sock_fprog program = {length, filter};
    return kernel(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           kernel(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, (long)&program, 0, 0) == 0;
}

/* memory:  | stack, grows down ... | below the thread pointer | thread pointer: block |
 * Compiled code finds thread-local variables on both sides of the thread pointer, and the stack protector's word. */
enum { THREAD_BLOCK = 4096, BELOW_THREAD_POINTER = 16 * 1024 };

/* Of the last that was started: there is one at a time. Relaxed: the thread itself sees what its maker wrote. */
static _Atomic uintptr_t thread_memory;

bool os_is_own_thread(void) {
    uintptr_t memory = atomic_load_explicit(&thread_memory, memory_order_relaxed);
    return (uintptr_t)__builtin_frame_address(0) - memory < OS_THREAD_BYTES && memory != 0;
}

void *os_thread_memory(void) {
    size_t page = os_page_bytes();
    char *at = os_map(page + OS_THREAD_BYTES, page);
    if (at != NULL) {
        (void)kernel(SYS_mprotect, (long)at, (long)page, PROT_NONE, 0, 0);
    }
    return at == NULL ? NULL : at + page;
}

static long start(void *stack, void *thread_pointer, _Atomic uint32_t *word, void (*run)(void)) {
    long flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS |
                 CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;
#if defined(__x86_64__)
    void **top = stack; /* the new thread finds what to run on its stack */
    *--top = NULL;
    *--top = (void *)(uintptr_t)run;
    register long r10 __asm__("r10") = (long)word;
    register long r8 __asm__("r8") = (long)thread_pointer;
    long result;
    __asm__ volatile("syscall\n\t"
                     "test %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "xor %%ebp, %%ebp\n\t" /* the outermost frame */
                     "pop %%rax\n\t"
                     "pop %%rcx\n\t"
                     "call *%%rax\n\t"
                     "xor %%edi, %%edi\n\t"
                     "mov %[exit], %%eax\n\t"
                     "syscall\n\t"
                     "hlt\n"
                     "1:"
                     : "=a"(result)
                     : "0"((long)SYS_clone), "D"(flags), "S"(top), "d"(word), "r"(r10), "r"(r8), [exit] "i"(SYS_exit)
                     : "rcx", "r11", "memory");
    return result;
#else
    register long x8 __asm__("x8") = SYS_clone;
    register long x0 __asm__("x0") = flags;
    register long x1 __asm__("x1") = (long)stack;
    register long x2 __asm__("x2") = (long)word;
    register long x3 __asm__("x3") = (long)thread_pointer;
    register long x4 __asm__("x4") = (long)word;
    register long x5 __asm__("x5") = (long)(uintptr_t)run; /* kept by the new thread: its registers are the caller's */
    __asm__ volatile("svc #0\n\t"
                     "cbnz x0, 1f\n\t"
                     "mov x29, #0\n\t"
                     "mov x30, #0\n\t"
                     "blr x5\n\t"
                     "mov x0, #0\n\t"
                     "mov x8, %[exit]\n\t"
                     "svc #0\n\t"
                     "brk #1\n"
                     "1:"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5), [exit] "i"(SYS_exit)
                     : "x30", "memory");
    return x0;
#endif
}

bool os_start_thread(void (*run)(void), void *memory, _Atomic uint32_t *word) {
    char *block = (char *)memory + OS_THREAD_BYTES - THREAD_BLOCK;
    atomic_store_explicit(&thread_memory, (uintptr_t)memory, memory_order_relaxed);
    *(void **)(void *)block = block; /* where the ABI wants the thread pointer's own value on x86-64 */
    uint64_t all = ~UINT64_C(0);
    uint64_t before;
    /* A new thread has its maker's mask: with everything masked, no signal can choose it. */
    if (kernel(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&before, SIGNAL_SET_BYTES, 0) != 0) {
        return false;
    }
    long started = start(block - BELOW_THREAD_POINTER, block, word, run);
    (void)kernel(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, SIGNAL_SET_BYTES, 0);
    return started > 0;
}

#else

static bool confine(void) { return false; }

bool os_is_own_thread(void) { return false; }

void *os_thread_memory(void) { return NULL; }

bool os_start_thread(void (*run)(void), void *memory, _Atomic uint32_t *word) {
    (void)run;
    (void)memory;
    (void)word;
    return false;
}

#endif
