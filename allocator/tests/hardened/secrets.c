/* What a hardened process draws is its own: of several processes no two have the same canary, the same trailers, or the same places for their
 * blocks; and no byte of a canary is one that is often written. Their address spaces are laid out alike, so that nothing but the secret makes a difference. */
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

/* In one of them: tells on standard output what it has. */
static void tell(void) {
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
    EXPECT(write(STDOUT_FILENO, &seen, sizeof seen) == sizeof seen, "standard output takes nothing");
}

static struct seen ask(char *program) {
    struct seen seen;
    int ends[2], status = 0;
    EXPECT(pipe(ends) == 0, "no pipe");
    pid_t child = fork();
    EXPECT(child >= 0, "no process");
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

int main(int count, char **arguments) {
    static struct seen seen[PROCESSES];
    if (count > 1) {
        tell();
        _exit(0);
    }
    for (int i = 0; i < PROCESSES; i++) {
        seen[i] = ask(arguments[0]);
        for (int j = 0; j < CANARY; j++) {
            EXPECT(seen[i].canary[j] >= 0x80 && seen[i].canary[j] != 0xFF,
                   "byte %d of a canary is 0x%02x, which text or a small number may be", j, seen[i].canary[j]);
        }
        for (int j = 0; j < i; j++) {
            EXPECT(memcmp(seen[i].canary, seen[j].canary, CANARY) != 0, "processes %d and %d have the same canary", j,
                   i);
            EXPECT(memcmp(seen[i].trailer, seen[j].trailer, TRAILER) != 0, "... the same trailer: %d and %d", j, i);
            EXPECT(memcmp(seen[i].places, seen[j].places, sizeof seen->places) != 0,
                   "processes %d and %d have their blocks in the same places", j, i);
        }
    }
    return 0;
}
