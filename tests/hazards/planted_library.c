/* libc's own allocator with one fault, chosen by PLANTED, so that every hazard's program can be seen to fail. It has no more
 * entries than the faults take: the others are libc's, which is a fault in itself (four-entries). */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "freestone.h"

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void __libc_free(void *block);
void *__libc_memalign(size_t alignment, size_t size);

void *memalign(size_t alignment, size_t size);
int posix_memalign(void **block, size_t alignment, size_t size);
size_t malloc_usable_size(void *block);
void sized_delete(void *block, size_t size) __asm__("_ZdlPvm");

enum { HUGE_PAGE = 2 << 20, PAGE = 4096, TURNS_LOCKED = 300, PUSHED_MOST = 1000 };

static const char *fault;
static bool constructed;
static atomic_size_t threads, calls;
static __thread bool known;
static char in_common[4 << 20]; /* copies-in-child */
static pid_t first_process;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool asked_for(const char *name) {
    if (fault == NULL) { /* environ is there before any constructor */
        fault = getenv("PLANTED");
        fault = fault == NULL ? "" : fault;
    }
    return strcmp(fault, name) == 0;
}

/* Compared once in each place: some hazards step through every instruction. Two threads that compare at once find the same. */
#define is(name)                                                                           \
    __extension__({                                                                        \
        static _Atomic signed char found;                                                  \
        if (atomic_load_explicit(&found, memory_order_relaxed) == 0) {                     \
            atomic_store_explicit(&found, asked_for(name) ? 1 : -1, memory_order_relaxed); \
        }                                                                                  \
        atomic_load_explicit(&found, memory_order_relaxed) > 0;                            \
    })

static void turn(size_t turns) {
    for (; turns > 0; turns--) {
        __asm__ volatile("nop");
    }
}

static char *map(size_t bytes, int protection) {
    char *memory = mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        abort();
    }
    return memory;
}

/* --- faults of a process, a thread, a call -------------------------------------------------------------------------- */

__attribute__((constructor)) static void start(void) {
    constructed = true;
    first_process = getpid();
    if (is("reserves")) {
        (void)map((size_t)1 << 30, PROT_NONE);
    } else if (is("reserves-data")) { /* what nobody may write is no data to the kernel */
        (void)map((size_t)1 << 30, PROT_READ | PROT_WRITE);
    } else if (is("copies-in-child")) {
        memset(in_common, 1, sizeof in_common);
    } else if (is("slow-start")) {
        struct timespec pause = {.tv_nsec = 5000000};
        nanosleep(&pause, NULL);
    } else if (is("large-start")) {
        memset(map(1 << 20, PROT_READ | PROT_WRITE), 1, 1 << 20);
    } else if (is("many-calls")) {
        for (int i = 0; i < 20; i++) {
            (void)syscall(SYS_getppid);
        }
    } else if (is("small-pages")) {
        (void)prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    } else if (is("nodes")) {
        close(open("/sys/devices/system/node/online", O_RDONLY | O_CLOEXEC));
    } else if (is("lazy")) {
        char *memory = map(64 << 20, PROT_READ | PROT_WRITE);
        memset(memory, 1, 64 << 20);
        (void)madvise(memory, 64 << 20, MADV_FREE);
    } else if (is("dies-in-child")) {
        if (getenv("PLANTED_BEFORE") != NULL) {
            _exit(9);
        }
        setenv("PLANTED_BEFORE", "1", 1);
    } else if (is("never-late")) { /* its thread-local data want a place that the first threads alone have */
        const char *preload = getenv("LD_PRELOAD");
        if (preload == NULL || strstr(preload, "planted_library") == NULL) {
            abort();
        }
    } else if (is("random-places")) {
        if ((personality(0xffffffff) & ADDR_NO_RANDOMIZE) != 0) {
            abort();
        }
    } else if (is("needs-rseq") || is("takes-rseq")) {
        const unsigned *registered = dlsym(RTLD_DEFAULT, "__rseq_size");
        if ((registered != NULL && *registered != 0) == is("takes-rseq")) {
            abort();
        }
    } else if (is("undefined")) { /* goes by bytes that nobody has set */
        char bytes[64], *unset = bytes;
        __asm__ volatile("" : "+r"(unset) : : "memory");
        turn(unset[5] == 'x');
    } else if (is("two-heaps")) { /* what is taken beside malloc is freed by it */
        free(__libc_malloc(100));
    } else if (is("counts-cpus")) {
        cpu_set_t set;
        if (sched_getaffinity(0, sizeof set, &set) != 0 || CPU_COUNT(&set) < 2) {
            abort();
        }
    }
}

