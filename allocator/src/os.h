/* System calls. clock.c, memory_hooks.c and libc_linked.c make theirs by os_call; no other file
 * makes any, but for requests of the program that are forwarded. Everything here is raw: no libc
 * wrapper is called that another preload could have replaced, nothing allocates, and errno is left
 * alone. Sizes are in bytes and multiples of the page size unless said.
 *
 * One exception: what returns or moves memory goes through libc's functions, so that memory hooks
 * see it (memory_hooks.h). A hook may do anything, so the caller holds no lock. os_unmap, os_remap,
 * os_move, os_move_away and os_purge do so; the functions on memory `unseen` do not. */
#ifndef FREESTONE_OS_H
#define FREESTONE_OS_H

#include "bits.h"

/* Bytes of a page of the running kernel: 4, 16 or 64 KiB. */
#if defined(__x86_64__)
enum { OS_PAGE_MOST = 4096 };
static inline size_t os_page_bytes(void) { return OS_PAGE_MOST; } /* no other size exists there */
#else
enum { OS_PAGE_MOST = 64 * 1024 };
size_t os_page_bytes(void);
#endif

/* A system call by number. errno stays as it is (a successful malloc or free must not change it), and a thread that libc does not know may
 * make it too. Returns -errno on failure. */
long os_call(long number, long a, long b, long c, long d, long e, long f);

/* Address space without memory, aligned to `alignment` (a power of two, at least a page). NULL when refused. */
void *os_reserve(size_t bytes, size_t alignment);

/* Makes reserved address space usable (zero on first touch). False when the kernel refuses the memory. */
bool os_commit(void *at, size_t bytes);

/* Makes it address space without memory again, unseen. */
void os_decommit(void *at, size_t bytes);

/* Nobody may touch it any more; what lies there stays. os_commit ends that. False when the kernel refuses. */
bool os_guard(void *at, size_t bytes);

/* For addresses of code that are found at run time: who can write anywhere is not to choose what is called. On x86-64, where the linker knows the
 * size of a page, they lie with what the dynamic linker makes read-only before any constructor runs. In the shared library alone: what a
 * program that is linked with the archive keeps beside them is not known. */
#if defined(__x86_64__)
#define SEALED __attribute__((section(".data.rel.ro.sealed")))
#else
#define SEALED
#endif

/* What is SEALED there can be written, or no longer. By one thread at a time: see cxx_may_keep. False when the kernel refuses, or is not asked since
 * filters may have come. */
bool os_seal(void *const *places, size_t count, bool sealed);

/* Bytes that nobody outside can guess, 256 at most: the kernel's random ones (getrandom). If it refuses, they depend on the time and on
 * where the stack lies, and are weaker. */
void os_random(void *at, size_t bytes);

/* 64 bits of that kind. */
static inline uint64_t os_secret(void) {
    uint64_t secret;
    os_random(&secret, sizeof secret);
    return secret;
}

/* A file to be read: its number, below 0 when it cannot be opened; bytes of it, 0 or less at its end. By the calls that were made as the library
 * was loaded, so that a filter that was there then lets them pass. */
long os_open(const char *name);
long os_read(long file, char *text, size_t bytes);
void os_close(long file);

/* Mappings that the kernel lets a process have (vm.max_map_count). To be read by a constructor, since it takes a descriptor for a moment. */
uint32_t os_mappings_most(void);

/* An address from which on so many bytes are free now. Nothing is reserved: somebody else may map there later. NULL when so
 * much is refused. */
void *os_find(size_t bytes, size_t alignment);

/* Maps memory, zero and usable at once, exactly there. */
enum os_answer { OS_DONE, OS_REFUSED, OS_OCCUPIED };
enum os_answer os_map_at(void *at, size_t bytes);

/* A mapping of its own, usable at once and zero, aligned to `alignment`. NULL when refused. */
void *os_map(size_t bytes, size_t alignment);

/* Within a hook this happens once the hook has returned. */
void os_unmap(void *at, size_t bytes);

/* The same unseen by hooks: of memory that is the library's own, or in which nothing was since it was purged. A lock may be held. False if the
 * addresses stay mapped, without memory: there are as many mappings as there may be. */
