/* A preload that stands before libc with a function for each that libfreestone calls (docs/reference/libc-functions.md). Each needs a thread that libc
 * knows, since it touches a thread-local word, and, as REPLACED says,
 *
 *   allocate   calls malloc and free
 *   lock       holds a lock of the preload's, under which it and others allocate
 *   fail       returns its error to libfreestone, unless that passes on a call of the program's; but dl_iterate_phdr, which stands in for dlsym
 *   iterate    the same of dl_iterate_phdr alone
 *
 * before it goes on in libc. */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include "replaced_functions.h"

enum mode { NOTHING, ALLOCATE, LOCK, FAIL, ITERATE };

static enum mode mode;
static __thread volatile int depth __attribute__((tls_model("global-dynamic")));
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static const char *served_from, *served_to; /* libfreestone */

void replaced_lock(void) { pthread_mutex_lock(&lock); }

void replaced_unlock(void) { pthread_mutex_unlock(&lock); }

static void new_lock(void) {
    static const pthread_mutex_t fresh = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    lock = fresh;
}

/* Nothing of what this does comes back to it. False for a call from within. */
static bool begin(void) {
    if (depth++ != 0) {
        return false;
    }
    if (mode == LOCK) {
        pthread_mutex_lock(&lock);
    }
    if (mode == ALLOCATE || mode == LOCK) {
        for (size_t bytes = 24; bytes <= 50000; bytes *= 12) {
            char *volatile block = malloc(bytes);
            if (block != NULL) {
                block[0] = 1;
            }
            free(block);
        }
    }
    return true;
}

static void end(bool outermost) {
    if (outermost && mode == LOCK) {
        pthread_mutex_unlock(&lock);
    }
    depth--;
}

static bool is_to_fail(bool outermost, enum mode failing, const void *caller) {
    return outermost && mode == failing && (const char *)caller >= served_from && (const char *)caller < served_to;
}

/* libc's own: as found from here, which for RTLD_NEXT is not where the caller would have looked. Such wrappers exist. */
static void *found(void *handle, const char *name) {
    static void *(*real)(void *, const char *);
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17", "GLIBC_2.27"};
    for (size_t i = 0; i < sizeof versions / sizeof *versions && real == NULL; i++) {
        real = (void *(*)(void *, const char *))(uintptr_t)dlvsym(RTLD_NEXT, "dlsym", versions[i]);
    }
    return real(handle, name);
}

