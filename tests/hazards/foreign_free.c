/* A pointer of another allocator, or of none, reaches free: the program is stopped with a message, or goes on with a heap that
 * is sound; it does not end in a crash that says nothing, nor hand out memory that is not its own. */
#include "hazard.h"

enum { ROUNDS = 2000 };

static char not_from_the_heap[1 << 16];
static char *foreign;

static void free_it_and_go_on(void) {
    for (size_t i = 0; i < 100; i++) {
        free(malloc(i * 100));
    }
    free(unseen(foreign));
    TABLE(block, ROUNDS);
    char *most = foreign + 8192;
    for (size_t i = 0; i < ROUNDS; i++) {
        size_t size = 1 + i % 4000;
        block[i] = malloc(size);
        EXPECT(block[i] != NULL, "malloc failed afterwards");
        EXPECT((char *)block[i] + size <= foreign || (char *)block[i] >= most, "the foreign memory is handed out");
        pattern_fill(block[i], 0, size, i);
    }
    for (size_t i = 0; i < ROUNDS; i++) {
        EXPECT(pattern_mismatch(block[i], 1 + i % 4000, i) == SIZE_MAX, "a block has changed");
        free(block[i]);
    }
}

static const char *try(char *pointer, char said[256]) {
    foreign = pointer;
    int ends[2];
    EXPECT(pipe(ends) == 0, "no pipe");
    pid_t process = fork();
    EXPECT(process >= 0, "fork failed");
    if (process == 0) {
        dup2(ends[1], STDERR_FILENO);
        alarm(10);
        free_it_and_go_on();
        _exit(0);
    }
    close(ends[1]);
    size_t length = 0;
    ssize_t piece;
    while (length < 255 && (piece = read(ends[0], said + length, 255 - length)) > 0) {
        length += (size_t)piece;
    }
    said[length] = '\0';
    close(ends[0]);
    int status = 0;
    waitpid(process, &status, 0);
    if (status == 0) {
        return "goes on";
    }
    EXPECT(!WIFEXITED(status), "%s", said);
    return length > 8 ? "stopped with a message" : strsignal(WTERMSIG(status));
}

int main(void) {
    require_serving();
    char *mapping = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(mapping != MAP_FAILED, "no mapping");
    struct {
        const char *name;
        char *pointer;
    } const cases[] = {{"in a static array", not_from_the_heap + 4096}, {"in a mapping", mapping + 65536 + 16}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char said[256];
        const char *end = try(cases[i].pointer, said);
        EXPECT(strcmp(end, "goes on") == 0 || strcmp(end, "stopped with a message") == 0,
               "a pointer %s: %s, no message", cases[i].name, end);
        printf("%s%s: %s", i > 0 ? "; " : "", cases[i].name, end);
    }
    puts("");
    return 0;
}
