/* Coroutines: stacks that nobody knows, of which the outermost frame returns to what is no address, since it never returns (as minicoro has it on
 * x86-64); frame pointers that are none. Blocks are guarded there as elsewhere, and nothing that is no code, nor stack, is read.
 *
 *   coroutine dummy | closed | data           what the outermost frame returns to
 *             registered                      frames are registered with the unwinder, and the frame pointer is any number */
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "../entry.h"
#include "../expect.h"
#include "../serving.h"

extern void __register_frame(void *begin) __attribute__((weak));

enum { STACK = 128 * 1024, TURNS = 100 };

static ucontext_t home;
static volatile bool is_back;
static uintptr_t outermost, frame_pointer;
static char *stack;

static void allocate_some(void) {
    for (size_t i = 0; i < TURNS; i++) {
        char *block = unseen(malloc(40 + i));
        EXPECT(block != NULL, "no memory");
        block[0] = 1;
        free(block);
    }
}

static void __attribute__((noinline, used)) body(void) {
    allocate_some();
    is_back = true;
    (void)setcontext(&home);
}

/* Never comes back by itself. */
static void __attribute__((noinline)) enter(void) {
#if defined(__x86_64__)
    __asm__ volatile("mov %0, %%rsp\n\tmov %1, %%rbp\n\tpush %2\n\tjmp *%3"
                     :
                     : "r"(stack + STACK - 64), "r"(frame_pointer), "r"(outermost), "r"(body)
                     : "memory");
#elif defined(__aarch64__)
    __asm__ volatile("mov sp, %0\n\tmov x29, %1\n\tmov x30, %2\n\tbr %3"
                     :
                     : "r"(stack + STACK - 64), "r"(frame_pointer), "r"(outermost), "r"(body)
                     : "memory", "x30");
#else
    expect_skip("no coroutine was written for this machine");
#endif
    __builtin_unreachable();
}

static void run(void) {
    is_back = false;
    (void)getcontext(&home);
    if (!is_back) {
        enter();
    }
}

/* The stack, and behind it a page that can be read and one that cannot: only what lies above a frame looks like another. */
static char *map(void) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    stack = mmap(NULL, STACK + 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(stack != MAP_FAILED && mprotect(stack + STACK + page, page, PROT_NONE) == 0, "no stack");
    return stack + STACK + page;
}

int main(int count, char **arguments) {
    require_serving();
    const char *what = count > 1 ? arguments[1] : "";
    char *closed = map();
    outermost = UINT64_C(0xdeaddeaddeaddead);
    if (strcmp(what, "closed") == 0) {
        outermost = (uintptr_t)closed + 16;
    } else if (strcmp(what, "data") == 0) {
        outermost = (uintptr_t)closed - 1;
    } else if (strcmp(what, "registered") == 0) {
        static unsigned nothing[4];
        if (__register_frame != NULL) { /* a static program needs none */
            __register_frame(nothing);
        }
        frame_pointer = (uintptr_t)closed;
    } else {
        EXPECT(strcmp(what, "dummy") == 0, "usage: coroutine dummy|closed|data|registered");
    }
    for (unsigned turn = 0; turn < 10; turn++) {
        (void)usleep(20000);
        run();
        frame_pointer -= strcmp(what, "registered") == 0 ? 8 : 0; /* the second word alone lies on the page */
    }
    return 0;
}
