#include "trace.h"

#include <stdatomic.h>

#include "message.h"
#include "os.h"
#include "trace_return.h"

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
    trace_take(&first, true);
    atomic_store_explicit(&opened, true, memory_order_release);
}

/* A walk under way. */
struct walk {
    struct trace *trace;
    uintptr_t from; /* 0 once that frame was seen */
    bool asks; /* the kernel may be asked */
    uintptr_t stack_page, code_page; /* that are known to be readable */
};

static bool is_readable(const struct walk *walk, uintptr_t address, uintptr_t *page) {
    uintptr_t its_page = address / os_page_bytes() + 1; /* never 0 */
    if (its_page == *page) {
        return true;
    }
    bool readable = !walk->asks || os_can_read((const void *)address);
    *page = readable ? its_page : *page;
    return readable;
}

/* Whether there is code at what a frame returns to; the unwinder will look. */
static bool is_code(struct walk *walk, uintptr_t address) {
    uintptr_t found[64]; /* struct dl_find_object, of which nothing is needed */
    if (libc.find_object != NULL && libc.find_object((void *)address, found) == 0) {
        return true;
    }
    return walk->asks ? is_readable(walk, address, &walk->code_page) : libc.find_object == NULL;
}

static uintptr_t unsigned_address(uintptr_t address) {
#if defined(__aarch64__)
    return address & ((UINT64_C(1) << 48) - 1); /* without what authenticates it */
#else
    return address;
#endif
}

/* Whether the unwinder may go on from the frame that it shows; also where nobody can tell. */
static bool may_go_on(struct walk *walk, void *context) {
    if (libc.entry == NULL || libc.sp == NULL || libc.word == NULL || libc.address_as == NULL) {
        return true;
    }
    int is_next = 0; /* the address is of the next instruction to run: a signal came before it */
    uintptr_t at = libc.address_as(context, &is_next) - (is_next == 0);
    struct trace_bases bases;
    const void *entry = libc.entry((void *)at, &bases);
    if (entry == NULL) {
        return true; /* it will not */
    }
    struct trace_frame frame = {at, trace_stack_pointer(libc.sp(context), is_next != 0), libc.word, context};
    uintptr_t slot = trace_return_slot(&frame, entry, (uintptr_t)bases.function);
    if (slot == 0) {
        return true;
    }
    if (!is_readable(walk, slot, &walk->stack_page)) {
        return false;
    }
    uintptr_t address = unsigned_address(*(const uintptr_t *)slot);
    return address == 0 || is_code(walk, address);
}

static void note(struct walk *walk, uintptr_t address) {
    struct trace *trace = walk->trace;
    if (walk->from == 0) {
        trace->frames[trace->count++] = address - 1; /* within the call */
    } else if (walk->from == address) {
        trace->frames[trace->count++] = address; /* no call: the instruction itself */
        walk->from = 0;
    }
}

static int visit(void *context, void *argument) {
    struct walk *walk = argument;
    uintptr_t address = libc.address(context);
    if (walk->trace->count == TRACE_MOST || address == 0) {
        return END_OF_STACK;
    }
    note(walk, address);
    return may_go_on(walk, context) ? 0 : END_OF_STACK;
}

/* As pthread_self has it: what libc keeps of a thread lies behind its stack. */
static uintptr_t thread_itself(void) {
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

/* Where the calling thread's stack ends; the first thread's is where libc says. */
static uintptr_t stack_end(uintptr_t frame) {
    enum { STACK_MOST = 1 << 30 };
    uintptr_t self = thread_itself();
    return self > frame && self - frame < STACK_MOST ? self : libc.stack_end;
}

/* Whether a frame pointer points to the caller's, with the return address behind it. */
#if defined(__x86_64__) || defined(__aarch64__)
enum { FRAMES_ARE_PAIRS = true };
#else
enum { FRAMES_ARE_PAIRS = false };
#endif

/* Frames linked through the frame pointer, where nothing unwinds: as long as they rise within the stack. The register may hold anything: code
 * without frame pointers, a coroutine on a stack that nobody knows. So what cannot be read ends the walk. Only memory that another thread unmaps at
 * that instant, and that such a number leads to, is left to chance. */
static void follow_frame_pointers(struct walk *walk) {
    struct trace *trace = walk->trace;
    uintptr_t frame = (uintptr_t)__builtin_frame_address(0), end = stack_end(frame);
    while (FRAMES_ARE_PAIRS && trace->count < TRACE_MOST && frame % sizeof(void *) == 0 && frame < end &&
           end - frame >= 2 * sizeof(void *) && is_readable(walk, frame, &walk->stack_page) &&
           is_readable(walk, frame + sizeof(void *), &walk->stack_page)) {
        const uintptr_t *pair = (const uintptr_t *)frame;
        if (pair[1] == 0) {
            break;
        }
        note(walk, pair[1]);
        if (pair[0] <= frame || !walk->asks) {
            break;
        }
        frame = pair[0];
    }
}

void trace_follow_pointers(void) { atomic_store_explicit(&registered, true, memory_order_relaxed); }

static __attribute__((noinline)) void walk_from(struct trace *trace, uintptr_t from, bool asks) {
    struct walk walk = {.trace = trace, .from = from, .asks = asks};
    trace->thread = thread_itself();
    trace->count = 0;
    if (libc.backtrace == NULL || libc.address == NULL || walking ||
        atomic_load_explicit(&registered, memory_order_relaxed)) {
        follow_frame_pointers(&walk);
        return;
    }
    walking = true;
    (void)libc.backtrace(visit, &walk);
    walking = false;
}

__attribute__((noinline)) void trace_take(struct trace *trace, bool asks) { walk_from(trace, 0, asks); }

void trace_take_from(struct trace *trace, uintptr_t at) {
    bool may_unwind = at == 0 || os_can_read((const void *)at);
    trace->count = 0;
    trace->thread = thread_itself();
    if (may_unwind) {
        walk_from(trace, at, true);
    }
    if (at != 0 && trace->count == 0) { /* nothing unwound as far as that */
        trace->frames[trace->count++] = at;
    }
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
