#include "message.h"

#include <stdatomic.h>

#include "gate.h"
#include "lock.h"
#include "options.h"
#include "os.h"
#include "text.h"

/* The line so far as a text that goes on. */
static struct text text_of(struct message *message) {
    return (struct text){message->text, sizeof message->text, message->length};
}

static void keep(struct message *message, const struct text *text) {
    message->length = bits_min(text->length, sizeof message->text - 1);
}

void message_text(struct message *message, const char *more) {
    struct text text = text_of(message);
    text_add(&text, more);
    keep(message, &text);
}

void message_number(struct message *message, uint64_t value) {
    struct text text = text_of(message);
    text_decimal(&text, value);
    keep(message, &text);
}

void message_pointer(struct message *message, const void *pointer) {
    struct text text = text_of(message);
    text_add(&text, "0x");
    text_hexadecimal(&text, (uintptr_t)pointer);
    keep(message, &text);
}

void message_print(const struct message *message) {
    struct message line = {0};
    message_text(&line, "freestone: ");
    for (size_t i = 0; i < message->length && line.length < sizeof line.text - 1; i++) {
        line.text[line.length++] = message->text[i];
    }
    line.text[line.length++] = '\n'; /* one write, so that lines of several threads do not mix */
    os_write_error(line.text, line.length);
}

/* What this thread was changing stays as it is. Until the process has ended, which a handler of SIGABRT may put off for long, this thread and all
 * others live on the shelter; but for those that are inside, which wait for its locks. */
static void begin_report(void) {
    lock_report();
    gate_shut();
}

OUT_OF_LINE _Noreturn void message_stop(void) {
    begin_report();
    os_abort();
}

static _Noreturn void stop(const struct message *message) {
    begin_report();
    message_print(message);
    os_abort();
}

/* Behind a line by default alone: a mode tells more by itself. Once: the process may go on after its handler of SIGABRT, to the next. */
static void advise(struct message *message, const char *advice) {
    static _Atomic bool done; /* relaxed: protects nothing, only who sets it first advises */
    if (modes() == 0 && !atomic_exchange_explicit(&done, true, memory_order_relaxed)) {
        message_text(message, advice);
    }
}

static struct message misuse(const char *name, const void *pointer) {
    struct message message = {0};
    message_text(&message, name);
    message_text(&message, ": pointer ");
    message_pointer(&message, pointer);
    return message;
}

static void block(struct message *message, const char *what, size_t bytes) {
    message_text(message, ", ");
    message_text(message, what);
    message_text(message, " ");
    message_number(message, bytes);
    message_text(message, " bytes");
}

OUT_OF_LINE _Noreturn void message_double_free(const void *pointer, const char *what, size_t bytes) {
    struct message message = misuse("double free", pointer);
    block(&message, what, bytes);
    advise(&message, MESSAGE_ADVICE);
    stop(&message);
}

OUT_OF_LINE _Noreturn void message_interior_pointer(const void *pointer, const char *what, size_t bytes) {
    struct message message = misuse("interior pointer", pointer);
    block(&message, what, bytes);
    advise(&message, MESSAGE_ADVICE);
    stop(&message);
}

OUT_OF_LINE _Noreturn void message_foreign_pointer(const void *pointer) {
    struct message message = misuse("foreign pointer", pointer);
    message_text(&message, " was not allocated here");
    advise(&message, MESSAGE_FOREIGN_ADVICE);
    stop(&message);
}

static struct message wrong_size(const void *pointer, size_t given, const char *what, size_t bytes) {
    struct message message = misuse("wrong size", pointer);
    message_text(&message, ", ");
    message_number(&message, given);
    message_text(&message, " bytes given");
    block(&message, what, bytes);
    return message;
}

OUT_OF_LINE _Noreturn void message_wrong_size(const void *pointer, size_t given, const char *what, size_t bytes) {
    struct message message = wrong_size(pointer, given, what, bytes);
    advise(&message, MESSAGE_ADVICE);
    stop(&message);
}

OUT_OF_LINE _Noreturn void message_other_size(const void *pointer, size_t given, size_t bytes) {
    struct message message = wrong_size(pointer, given, "size", bytes);
    message_text(&message, MESSAGE_KINDS);
    stop(&message);
}

/* ", 5 bytes behind it" */
static void place(struct message *message, size_t at, const char *where) {
    message_text(message, ", ");
    message_number(message, at);
    message_text(message, at == 1 ? " byte" : " bytes");
    message_text(message, where);
}

OUT_OF_LINE _Noreturn void message_overflow(const void *pointer, const char *what, size_t bytes, size_t at) {
    struct message message = misuse("overflow", pointer);
    block(&message, what, bytes);
    if (at > 0) {
        place(&message, at, " behind its end overwritten");
    } else {
        message_text(&message, ", its end overwritten");
    }
    stop(&message);
}

OUT_OF_LINE _Noreturn void message_underflow(const void *pointer, const char *what, size_t bytes, size_t at) {
    struct message message = misuse("underflow", pointer);
    block(&message, what, bytes);
    if (at > 0) {
        place(&message, at, " before its start overwritten");
    } else {
        message_text(&message, ", what lies before it overwritten");
    }
    stop(&message);
}

OUT_OF_LINE _Noreturn void message_written_after_free(const void *pointer, size_t bytes, size_t at) {
    struct message message = misuse("write after free", pointer);
    block(&message, "size class", bytes);
    message_text(&message, ", byte ");
    message_number(&message, at);
    message_text(&message, " written since");
    stop(&message);
}

OUT_OF_LINE _Noreturn void message_mismatch(const void *pointer, const char *made, const char *freed) {
    struct message message = misuse("mismatch", pointer);
    message_text(&message, ", made by ");
    message_text(&message, made);
    message_text(&message, ", freed by ");
    message_text(&message, freed);
    message_text(&message, MESSAGE_KINDS);
    stop(&message);
}

/* Called by code that is compiled with -fstack-protector. Hidden: the program has libc's. */
OUT_OF_LINE _Noreturn INTERNAL void __stack_chk_fail(void);
OUT_OF_LINE _Noreturn void __stack_chk_fail(void) {
    struct message message = {0};
    message_text(&message, "overflow of the stack in a function of libfreestone");
    stop(&message);
}
