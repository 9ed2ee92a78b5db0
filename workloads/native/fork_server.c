/* A parent with a heap forks children one after the other; each allocates, writes, checks what it inherited, and ends.
 * Between the forks the parent replaces some blocks of its own. */
#include "block.h"
#include "moment.h"
#include "random.h"
#include "report.h"
#include "store.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t children = 100, heap = 64 << 20, blocks = 2000, replaced = 500, least = 16, most = 1024;

static const struct parameter parameters[] = {
    {"children", COUNT, &children, 1, 1e9, NULL, "one after the other"},
    {"heap", BYTES, &heap, 0, UINT64_C(1) << 40, NULL, "the parent has asked for"},
    {"blocks", COUNT, &blocks, 1, 1u << 28, NULL, "each child allocates; it frees every second one"},
    {"replaced", COUNT, &replaced, 0, 1u << 28, NULL, "blocks of the parent before each fork"},
    {"least", BYTES, &least, BLOCK_LEAST, 1 << 24, NULL, "size of a block"},
    {"most", BYTES, &most, BLOCK_LEAST, 1 << 24, NULL, "size of a block"},
};
static const struct program program = {"fork-server", "A process with a heap forks children that allocate.", parameters,
                                       sizeof parameters / sizeof *parameters};

enum { DRAWS = 1 << 14 };

struct table {
    void **blocks;
    uint64_t count;
};

static uint32_t *sizes;

static uint64_t give_block(struct table table, uint64_t at) {
    return block_give(&measured, table.blocks[at], sizes[at % DRAWS], at);
}

static void take_block(struct table table, uint64_t at) {
    table.blocks[at] = block_take(&measured, sizes[at % DRAWS], at);
}

/* In the child: its own blocks, and a look at a few of the parent's. */
static uint64_t live_as_child(struct table parents, struct table own, uint64_t number) {
    uint64_t checksum = 0;
    for (uint64_t at = 0; at < own.count; at++)
        take_block(own, at);
    for (uint64_t at = 0; at < own.count; at += 2)
        checksum = checksum_add(checksum, give_block(own, at));
    for (uint64_t i = 0; parents.count > 0 && i < 100; i++) {
        const uint64_t at = (number * 7919 + i * 104729) % parents.count;
        checksum = checksum_add(checksum, block_check(&measured, parents.blocks[at], sizes[at % DRAWS], at));
    }
    return checksum;
}

/* Fork, live, wait. A child that found something lost has said so itself: the parent only passes the status on. */
static void one_child(struct table parents, struct table own, uint64_t number, volatile uint64_t *told) {
    const pid_t child = fork();
    if (child < 0) {
        fprintf(stderr, "%s: child %llu could not be forked: %s; raise the limit of processes\n", program_name(),
                (unsigned long long)number, strerror(errno));
        exit(1);
    }
    if (child == 0) {
        *told = live_as_child(parents, own, number);
        _exit(0);
    }
    int status;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFSIGNALED(status))
        fprintf(stderr, "%s: child %llu was ended by signal %d\n", program_name(), (unsigned long long)number,
                WTERMSIG(status));
    if (status != 0)
        exit(1);
}

int main(int argc, char **argv) {
    program_read(&program, argc, argv);
    if (least > most)
        program_refuse("--least is above --most");
    sizes = store_take(DRAWS * sizeof *sizes);
    struct random random;
    random_seed(&random, 12);
    uint64_t drawn = 0;
    for (size_t i = 0; i < DRAWS; i++) {
        sizes[i] = random_between(&random, least, most);
        drawn += sizes[i];
    }
    struct table parents = {.count = heap * DRAWS / drawn}, own = {.count = blocks};
    parents.blocks = store_take(parents.count * sizeof *parents.blocks);
    own.blocks = store_take(own.count * sizeof *own.blocks);
    uint64_t *told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (told == MAP_FAILED)
        out_of_memory(sizeof *told);
    const uint64_t at_a_time = replaced < parents.count ? replaced : parents.count;
    for (uint64_t at = 0; at < parents.count; at++)
        take_block(parents, at);

    struct measurement result = {children * (2 * at_a_time + blocks + (blocks + 1) / 2), 0, 0};
    uint64_t next = 0;
    const uint64_t from = moment_ns();
    for (uint64_t child = 0; child < children; child++) {
        for (uint64_t i = 0; i < at_a_time; i++, next = (next + 17) % parents.count) {
            result.checksum = checksum_add(result.checksum, give_block(parents, next));
            take_block(parents, next);
        }
        one_child(parents, own, child, told);
        result.checksum = checksum_add(result.checksum, *told);
    }
    result.seconds = seconds_between(from, moment_ns());
    for (uint64_t at = 0; at < parents.count; at++)
        result.checksum = checksum_add(result.checksum, give_block(parents, at));

    report_open(&program);
    report_measurement(result);
    report_no_floor();
    report_real("us_per_child", result.seconds * 1e6 / (double)children);
    report_close();
    return 0;
}