bool os_unmap_unseen(void *at, size_t bytes);

/* Changes the size of a mapping made by os_map, moving it if need be; pages move, bytes are not copied.
 * NULL when refused: the old mapping is then untouched. */
void *os_remap(void *at, size_t old_bytes, size_t new_bytes);

/* Moves the pages to where the kernel has room, as a mapping of its own; what they leave reads as zero. Returns where they are;
 * NULL, and nothing has changed, when the kernel cannot (before 5.7), for locked memory, and where the pages are not all of
 * one kind. */
void *os_move(void *at, size_t bytes);

/* The same into a mapping of `new_bytes`, which takes address space only for what it has more than the old, and also where the pages lie in several
 * mappings; what they leave is mapped no longer. NULL, and nothing has changed, when refused. */
void *os_move_away(void *at, size_t bytes, size_t new_bytes);

/* Gives the pages back to the kernel; they read as zero afterwards. False when the kernel did not take them
 * (locked memory): their content is then unchanged. */
bool os_purge(void *at, size_t bytes);
bool os_purge_unseen(void *at, size_t bytes);

/* A filter may come that answers in the kernel's place: from now on it is tried beside each purge whether this thread's purges work. */
void os_doubt_purging(void);

/* Of so many pages from `at` on, OS_PRESENT_MOST at most, those that are in memory, or OS_PRESENT_UNKNOWN: the kernel refused, or not all is mapped. A huge
 * page counts as all of its pages. */
enum { OS_PRESENT_MOST = 512, OS_PRESENT_UNKNOWN = OS_PRESENT_MOST + 1 };
unsigned os_present(const void *at, unsigned pages);

/* Asks for huge pages there, where the kernel gives them on request; a wish, no more. */
void os_prefer_huge(void *at, size_t bytes);

/* Takes the wish back. */
void os_avoid_huge(void *at, size_t bytes);

/* Brings the pages in, to be written, where the kernel knows how to (5.14); a wish, no more. */
void os_populate(void *at, size_t bytes);

/* Whether the kernel locks what is mapped, and so brings all of it in at once (mlockall with MCL_FUTURE). Three system calls. */
bool os_locks_what_comes(void);

/* Whether the kernel would give so many bytes just now, of which none are touched. */
bool os_has_room(size_t bytes);

/* CPUs that this process might run on when the library was loaded, at least 1. */
unsigned os_cpus(void);

/* The kernel's own clock_gettime. NULL: a system call instead. That is so before os_find_clock, under valgrind, and if the kernel was told to map no
 * vDSO. Relaxed: written once, and the code that it points to was there before the process. */
struct timespec;
typedef long os_clock_function(int clock, struct timespec *now);
extern os_clock_function *os_vdso_clock INTERNAL;

/* By a constructor, as glibc calls it; musl tells it nothing. */
void os_find_clock(int arguments, char **argument);

/* Milliseconds of a monotonic clock of a few milliseconds' grain; read in user space. */
uint64_t os_milliseconds(void);

/* Nanoseconds of a monotonic clock; read in user space, a few tens of nanoseconds a time. */
uint64_t os_nanoseconds(void);

/* Sleeps while *word == expected; may return early for no reason. Those below return true when they have slept as long as they were to. */
void os_wait(const _Atomic uint32_t *word, uint32_t expected);

/* The same for at most that long. */
bool os_wait_for(const _Atomic uint32_t *word, uint32_t expected, uint32_t milliseconds);

/* Wakes one sleeper on `word`, or all. */
void os_wake_all(const _Atomic uint32_t *word);
void os_wake(const _Atomic uint32_t *word);

/* Sleeps so long; nobody wakes it. By the same call as the other waits: filters know that one. */
void os_nap(uint32_t milliseconds);

/* The same as os_wait_for, for a word that the kernel itself changes when a thread ends. */
bool os_wait_for_thread(const _Atomic uint32_t *word, uint32_t expected, uint32_t milliseconds);

/* Waits until the thread of that number is no more one of the process: its word is zeroed a moment before. */
/* The kernel's number of the calling thread; and whether the process has a thread of that number. */
uint32_t os_thread(void);

