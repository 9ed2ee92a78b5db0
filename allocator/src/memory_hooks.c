#include "memory_hooks.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "elf_objects.h"
#include "os.h"

enum {
    FUNCTIONS = 3,
    CODE_BYTES =
        32, /* of each: patches replace the first instructions, and the system call is among these in most builds of libc */
};

/* The state when the library was loaded; written by the constructor alone. Nothing is known in a program without a dynamic linker. */
static struct {
    void *const *slot; /* what the dynamic linker binds, and a hook may bind again; NULL: nothing is known */
    void *unbound; /* what it holds before the first call, where the program is bound call by call */
    void *function;
    unsigned char code[CODE_BYTES];
} functions[FUNCTIONS];

static bool installed_before; /* written by the constructor alone */

/* The thread is in one of the calls. Seen by signal handlers that interrupt it there. */
static _Thread_local volatile bool is_calling __attribute__((tls_model("initial-exec")));

/* Threads in a call that a hook takes part in. Relaxed: who waits for one of them looks again after a while. */
static _Atomic uint32_t running;

/* -- whether there are any ----------------------------------------------------------------------------------- */

/* A function of libc does not begin so: with a jump, or by loading an address into a register for one. */
static bool begins_with_jump(const unsigned char *code) {
#if defined(__x86_64__)
    code += code[0] == 0xf3 && code[1] == 0x0f && code[2] == 0x1e && code[3] == 0xfa ? 4 : 0; /* endbr64 */
    return code[0] == 0xe9 || code[0] == 0xeb || code[0] == 0xff || code[0] == 0x68 || code[0] == 0xcc ||
           (code[0] == 0x49 && code[1] == 0xbb) || (code[0] == 0x48 && code[1] == 0xb8);
#elif defined(__aarch64__)
    enum { SCRATCH_FIRST = 15, SCRATCH_LAST = 17, BRANCH = 5 }; /* registers, and an opcode */
    unsigned target = code[0] & 31u;
    return (target >= SCRATCH_FIRST && target <= SCRATCH_LAST) || code[3] >> 2 == BRANCH;
#else
    (void)code;
    return false;
#endif
}

static bool is_code(const unsigned char *code, const unsigned char *seen) {
    unsigned different = 0;
    for (unsigned i = 0; i < CODE_BYTES; i++) {
        different |= (unsigned)(seen[i] ^ code[i]);
    }
    return different == 0;
}

/* The linker defines it: the header of the object that this code is in. */
extern const ElfW(Ehdr) __ehdr_start INTERNAL;

static void note_function(unsigned i, void *const *slot, void *function) {
    functions[i].unbound = *slot;
    functions[i].function = function;
    for (unsigned byte = 0; byte < CODE_BYTES; byte++) {
        functions[i].code[byte] = ((const unsigned char *)function)[byte];
    }
    functions[i].slot = slot;
    installed_before |= begins_with_jump(function);
}

/* While the library is loaded: later a search of the objects might wait for a thread that waits for this one. */
__attribute__((constructor(101))) static void note_functions(void) {
    static const char *const names[FUNCTIONS] = {"munmap", "madvise", "mremap"};
    struct elf_object own = elf_object_at((uintptr_t)&__ehdr_start), libc = {0};
    bool call_by_call =
        false; /* as programs are bound to which the archive is linked: the slots lead back to the program until then */
    for (unsigned i = 0; i < FUNCTIONS; i++) {
        void *const *slot = elf_slot_in(own, names[i]);
        if (slot == NULL) { /* no dynamic linker; or the archive is linked to a function of the program's own */
            installed_before |= elf_function_needed(own, names[i]) != NULL;
            continue;
        }
        if (libc.dynamic == NULL) {
            libc = elf_object_of(*slot);
            call_by_call = libc.dynamic == own.dynamic;
            libc = call_by_call ? elf_object_of(elf_function_anywhere(names[i])) : libc;
            installed_before |= elf_function_in(libc, "__libc_start_main") == NULL;
        }
        void *function = elf_function_in(libc, names[i]);
        bool is_first = call_by_call ? elf_function_anywhere(names[i]) == function : *slot == function;
        if (function != NULL && is_first) {
            note_function(i, slot, function);
        } else {
            installed_before = true;
        }
    }
}

static bool is_hooked(unsigned i) {
    if (functions[i].slot == NULL) {
        return false;
    }
    /* relaxed: a hook that counts on being seen was installed before the memory in question was freed */
    void *bound = __atomic_load_n(functions[i].slot, __ATOMIC_RELAXED);
    return (bound != functions[i].function && bound != functions[i].unbound) ||
           !is_code(functions[i].code, functions[i].function);
}

bool memory_hooks_installed(void) { return installed_before || is_hooked(0) || is_hooked(1) || is_hooked(2); }

bool memory_hooks_are_running(void) { return atomic_load_explicit(&running, memory_order_relaxed) != 0; }

void memory_hooks_after_fork(void) { atomic_store_explicit(&running, 0, memory_order_relaxed); }

/* -- calls --------------------------------------------------------------------------------------------------- */

bool memory_hooks_may_call(void) { return os_is_own_thread() ? !memory_hooks_installed() : !is_calling; }

/* The keeper, and a task that the program has made by a system call, with nothing where libc has the thread's description. */
static bool is_no_thread_of_libc(void) {
#if defined(__x86_64__)
    void *self;
    __asm__("mov %%fs:0, %0" : "=r"(self));
    return self == NULL || os_is_own_thread();
#else
    return os_is_own_thread();
#endif
}

struct call {
    int error; /* errno before */
    bool hooked;
};

static struct call begin_call(void) {
    struct call call = {errno, memory_hooks_installed()};
    is_calling = true;
    if (call.hooked) {
        atomic_fetch_add_explicit(&running, 1, memory_order_relaxed);
    }
    return call;
}

static void end_call(struct call call) {
    if (call.hooked) { /* in a child that was forked within the hook the count is 0 already */
        uint32_t seen = atomic_load_explicit(&running, memory_order_relaxed);
        while (seen != 0 && !atomic_compare_exchange_weak_explicit(&running, &seen, seen - 1, memory_order_relaxed,
                                                                   memory_order_relaxed)) {
        }
    }
    is_calling = false;
    errno = call.error;
}

bool memory_hooks_munmap(void *at, size_t bytes) {
    if (is_no_thread_of_libc()) {
        return os_call(SYS_munmap, (long)at, (long)bytes, 0, 0, 0, 0) == 0;
    }
    struct call call = begin_call();
    bool done = munmap(at, bytes) == 0;
    end_call(call);
    return done;
}

bool memory_hooks_purge(void *at, size_t bytes) {
    if (is_no_thread_of_libc()) {
        return os_call(SYS_madvise, (long)at, (long)bytes, MADV_DONTNEED, 0, 0, 0) == 0;
    }
    struct call call = begin_call();
    bool done = madvise(at, bytes, MADV_DONTNEED) == 0;
    end_call(call);
    return done;
}

void *memory_hooks_mremap(void *at, size_t old_bytes, size_t new_bytes, int flags, void *to) {
    if (is_no_thread_of_libc()) {
        long moved = os_call(SYS_mremap, (long)at, (long)old_bytes, (long)new_bytes, flags, (long)to, 0);
        return moved < 0 && moved > -4096 ? NULL : (void *)moved;
    }
    struct call call = begin_call();
    /* libc's takes the last argument if the flags ask for a place, and hooks take it always. */
    void *moved = mremap(at, old_bytes, new_bytes, flags, to);
    end_call(call);
    return moved == MAP_FAILED ? NULL : moved;
}
