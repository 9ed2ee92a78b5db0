/* What a hardened process draws is its own: of several processes, programs by themselves or children of one, no two have the same canary, the same
 * trailers, or the same places for their blocks; and no byte of a canary is one that is often written, but for the second, which ends a string. Their
 * address spaces are laid out alike, so that nothing but the secret makes a difference. Blocks of a parent are sound in its children. */
#include <string.h>
#include <sys/personality.h>
#include <sys/wait.h>

#include "../entry.h"
#include "../expect.h"
#include "../serving.h"

enum {
    PROCESSES = 12,
    SIZE =
        33, /* in a slot of 48 bytes: seven of canary, then the trailer, of whose eight the first is the canary's too */
    CANARY = 7,
    TRAILER = 7,
    BLOCKS = 20,
};

struct seen {
    unsigned char canary[CANARY], trailer[TRAILER];
    ptrdiff_t places[BLOCKS]; /* from the first */
};

/* In one of them: tells what it has. */
static void tell(int output) {
    require_serving();
    struct seen seen;
    unsigned char *first = unseen(malloc(SIZE));
    EXPECT(first != NULL, "no memory");
    for (int i = 0; i < BLOCKS; i++) {
        const unsigned char *block = unseen(malloc(SIZE));
        EXPECT(block != NULL, "no memory");
        seen.places[i] = block - first;
    }
    memcpy(seen.canary, first + SIZE, CANARY);
    memcpy(seen.trailer, first + SIZE + CANARY + 1, TRAILER);
    EXPECT(write(output, &seen, sizeof seen) == sizeof seen, "the pipe takes nothing");
}

/* The program again, or a child without it where that is NULL. */
static struct seen ask(char *program) {
    struct seen seen;
    int ends[2], status = 0;
    EXPECT(pipe(ends) == 0, "no pipe");
    pid_t child = fork();
    EXPECT(child >= 0, "no process");
    if (child == 0 && program == NULL) {
        tell(ends[1]);
        _exit(0);
    }
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        (void)personality(ADDR_NO_RANDOMIZE); /* where it is refused, it is no matter */
        execv(program, (char *[]){program, "tell", NULL});
        _exit(126);
    }
    close(ends[1]);
    EXPECT(read(ends[0], &seen, sizeof seen) == sizeof seen, "it told nothing");
    close(ends[0]);
    EXPECT(waitpid(child, &status, 0) == child && status == 0, "it ended with status 0x%x", (unsigned)status);
    return seen;
}

static void ask_all(char *program) {
    static struct seen seen[PROCESSES];
    for (int i = 0; i < PROCESSES; i++) {
        seen[i] = ask(program);
        for (int j = 0; j < CANARY; j++) {
            unsigned byte = seen[i].canary[j];
            EXPECT(j == 1 ? byte == 0 : byte >= 0x80 && byte != 0xFF, "byte %d of a canary is 0x%02x", j, byte);
        }
        for (int j = 0; j < i; j++) {
            EXPECT(memcmp(seen[i].canary, seen[j].canary, CANARY) != 0, "processes %d and %d have the same canary", j,
                   i);
            EXPECT(memcmp(seen[i].trailer, seen[j].trailer, TRAILER) != 0, "... the same trailer: %d and %d", j, i);
            EXPECT(memcmp(seen[i].places, seen[j].places, sizeof seen->places) != 0,
                   "processes %d and %d have their blocks in the same places", j, i);
        }
    }
}

/* Each process of a chain frees what the first and its own parent have made, and is the parent of the next. */
static void free_along(void *blocks[], int left) {
    free(blocks[0]);
    free(blocks[left]);
    if (left == 1) {
        return;
    }
    blocks[0] = unseen(malloc(SIZE));
    blocks[left - 1] = unseen(malloc(100 * SIZE));
    int status = 0;
    pid_t child = fork();
    EXPECT(child >= 0, "no process");
    if (child == 0) {
        free_along(blocks, left - 1);
        _exit(0);
    }
    EXPECT(waitpid(child, &status, 0) == child && status == 0, "child %d ended with status 0x%x", left,
           (unsigned)status);
}

int main(int count, char **arguments) {
    enum { CHAIN = 20 };
    void *blocks[CHAIN + 1];
    if (count > 1) {
        tell(STDOUT_FILENO);
        _exit(0);
    }
    ask_all(arguments[0]);
    free(unseen(malloc(SIZE))); /* it has slots at hand, which its children must not use alike */
    ask_all(NULL);
    for (int i = 0; i <= CHAIN; i++) {
        blocks[i] = unseen(malloc(SIZE));
    }
    free_along(blocks, CHAIN);
    return 0;
}
