/* A program run under ptrace, and each system call that one library makes in it shown to a decision of the test.
 *
 * Unlike the gate it reaches threads that block every signal, is nothing that the library can see (a filter is: the
 * library makes fewer calls under one), and leaves libc's own calls alone. */
#ifndef FREESTONE_TESTS_TRACED_H
#define FREESTONE_TESTS_TRACED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

struct traced_call {
    long number;
    uint64_t arguments[6];
    pid_t thread;
    bool keeper; /* of a thread that the library has started itself */
};

struct trace {
    /* 0 lets the call through; an errno value makes it fail with that, unmade. */
    int (*decide)(struct trace *trace, const struct traced_call *call);
    /* What the program said by traced_say. */
    void (*hear)(struct trace *trace, long word);
    const char *library; /* file name; calls from within its mappings are its calls */
};

/* Runs `command` to its end and returns its wait status. Skips the program where ptrace is not allowed. */
int traced_run(struct trace *trace, char **command);

/* Reads a string of the calling thread's process; false when it is not there. */
bool traced_text(const struct traced_call *call, uint64_t address, char *text, size_t size);

enum { TRACED_SAY = 0x4653 }; /* no system call has this number */

/* For the program: says `word` to whoever traces it. False when nobody does. */
static inline bool traced_say(long word) { return syscall(TRACED_SAY, word) == 0; }

#endif