static void begin_thread(void) {
    known = true;
    atomic_fetch_add(&threads, 1);
    if (is("spread")) {
        memset(map(2 << 20, PROT_READ | PROT_WRITE), 1, 2 << 20);
    } else if (is("sparse")) {
        char *memory = map(2 * HUGE_PAGE, PROT_READ | PROT_WRITE);
        memory[HUGE_PAGE - (uintptr_t)memory % HUGE_PAGE] = 1;
    }
}

static void *sleep_on(void *unused) {
    for (;;) {
        pause();
    }
    return unused;
}

/* Gives memory back, and holds meanwhile, and a while longer, what every call, every birth of a thread and every fork waits for. It
 * sleeps, as who waits for the kernel does: its victims use no processor time. */
static void *hold_the_lock(void *unused) {
    enum { BYTES = 8 << 20 };
    char *memory = map(BYTES, PROT_READ | PROT_WRITE);
    const struct timespec held = {.tv_nsec = 20000000}, between = {.tv_nsec = 110000000};
    for (;;) {
        memset(memory, 1, BYTES);
        pthread_mutex_lock(&lock);
        (void)madvise(memory, BYTES, MADV_DONTNEED);
        nanosleep(&held, NULL);
        pthread_mutex_unlock(&lock);
        nanosleep(&between, NULL);
    }
    return unused;
}

static void wait_for_the_lock(void) {
    if (is("holds-lock")) {
        pthread_mutex_lock(&lock);
    }
}

