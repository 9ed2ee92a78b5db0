#include "trace.h"

#include <stdatomic.h>

#include "message.h"
#include "os.h"

enum { END_OF_STACK = 5 }; /* _URC_END_OF_STACK */

static struct trace_libc libc;
static _Atomic bool opened; /* release when set: who sees it finds the unwinder */
static _Atomic bool registered; /* relaxed: a walk under way when it is set has found nothing registered yet */

/* A walk that allocates is not to begin another. */
static _Thread_local volatile bool walking __attribute__((tls_model("initial-exec")));

bool trace_is_open(void) { return atomic_load_explicit(&opened, memory_order_acquire); }

void trace_open(void) {
    trace_find(&libc);
    struct trace first; /* the first walk reads tables, and allocates perhaps: not within malloc, then */
    trace_take(&first);
    atomic_store_explicit(&opened, true, memory_order_release);
}

static int visit(void *context, void *argument) {
    struct trace *trace = argument;
    if (trace->count == TRACE_MOST) {
        return END_OF_STACK;
    }
    uintptr_t address = libc.address(context);
    if (address == 0) {
        return END_OF_STACK;
    }
    trace->frames[trace->count++] = address - 1; /* within the call */
    return 0;
}

/* As pthread_self has it: what libc keeps of a thread lies behind its stack. */
static uintptr_t thread_itself(void) {
#if defined(__x86_64__)
    uintptr_t self;
    __asm__("mov %%fs:0, %0" : "=r"(self));
    return self;
#else
    return (uintptr_t)__builtin_thread_pointer();
#endif
}

/* Where the calling thread's stack ends; the first thread's is where libc says. */
static uintptr_t stack_end(uintptr_t frame) {
    enum { STACK_MOST = 1 << 30 };
    uintptr_t self = thread_itself();
    return self > frame && self - frame < STACK_MOST ? self : libc.stack_end;
}

/* Frames linked through the frame pointer, where nothing unwinds: as long as they rise within the stack. */
static void follow_frame_pointers(struct trace *trace) {
    uintptr_t frame = (uintptr_t)__builtin_frame_address(0), end = stack_end(frame);
    while (trace->count < TRACE_MOST && frame % sizeof(void *) == 0 && frame < end &&
           end - frame >= 2 * sizeof(void *)) {
        const uintptr_t *pair = (const uintptr_t *)frame;
        if (pair[1] == 0) {
            break;
        }
        trace->frames[trace->count++] = pair[1] - 1;
        if (pair[0] <= frame) {
            break;
        }
        frame = pair[0];
    }
}

void trace_follow_pointers(void) { atomic_store_explicit(&registered, true, memory_order_relaxed); }

__attribute__((noinline)) void trace_take(struct trace *trace) {
    trace->thread = thread_itself();
    trace->count = 0;
    if (libc.backtrace == NULL || libc.address == NULL || walking ||
        atomic_load_explicit(&registered, memory_order_relaxed)) {
        follow_frame_pointers(trace);
        return;
    }
    walking = true;
    (void)libc.backtrace(visit, trace);
    walking = false;
}

int trace_sigaction(int number, const struct sigaction *action, struct sigaction *before) {
    return libc.sigaction != NULL ? libc.sigaction(number, action, before) : -1;
}

/* Where an address lies; false when nobody can tell. The texts stay. */
struct place {
    const char *file, *function; /* the function may be NULL */
    uintptr_t in_file, in_function; /* from the start of each */
};

static bool locate(uintptr_t address, struct place *place) {
    struct trace_info found = {0};
    if (libc.dladdr == NULL || libc.dladdr((const void *)address, &found) == 0 || found.file == NULL) {
        return false;
    }
    *place =
        (struct place){found.file, found.function, address - (uintptr_t)found.base, address - (uintptr_t)found.start};
    return true;
}

static void print_frame(unsigned number, uintptr_t address) {
    struct message line = {0};
    struct place place;
    message_text(&line, "  #");
    message_number(&line, number);
    message_text(&line, " ");
    message_pointer(&line, (const void *)address);
    if (locate(address, &place)) {
        if (place.function != NULL) {
            message_text(&line, " in ");
            message_text(&line, place.function);
            message_text(&line, "+");
            message_number(&line, place.in_function);
        }
        message_text(&line, " (");
        message_text(&line, place.file);
        message_text(&line, "+");
        message_pointer(&line, (const void *)place.in_file);
        message_text(&line, ")");
    }
    message_print(&line);
}

/* The library's own frames lie together at the beginning. */
static bool is_own(uintptr_t address) {
    struct place own, place;
    return locate((uintptr_t)trace_take, &own) && locate(address, &place) &&
           own.in_file - (uintptr_t)trace_take == place.in_file - address;
}

void trace_print(const struct trace *trace) {
    unsigned number = 0;
    bool outside = false;
    for (unsigned i = 0; i < trace->count; i++) {
        outside = outside || !is_own(trace->frames[i]);
        if (outside) {
            print_frame(number++, trace->frames[i]);
        }
    }
    if (number == 0) {
        for (unsigned i = 0; i < trace->count; i++) {
            print_frame(i, trace->frames[i]);
        }
    }
}

void trace_say(const char *what, const struct trace *trace) {
    struct message line = {0};
    message_text(&line, what);
    message_text(&line, " by thread ");
    message_pointer(&line, (const void *)trace->thread);
    message_text(&line, ":");
    message_print(&line);
    trace_print(trace);
}
