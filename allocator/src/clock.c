/* The clocks of os.h: the kernel's own function in the page that it maps into each process (the vDSO), called without libc. A program or a
 * preload may replace clock_gettime by one that allocates, takes a lock, needs a thread that libc knows, or stands still. */
#include <linux/auxvec.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "elf_symbols.h"
#include "os.h"

/* The shared library has its own (libc_loaded.c). */
os_clock_function *os_vdso_clock INTERNAL __attribute__((weak));

/* It needs neither libc nor a thread that libc knows. Stands still if a filter refuses the system call that is made without it. */
static struct timespec read_clock(clockid_t clock) {
    struct timespec now = {0};
    os_clock_function *function = __atomic_load_n(&os_vdso_clock, __ATOMIC_RELAXED);
    if (function == NULL || function(clock, &now) != 0) {
        (void)os_call(SYS_clock_gettime, clock, (long)&now, 0, 0, 0, 0);
    }
    return now;
}

uint64_t os_milliseconds(void) {
    struct timespec now = read_clock(CLOCK_MONOTONIC_COARSE);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

uint64_t os_nanoseconds(void) {
    struct timespec now = read_clock(CLOCK_MONOTONIC);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* -- finding it ---------------------------------------------------------------------------------------------- */

/* The auxiliary vector behind the environment as the kernel laid it out. unsetenv shortens that in place, and leaves more than one zero. */
static const uintptr_t *auxiliary_vector(char **environment) {
    const uintptr_t *at = (const uintptr_t *)environment;
    while (*at != 0) {
        at++;
    }
    while (*at == 0) {
        at++;
    }
    return at;
}

/* The ELF header of the vDSO; 0 if there is none, or if this is no auxiliary vector. */
static uintptr_t vdso_header(const uintptr_t *vector) {
    enum { PAIRS_MOST = 64 };
    uintptr_t header = 0, page = 0;
    for (int i = 0; i < PAIRS_MOST && vector[0] != AT_NULL; i++, vector += 2) {
        header = vector[0] == AT_SYSINFO_EHDR ? vector[1] : header;
        page = vector[0] == AT_PAGESZ ? vector[1] : page;
    }
    return page >= 4096 && (page & (page - 1)) == 0 && (header & (page - 1)) == 0 ? header : 0;
}

/* Functions of this ABI are called by descriptors, and the vDSO has none. */
#if defined(_CALL_ELF) && _CALL_ELF == 1
enum { IS_CALLABLE = false };
#else
enum { IS_CALLABLE = true };
#endif

static void find_in(char **environment) {
    static const char names[][24] = {"__vdso_clock_gettime", "__kernel_clock_gettime"}; /* by architecture */
    uintptr_t header = IS_CALLABLE ? vdso_header(auxiliary_vector(environment)) : 0;
    void *found = NULL;
    for (int i = 0; i < 2 && header != 0 && found == NULL; i++) {
        found = elf_function_in(elf_object_at(header), names[i]);
    }
    __atomic_store_n(&os_vdso_clock, (os_clock_function *)found, __ATOMIC_RELAXED);
}

/* getauxval may be replaced as well, by one that works only after a constructor of its own. */
#ifdef __GLIBC__
/* glibc hands constructors what the kernel handed it, also if the library is loaded late. */
void os_find_clock(int arguments, char **argument) {
    if (argument != NULL) {
        find_in(argument + arguments + 1);
    }
}
#else
/* The kernel's environment lies below its strings; one that an earlier constructor has replaced lies elsewhere. */
void os_find_clock(int arguments, char **argument) {
    (void)arguments;
    (void)argument;
    enum { STRINGS_MOST = 8 << 20 };
    if (environ != NULL && environ[0] != NULL && (uintptr_t)environ[0] - (uintptr_t)environ < STRINGS_MOST) {
        find_in(environ);
    }
}
#endif