static void let_go_of_the_lock(void) {
    if (is("holds-lock")) {
        pthread_mutex_unlock(&lock);
    }
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*work)(void *), void *argument) {
    typedef int creation(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    static creation *real;
    if (real == NULL) {
        real = (creation *)(uintptr_t)dlsym(RTLD_NEXT, "pthread_create");
    }
    wait_for_the_lock();
    let_go_of_the_lock();
    return real(thread, attributes, work, argument);
}

static void begin_call(size_t size) {
    if (!known) {
        begin_thread();
    }
    if (is("lock")) { /* no handler takes it before a fork */
        pthread_mutex_lock(&lock);
        turn(TURNS_LOCKED);
        pthread_mutex_unlock(&lock);
    } else if (is("holds-lock")) {
        static atomic_bool started;
        pthread_t thread;
        if (size >= PAGE && !atomic_exchange(&started, true)) {
            pthread_atfork(wait_for_the_lock, let_go_of_the_lock, let_go_of_the_lock);
            pthread_create(&thread, NULL, hold_the_lock, NULL);
        }
        wait_for_the_lock();
        let_go_of_the_lock();
    } else if (is("walks-threads")) {
        turn(2 * atomic_load(&threads));
    } else if (is("early") && !constructed) {
        abort();
    } else if (is("asks")) { /* dlsym allocates its message */
        static __thread volatile int asking;
        if (asking != 0) {
            abort();
        }
        asking = 1;
        (void)dlsym(RTLD_NEXT, "no_function_has_this_name");
        asking = 0;
    } else if (is("odd-call")) { /* would like its memory near, and takes no for an error */
        if (syscall(SYS_mbind, 0, 0, 0, 0, 0, 0) != 0 && errno == EPERM) {
            abort();
        }
    } else if (is("touches-anew") && size >= 500) {
        static __thread char *page;
        page = page == NULL ? map(PAGE, PROT_READ | PROT_WRITE) : page;
        *page = 1;
        (void)madvise(page, PAGE, MADV_DONTNEED);
    } else if (is("copies-in-child") &&
               getpid() != first_process) { /* writes to pages that it has in common with its parent */
        static size_t at;
        at = (at + PAGE) % sizeof in_common;
        in_common[at] = 1;
    } else if (is("thread") && size >= 32 << 20) {
        static atomic_bool started;
        pthread_t thread;
        if (!atomic_exchange(&started, true)) {
            pthread_create(&thread, NULL, sleep_on, NULL);
        }
    } else if (is("splits") && size >= HUGE_PAGE) {
        char *memory = map(6 * PAGE, PROT_NONE);
        for (int i = 0; i < 6; i += 2) {
            (void)mprotect(memory + i * PAGE, PAGE, PROT_READ);
        }
    } else if (is("stops-at-refusal") && size >= 300000) {
        char *memory = map(3 * PAGE, PROT_READ);
        if (mprotect(memory + PAGE, PAGE, PROT_NONE) != 0) {
            abort();
        }
        munmap(memory, 3 * PAGE);
    }
}

/* --- blocks that are not one's own ---------------------------------------------------------------------------------- */

static struct {
    void *block;
    size_t size;
} pushed[PUSHED_MOST]; /* by a size that somebody told; of one thread */
static size_t pushes;

static void *popped(size_t size) {
    for (size_t i = 0; i < pushes; i++) {
        if (pushed[i].size == size || is("takes-all")) {
            void *block = pushed[i].block;
            pushed[i] = pushed[--pushes];
            return block;
        }
    }
    return NULL;
}

static void push(void *block, size_t size) {
    if (pushes < PUSHED_MOST) {
        pushed[pushes].block = block;
        pushed[pushes++].size = size;
    }
}

void sized_delete(void *block, size_t size) {
    if (is("trusts-size")) {
        push(block, size);
    } else {
        free(block);
    }
}

static void *given_before(size_t size) {
    static void *last;
    static size_t last_size;
    return is("twice") && size >= 64 && atomic_fetch_add(&calls, 1) % 50 == 49 && last_size >= size
               ? last
               : (last_size = size, (last = __libc_malloc(size)));
}

/* --- entries -------------------------------------------------------------------------------------------------------- */

void *malloc(size_t size) {
    begin_call(size);
    if (size == 0 && is("null-for-zero")) {
        return NULL;
    }
    void *block = popped(size);
    if (block == NULL) {
        block = is("twice") ? given_before(size) : __libc_malloc(size);
    }
    return block;
}

void *calloc(size_t count, size_t size) {
    begin_call(size);
    size_t bytes;
    if (is("not-zero") && !__builtin_mul_overflow(count, size, &bytes)) {
        return __libc_malloc(bytes);
    }
    if (is("wraps")) {
        return __libc_calloc(1, count * size);
    }
    void *block = __libc_calloc(count, size);
    if (is("touches") && block != NULL) {
        memset(block, 0, count * size);
    }
    return block;
}

void *realloc(void *block, size_t size) {
    begin_call(size);
    if ((is("copies") || is("loses")) && block != NULL && size != 0) {
        size_t old = malloc_usable_size(block);
        void *copy = __libc_malloc(size);
        if (copy != NULL) {
            memcpy(copy, block, (old < size ? old : size) / (is("loses") ? 2 : 1));
            __libc_free(block);
        }
        return copy;
    }
    if (is("block-for-zero") && size == 0) { /* no fault: C leaves it open */
        __libc_free(block);
        return __libc_malloc(0);
    }
    return __libc_realloc(block, size);
}

void free(void *block) {
    begin_call(0);
    if (is("keeps")) {
        return;
    }
    if (is("takes-all") && block != NULL) {
        push(block, 0);
        return;
    }
    if (is("errno")) {
        errno = EINVAL;
    }
    if (is("stall") && atomic_fetch_add(&calls, 1) % 3000 == 2999) {
        turn(60000000);
    }
    int before = errno;
    __libc_free(block);
    errno = before;
}

void *memalign(size_t alignment, size_t size) {
    if (is("own-aligned")) { /* free does not know it */
        char *block = __libc_memalign(alignment, size + alignment);
        return block == NULL ? NULL : block + alignment;
    }
    return __libc_memalign(is("misaligned") ? 16 : alignment, size);
}

int posix_memalign(void **block, size_t alignment, size_t size) {
    if (alignment < sizeof(void *) || (alignment & (alignment - 1)) != 0) {
        return EINVAL;
    }
    void *memory = memalign(alignment, size);
    if (memory == NULL) {
        return ENOMEM;
    }
    *block = memory;
    return 0;
}

size_t malloc_usable_size(void *block) {
    static size_t (*real)(void *);
    if (real == NULL) {
        real = (size_t (*)(void *))(uintptr_t)dlsym(RTLD_NEXT, "malloc_usable_size");
    }
    return real(block) + (is("too-usable") && block != NULL ? 64 : 0);
}

/* --- figures -------------------------------------------------------------------------------------------------------- */

/* What the kernel says, which is the truth but for what was there at the start. */
static size_t resident(void) {
    char text[128] = {0};
    int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    const char *second = length > 0 ? strchr(text, ' ') : NULL;
    return second == NULL ? 0 : strtoul(second, NULL, 10) * PAGE;
}

void freestone_stats_read(struct freestone_stats *stats) {
    static size_t most;
    memset(stats, 0, sizeof *stats);
    size_t now = resident();
    most = now > most ? now : most;
    /* Half of it, or what was given back as if it were held. */
    stats->slabs = is("half-told") ? now / 2 : is("never-less") ? most : now;
}
