/* Frames by our own reader of the tables: compared with those that libgcc's unwinder finds, in plain frames, behind libc's, from every
 * instruction that a clock's signal happens to stop at, and through the frame of that signal. */
#include "unwind_step.h"

#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <unwind.h>

#include "elf_objects.h"
#include "expect.h"

/* Under a name of its own: only newer headers declare it. */
extern int find_object(void *address, void *found) __asm__("_dl_find_object") __attribute__((weak));

enum { MOST = 64 };
struct list {
    unsigned count;
    uintptr_t addresses[MOST];
};

static volatile unsigned long told, wrong, walks, short_walks, signals;
static volatile uintptr_t last_wrong;

/* Without what authenticates it. */
static uintptr_t plain(uintptr_t address) { return address & ((UINT64_C(1) << 48) - 1); }

static _Unwind_Reason_Code visit(struct _Unwind_Context *context, void *argument) {
    struct list *list = argument;
    int is_next = 0;
    uintptr_t address = (uintptr_t)_Unwind_GetIPInfo(context, &is_next);
    if (address != 0 && list->count < MOST) {
        list->addresses[list->count++] = plain(address);
    }
    return _URC_NO_REASON;
}

static bool read_word(void *context, uintptr_t address, uintptr_t *word) {
    (void)context;
    *word = *(const uintptr_t *)address;
    return true;
}

/* The first address is of this function, at another instruction. */
static __attribute__((noinline)) void walk_here(void) {
    struct list expected = {0};
    (void)_Unwind_Backtrace(visit, &expected);
    struct unwind_frame frame;
    unwind_here(&frame);
    walks++;
    for (unsigned i = 1; i < expected.count; i++) {
        struct elf_object object = elf_object_of((const void *)unwind_address(&frame));
        if (object.frames == NULL || !unwind_step(&frame, object.frames, read_word, NULL)) {
            short_walks++;
            return;
        }
        told++;
        if (frame.pc != expected.addresses[i]) {
            wrong++;
            last_wrong = expected.addresses[i];
            return;
        }
    }
}

static int compare(const void *one, const void *other) {
    walk_here();
    return *(const int *)one - *(const int *)other;
}

static void on_signal(int number) {
    (void)number;
    signals++;
    walk_here();
}

/* The stack grows within the function, and is aligned to more than calls keep it. */
static __attribute__((noinline)) unsigned with_room(unsigned bytes) {
    volatile char room[bytes];
    volatile char aligned[64] __attribute__((aligned(64)));
    room[bytes - 1] = 1;
    aligned[1] = 2;
    walk_here();
    return (unsigned)(room[bytes - 1] + aligned[1]);
}

static __attribute__((noinline)) unsigned deep(unsigned levels) {
    return levels == 0 ? with_room(100) : deep(levels - 1) + levels;
}

int main(void) {
    int numbers[] = {5, 2, 9, 1};
    qsort(numbers, 4, sizeof *numbers, compare);
    unsigned sum = deep(10);
    EXPECT(told > 20 && wrong == 0 && short_walks == 0, "%lu frames were told, %lu wrong: at %#lx", told, wrong,
           (unsigned long)last_wrong);
    if (find_object == NULL) {
        return 0; /* a handler must not wait for the lock that the interrupted code may hold */
    }
    elf_find_object = find_object;
    (void)signal(SIGALRM, on_signal);
    struct itimerval every = {{0, 500}, {0, 500}};
    (void)setitimer(ITIMER_REAL, &every, NULL);
    char text[200];
    while (signals < 1000) { /* in code of many kinds */
        sum += (unsigned)snprintf(text, sizeof text, "%d %s %.17g", numbers[0], "some words", 1.0 / sum);
        qsort(numbers, 4, sizeof *numbers, compare);
    }
    struct itimerval never = {{0, 0}, {0, 0}};
    (void)setitimer(ITIMER_REAL, &never, NULL);
    EXPECT(wrong == 0, "of %lu frames %lu are wrong: the last at %#lx", told, wrong, (unsigned long)last_wrong);
    EXPECT(short_walks < walks / 20, "of %lu walks %lu end early", walks, short_walks);
    return 0;
}