/* The same for a thread that libc has made; 0 for a task that the program has made by a system call, which may have the thread pointer of a thread
 * that goes on when it ends. musl does not tell them apart. */
uint32_t os_thread_of_libc(void);
bool os_has_thread(uint32_t thread);

/* Whether the process of that number is known to have no such thread any more: then nothing reads or writes on its behalf. */
bool os_thread_is_gone(uint32_t process, uint32_t thread);
void os_await_thread_gone(uint32_t thread, uint32_t milliseconds);

/* Wakes who sleeps there, as the kernel does when the thread is gone. */
void os_wake_for_thread(const _Atomic uint32_t *word);

/* From now on these pages read as zero in the child of a fork, where the kernel knows how to (4.14), and as they were written elsewhere. */
void os_wipe_on_fork(void *at, size_t bytes);

/* System-call filters (seccomp) that the process was under when the library was loaded: 0 none, OS_FILTERS_UNKNOWN where that could not be
 * found out, and before. */
enum { OS_FILTERS_UNKNOWN = 0xFFFFFFFF };
uint32_t os_filters(void);

/* The user of the process may have so few tasks that one more might be the program's: who set that limit means it. A system call. */
bool os_tasks_are_few(void);

/* The calling process, by a system call; and the one in which the library was loaded, 0 where that could not be found out, and before. */
uint32_t os_process(void);
uint32_t os_process_at_start(void);

/* Starts a thread that runs `run` and ends. It is the kernel's alone: libc does not know it, so that a program with one
 * thread stays one to libc, and starting it takes no lock of libc's. It has a thread block of its own, all zero, and
 * no signal ever reaches it; it may call nothing of libc's that looks at the thread block or could fail (errno).
 * `word` holds its number while it lives and is zeroed, with a wake, by the kernel when it is gone, however it went.
 * `memory` is OS_THREAD_BYTES of mapped memory, aligned to a page, that must stay until then. False when the kernel
 * refuses, and where this architecture is not known. */
bool os_start_thread(void (*run)(void), void *memory, _Atomic uint32_t *word);
enum { OS_THREAD_BYTES = 64 * 1024 };

/* Whether the calling thread is one of these. */
bool os_is_own_thread(void);

/* Such memory, with a page below it that is never touched; NULL when refused. */
void *os_thread_memory(void);

/* The calling thread, which libc does not know, becomes a plain one of that name (at most 15 characters): on the CPUs that the process
 * was started on, of the plain class, and without any capability, whoever happened to start it. If the process has privileges that it may give
 * up, the thread also makes no system call any more but those that the library needs: it stays what the program was, and whoever comes to
 * choose what it runs gets nothing from that. False if the kernel refuses that filter. */
bool os_be_plain(const char *name);

/* Whether the process had privileges when the library was loaded, or might have had some: capabilities, or more than its user's rights. */
bool os_is_privileged_at_start(void);

/* Sends a signal to the calling thread. */
void os_raise(int number);

/* Ends the process by SIGABRT as libc's abort does, also where that signal is blocked or ignored or its handler returns. On a thread of
 * os_start_thread, whom libc does not know, one of the program's threads is sent the signal first, and has five seconds to handle it. */
_Noreturn void os_abort(void);

/* Whether the eight bytes there can be read: false where a read would fault. A system call, that changes nothing. */
bool os_can_read(const void *at);

/* The calling thread as pthread_self returns it; 0 in a task that a raw clone made with a zeroed block of thread-local data, whose variables
 * must not be touched. */
static inline uintptr_t os_thread_itself(void) {
#if defined(__x86_64__)
    uintptr_t self;
    __asm__("mov %%fs:0, %0" : "=r"(self));
    return self;
#elif defined(__powerpc64__) /* where compilers have no name for it */
    uintptr_t self;
    __asm__("mr %0, 13" : "=r"(self));
    return self;
#else
    return (uintptr_t)__builtin_thread_pointer();
#endif
}

/* Writes to standard error, as much as it takes. */
void os_write_error(const char *text, size_t length);

#endif
