#include "trace.h"

#include <stdatomic.h>
#include <ucontext.h>

#include "elf_objects.h"
#include "message.h"
#include "os.h"
#include "unwind_step.h"

static const char *program;
static _Atomic bool opened; /* release when set: a thread that sees it set finds `program` */

bool trace_is_open(void) { return atomic_load_explicit(&opened, memory_order_acquire); }

void trace_open(void) {
    program = trace_find();
    atomic_store_explicit(&opened, true, memory_order_release);
}

/* A walk under way. */
struct walk {
    bool asks; /* the kernel may be asked */
    uintptr_t stack_page, code_page; /* that are known to be readable */
};

static bool is_readable(const struct walk *walk, uintptr_t address, uintptr_t *page) {
    uintptr_t its_page = address / os_page_bytes() + 1; /* never 0 */
    if (its_page == *page) {
        return true;
    }
    bool readable = walk->asks && os_can_read((const void *)address);
    *page = readable ? its_page : *page;
    return readable;
}

static bool read_word(void *context, uintptr_t address, uintptr_t *word) {
    struct walk *walk = context;
    if (address % sizeof *word != 0 || !is_readable(walk, address, &walk->stack_page)) {
        return false;
    }
    *word = *(const uintptr_t *)address;
    return true;
}

/* Notes the frame and its callers. Code that lies in no object was made by the program at run time, and has no table: the walk follows the frame
 * pointer there. That register may hold any number, and the last frame of a coroutine may return to anything, so a word is read only if the kernel
 * can read its page. Another thread may still unmap such a page at that instant. If `asks` is false, the walk ends at such code, and at the end of
 * the page that the stack is on: a program may have changed stacks without a word of it in its tables. */
static void walk_from(struct trace *trace, struct unwind_frame *frame, bool asks) {
    struct walk walk = {.asks = asks, .stack_page = (uintptr_t)__builtin_frame_address(0) / os_page_bytes() + 1};
    trace->count = 0;
    while (frame->pc != 0 && trace->count < TRACE_MOST) {
        uintptr_t address = unwind_address(frame);
        const struct elf_object object = elf_object_of((const void *)address);
        bool is_first = trace->count == 0;
        if (!is_first && object.file == NULL && (!asks || !is_readable(&walk, address, &walk.code_page))) {
            break;
        }
        trace->frames[trace->count++] = address;
        if (object.frames != NULL && unwind_step(frame, object.frames, read_word, &walk)) {
            continue;
        }
        if (!asks || !unwind_step_by_pointer(frame, read_word, &walk)) {
            break;
        }
    }
}

__attribute__((noinline)) void trace_take(struct trace *trace, bool asks) {
    struct unwind_frame frame;
    unwind_here(&frame);
    trace->thread = os_thread_itself();
    walk_from(trace, &frame, asks);
    __asm__ volatile("" : : "r"(&frame) : "memory"); /* no jump: the frame must not end before the walk */
}

static bool frame_of_fault(struct unwind_frame *frame, const ucontext_t *context) {
    *frame = (struct unwind_frame){.interrupted = true};
#if defined(__x86_64__)
    static const unsigned char place_of[UNWIND_RETURN] = {
        REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP,
        REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15,
    };
    frame->pc = (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
    for (unsigned number = 0; number < UNWIND_RETURN; number++) {
        frame->words[number] = (uintptr_t)context->uc_mcontext.gregs[place_of[number]];
        frame->known[number] = true;
    }
    return true;
#elif defined(__aarch64__)
    frame->pc = (uintptr_t)context->uc_mcontext.pc;
    for (unsigned number = 0; number < UNWIND_REGISTERS; number++) {
        frame->words[number] = number == UNWIND_SP ? context->uc_mcontext.sp : context->uc_mcontext.regs[number];
        frame->known[number] = true;
    }
    return true;
#else
    (void)context;
    return false;
#endif
}

void trace_take_fault(struct trace *trace, const void *context) {
    struct unwind_frame frame;
    if (!frame_of_fault(&frame, context)) {
        trace_take(trace, true); /* through the handler's frames */
        return;
    }
    trace->thread = os_thread_itself();
    walk_from(trace, &frame, true);
}

static void print_frame(unsigned number, uintptr_t address) {
    struct message line = {0};
    struct elf_object object = elf_object_of((const void *)address);
    message_text(&line, "  #");
    message_number(&line, number);
    message_text(&line, " ");
    message_pointer(&line, (const void *)address);
    if (object.file != NULL) {
        uintptr_t start;
        const char *function = elf_symbol_at(object, address, &start);
        if (function != NULL) {
            message_text(&line, " in ");
            message_text(&line, function);
            message_text(&line, "+");
            message_number(&line, address - start);
        }
        message_text(&line, " (");
        message_text(&line, object.file[0] != '\0' || program == NULL ? object.file : program);
        message_text(&line, "+");
        message_pointer(&line, (const void *)(address - object.base));
        message_text(&line, ")");
    }
    message_print(&line);
}

/* Before any name is looked up: names lie in memory that the program may have overwritten. */
static void print_addresses(const struct trace *trace) {
    struct message line = {0};
    message_text(&line, "  at");
    for (unsigned i = 0; i < trace->count; i++) {
        message_text(&line, " ");
        message_pointer(&line, (const void *)trace->frames[i]);
    }
    message_print(&line);
}

/* The library's own frames lie together at the beginning. */
static bool is_own(uintptr_t address) {
    struct elf_object own = elf_object_of((const void *)(uintptr_t)trace_take);
    struct elf_object object = elf_object_of((const void *)address);
    return own.file != NULL && object.file != NULL && own.base == object.base;
}

void trace_print(const struct trace *trace) {
    unsigned number = 0;
    bool outside = false;
    print_addresses(trace);
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