#define PASS_ON(type, name, types, ...)                               \
    __extension__({                                                   \
        static type(*next) types;                                     \
        if (next == NULL) {                                           \
            next = (type(*) types)(uintptr_t)found(RTLD_NEXT, #name); \
        }                                                             \
        next(__VA_ARGS__);                                            \
    })

/* A function that libfreestone calls for itself. */
#define OWN(type, failed, name, types, parameters, ...)                           \
    type name parameters;                                                         \
    type name parameters {                                                        \
        bool outermost = begin();                                                 \
        bool fails = is_to_fail(outermost, FAIL, __builtin_return_address(0));    \
        type result = fails ? (failed) : PASS_ON(type, name, types, __VA_ARGS__); \
        end(outermost);                                                           \
        return result;                                                            \
    }

/* A function of the program's that libfreestone passes on. */
#define PASSED(type, name, types, parameters, ...)             \
    type name parameters;                                      \
    type name parameters {                                     \
        bool outermost = begin();                              \
        type result = PASS_ON(type, name, types, __VA_ARGS__); \
        end(outermost);                                        \
        return result;                                         \
    }

typedef void handler(void);
typedef int each_object(struct dl_phdr_info *, size_t, void *);

OWN(int, EAGAIN, pthread_key_create, (pthread_key_t *, void (*)(void *)), (pthread_key_t * key, void (*ending)(void *)),
    key, ending)
OWN(int, ENOMEM, pthread_setspecific, (pthread_key_t, const void *), (pthread_key_t key, const void *value), key, value)
OWN(int, EINVAL, pthread_setcancelstate, (int, int *), (int state, int *before), state, before)
OWN(int, ENOMEM, __register_atfork, (handler *, handler *, handler *, void *),
    (handler * before, handler *parent, handler *child, void *object), before, parent, child, object)
OWN(char *, NULL, secure_getenv, (const char *), (const char *name), name)
OWN(int, -1, sigaction, (int, const struct sigaction *, struct sigaction *),
    (int number, const struct sigaction *action, struct sigaction *before), number, action, before)
OWN(int, 0, dladdr, (const void *, Dl_info *), (const void *address, Dl_info *info), address, info)
OWN(void *, NULL, dlopen, (const char *, int), (const char *name, int flags), name, flags)
OWN(int, -1, munmap, (void *, size_t), (void *at, size_t bytes), at, bytes)
OWN(int, -1, madvise, (void *, size_t, int), (void *at, size_t bytes, int advice), at, bytes, advice)

int dl_iterate_phdr(each_object *each, void *argument) {
    bool outermost = begin();
    bool fails = is_to_fail(outermost, ITERATE, __builtin_return_address(0));
    int result = fails ? 0 : PASS_ON(int, dl_iterate_phdr, (each_object *, void *), each, argument);
    end(outermost);
    return result;
}

void *mremap(void *at, size_t bytes, size_t new_bytes, int flags, ...) {
    bool outermost = begin();
    va_list more;
    va_start(more, flags);
    void *to = va_arg(more, void *);
    va_end(more);
    void *result =
        is_to_fail(outermost, FAIL, __builtin_return_address(0))
            ? MAP_FAILED
            : PASS_ON(void *, mremap, (void *, size_t, size_t, int, void *), at, bytes, new_bytes, flags, to);
    end(outermost);
    return result;
}

int fprintf(FILE *file, const char *format, ...) {
    bool outermost = begin();
    int written = -1;
    if (!is_to_fail(outermost, FAIL, __builtin_return_address(0))) {
        va_list arguments;
        va_start(arguments, format);
        written = vfprintf(file, format, arguments);
        va_end(arguments);
    }
    end(outermost);
    return written;
}

void *dlsym(void *handle, const char *name) {
    bool outermost = begin();
    void *result = is_to_fail(outermost, FAIL, __builtin_return_address(0)) ? NULL : found(handle, name);
    end(outermost);
    return result;
}

/* It has no error. */
int *__errno_location(void) {
    bool outermost = begin();
    int *result = PASS_ON(int *, __errno_location, (void), );
    end(outermost);
    return result;
}

void *memset(void *at, int value, size_t bytes) {
    bool outermost = begin();
    for (volatile char *byte = at; bytes > 0; bytes--) {
        *byte++ = (char)value;
    }
    end(outermost);
    return at;
}

void *memmove(void *to, const void *from, size_t bytes) {
    bool outermost = begin();
    volatile char *target = to;
    const char *source = from;
    bool upwards = (uintptr_t)to - (uintptr_t)from >= bytes;
    for (size_t i = 0; i < bytes; i++) {
        size_t byte = upwards ? i : bytes - 1 - i;
        target[byte] = source[byte];
    }
    end(outermost);
    return to;
}

typedef void *run_thread(void *);
typedef int run_task(void *);

PASSED(int, pthread_create, (pthread_t *, const pthread_attr_t *, run_thread *, void *),
       (pthread_t * thread, const pthread_attr_t *attributes, run_thread *run, void *argument), thread, attributes, run,
       argument)
PASSED(int, setuid, (uid_t), (uid_t user), user)
PASSED(int, setgid, (gid_t), (gid_t group), group)
PASSED(int, seteuid, (uid_t), (uid_t user), user)
PASSED(int, setegid, (gid_t), (gid_t group), group)
PASSED(int, setreuid, (uid_t, uid_t), (uid_t real, uid_t effective), real, effective)
PASSED(int, setregid, (gid_t, gid_t), (gid_t real, gid_t effective), real, effective)
PASSED(int, setresuid, (uid_t, uid_t, uid_t), (uid_t real, uid_t effective, uid_t saved), real, effective, saved)
PASSED(int, setresgid, (gid_t, gid_t, gid_t), (gid_t real, gid_t effective, gid_t saved), real, effective, saved)
PASSED(int, setgroups, (size_t, const gid_t *), (size_t count, const gid_t *groups), count, groups)
PASSED(int, initgroups, (const char *, gid_t), (const char *user, gid_t group), user, group)
PASSED(int, capset, (void *, const void *), (void *header, const void *data), header, data)
PASSED(int, prctl, (int, long, long, long, long), (int option, long a, long b, long c, long d), option, a, b, c, d)
PASSED(int, unshare, (int), (int flags), flags)
PASSED(int, setns, (int, int), (int file, int type), file, type)
PASSED(int, close_range, (unsigned, unsigned, int), (unsigned first, unsigned last, int flags), first, last, flags)

/* Handlers of signals. */
typedef void hear_signal(int number);
PASSED(hear_signal *, signal, (int, hear_signal *), (int number, hear_signal *heard), number, heard)
PASSED(hear_signal *, bsd_signal, (int, hear_signal *), (int number, hear_signal *heard), number, heard)
PASSED(hear_signal *, ssignal, (int, hear_signal *), (int number, hear_signal *heard), number, heard)
PASSED(hear_signal *, sysv_signal, (int, hear_signal *), (int number, hear_signal *heard), number, heard)
PASSED(hear_signal *, __sysv_signal, (int, hear_signal *), (int number, hear_signal *heard), number, heard)
PASSED(hear_signal *, sigset, (int, hear_signal *), (int number, hear_signal *heard), number, heard)
PASSED(int, sigignore, (int), (int number), number)
PASSED(long, cfree, (void *), (void *block), block)

/* libc's is variadic. */
typedef long call_kernel(long number, long a, long b, long c, long d, long e, long f);
call_kernel replaced_syscall __asm__("syscall");
long replaced_syscall(long number, long a, long b, long c, long d, long e, long f) {
    static call_kernel *next;
    bool outermost = begin();
    if (next == NULL) {
        next = (call_kernel *)(uintptr_t)found(RTLD_NEXT, "syscall");
    }
    long result = next(number, a, b, c, d, e, f);
    end(outermost);
    return result;
}

/* In the child of these the lock would be somebody else's. */
pid_t _Fork(void) { return PASS_ON(pid_t, _Fork, (void), ); }

int clone(run_task *run, void *stack, int flags, void *argument, ...) {
    va_list more;
    va_start(more, argument);
    void *parent = va_arg(more, void *), *area = va_arg(more, void *), *child = va_arg(more, void *);
    va_end(more);
    return PASS_ON(int, clone, (run_task *, void *, int, void *, void *, void *, void *), run, stack, flags, argument,
                   parent, area, child);
}

/* -- the preload ------------------------------------------------------------------------------------------------ */

static int find_served(struct dl_phdr_info *info, size_t size, void *address) {
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const char *from = (const char *)info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        const char *to = from + info->dlpi_phdr[i].p_memsz;
        if (info->dlpi_phdr[i].p_type == PT_LOAD && (const char *)address >= from && (const char *)address < to) {
            served_from = from;
            served_to = to;
            return 1;
        }
    }
    return 0;
}

static void read_mode(void) {
    static const char *const modes[] = {[ALLOCATE] = "REPLACED=allocate",
                                        [LOCK] = "REPLACED=lock",
                                        [FAIL] = "REPLACED=fail",
                                        [ITERATE] = "REPLACED=iterate"};
    for (char **each = environ; *each != NULL; each++) {
        for (int which = ALLOCATE; which <= ITERATE; which++) {
            size_t at = 0;
            while ((*each)[at] == modes[which][at] && modes[which][at] != '\0') {
                at++;
            }
            mode = (*each)[at] == modes[which][at] ? (enum mode)which : mode;
        }
    }
}

__attribute__((constructor)) static void begin_replacing(void) {
    PASS_ON(int, dl_iterate_phdr, (each_object *, void *), find_served, found(RTLD_DEFAULT, "freestone_purge"));
    (void)pthread_atfork(replaced_lock, replaced_unlock, new_lock);
    read_mode();
}
