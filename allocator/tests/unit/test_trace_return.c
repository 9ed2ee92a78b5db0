/* Where frames return to, as the tables have it: beside what the unwinder finds when it goes there, in plain frames, behind libc's, from every
 * instruction that a clock's signal happens to stop at, and through the frame of that signal. */
#include "trace_return.h"

#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <unwind.h>

#include "expect.h"

struct bases {
    void *text, *data, *function;
};
extern const void *_Unwind_Find_FDE(void *address, struct bases *bases);

/* Of one walk: what is predicted of the next frame, 0 for nothing. */
struct walk {
    uintptr_t next;
};

static volatile unsigned long told, untold, wrong, signals;
static volatile uintptr_t last_wrong;

static uintptr_t word(void *context, int number) {
    return (uintptr_t)_Unwind_GetGR((struct _Unwind_Context *)context, number);
}

/* Without what authenticates it. */
static uintptr_t plain(uintptr_t address) { return address & ((UINT64_C(1) << 48) - 1); }

static _Unwind_Reason_Code visit(struct _Unwind_Context *context, void *argument) {
    struct walk *walk = argument;
    int is_next = 0;
    uintptr_t address = (uintptr_t)_Unwind_GetIPInfo(context, &is_next), at = address - (is_next == 0);
    if (walk->next != 0 && plain(walk->next) != plain(address)) {
        wrong++;
        last_wrong = address;
    }
    struct bases bases;
    const void *entry = address != 0 ? _Unwind_Find_FDE((void *)at, &bases) : NULL;
    struct trace_frame frame = {at, trace_stack_pointer((uintptr_t)_Unwind_GetCFA(context), is_next != 0), word,
                                context};
    uintptr_t slot = entry != NULL ? trace_return_slot(&frame, entry, (uintptr_t)bases.function) : 0;
    walk->next = slot != 0 ? *(const uintptr_t *)slot : 0;
    told += slot != 0;
    untold += entry != NULL && slot == 0;
    return _URC_NO_REASON;
}

static void walk_here(void) {
    struct walk walk = {0};
    (void)_Unwind_Backtrace(visit, &walk);
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
    EXPECT(told > 20 && wrong == 0, "%lu frames were told, %lu wrong: at %#lx", told, wrong, (unsigned long)last_wrong);
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
    EXPECT(untold < told / 5, "of %lu frames %lu are not told", told + untold, untold);
    return 0;
}
