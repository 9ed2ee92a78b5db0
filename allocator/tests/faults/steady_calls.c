/* steady_calls LIBRARY PROGRAM: how many system calls the library makes while the program, faults/steady.c, works at a
 * steady pace with one thread and no keeper. Nobody waits for anybody, and what is needed is there. */
#include <libgen.h>

#include "expect.h"
#include "traced.h"

enum { PER_THOUSAND = 1 };

static size_t waits, others;
static long said;

static int count_call(struct trace *trace, const struct traced_call *call) {
    (void)trace;
    if (said == 1) {
        *(call->number == SYS_futex ? &waits : &others) += 1;
    }
    return 0;
}

static void hear(struct trace *trace, long word) {
    (void)trace;
    said = word;
}

int main(int count, char **arguments) {
    EXPECT(count == 3, "usage: steady_calls LIBRARY PROGRAM");
    struct trace trace = {count_call, hear, basename(arguments[1])};
    int status = traced_run(&trace, arguments + 2);
    EXPECT(status == 0, "wait status %#x", (unsigned)status);
    EXPECT(said > 1, "the program has not said how much it has done");
    printf("%zu calls of futex, %zu others in %ld operations\n", waits, others, said);
    EXPECT(waits == 0, "%zu calls of futex in a program of one thread", waits);
    EXPECT(others <= (size_t)said / 1000 * PER_THOUSAND, "%zu calls in %ld operations", others, said);
    return 0;
}
