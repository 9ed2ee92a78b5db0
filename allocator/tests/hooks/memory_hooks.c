/* Hooks on libc's munmap, madvise and mremap see all memory of the program's blocks that goes back to the kernel or moves, whatever the hooks do.
 *
 *   memory_hooks HOW KIND      HOW: hooks.h; KIND of hook:
 *
 *     seeing       lets all pass
 *     allocating   allocates and frees blocks of every kind
 *     failing      fails every third call
 *     lying        says that madvise has returned pages, and does not call it */
#include <errno.h>
#include <sys/mman.h>

#include "entry.h"
#include "expect.h"
#include "hooks/hooks.h"
#include "hooks/registered.h"
#include "idle/tasks.h"
#include "resident.h"
#include "serving.h"

enum {
    SMALL = 20000,
    SMALLS = 700,
    SPAN = 300000,
    SPANS = 60,
    MIB = 1 << 20,
    ERROR = 4321,
};

static const char *kind;
static char *small[SMALLS], *span[SPANS];
static size_t page;

static bool is_kind(const char *name) { return strcmp(kind, name) == 0; }

/* Of every kind: small ones, a span, one that has a mapping of the shelter's, some that were there before. */
static void allocate_within_hook(void) {
    static _Atomic(void *) before;
    char *blocks[] = {malloc(100), malloc(5000), malloc(SPAN), calloc(1, 700), calloc(3, SPAN)};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        EXPECT(unseen(blocks[i]) != NULL, "no block within a hook");
        EXPECT(i < 3 || (blocks[i][0] == 0 && blocks[i][699] == 0), "a block of calloc is not zero");
        blocks[i][0] = (char)i;
        blocks[i] = realloc(blocks[i], SMALL + i);
        EXPECT(blocks[i] != NULL && blocks[i][0] == (char)i, "realloc within a hook");
    }
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        free(blocks[i]);
    }
    free(atomic_exchange(&before, malloc(2000)));
}

static int decide(enum hook hook, char *at, size_t bytes) {
    static atomic_uint calls;
    unsigned call = atomic_fetch_add(&calls, 1);
    registered_lost(at, bytes);
    if (is_kind("allocating")) {
        allocate_within_hook();
    }
    if (is_kind("failing") && call % 3 == 0) {
        return hook == HOOK_MADVISE ? EAGAIN : ENOMEM;
    }
    return is_kind("lying") && hook == HOOK_MADVISE ? HOOK_LIES : 0;
}

/* -- blocks -------------------------------------------------------------------------------------------------- */

/* Its first whole page. */
static char *page_in(char *block) { return block + (page - (uintptr_t)block % page) % page; }

static char *take(size_t bytes, unsigned char value) {
    char *block = unseen(malloc(bytes));
    EXPECT(block != NULL, "no block of %zu bytes", bytes);
    memset(block, value, bytes);
    return block;
}

static void take_all(char **block, size_t count, size_t bytes, unsigned char value) {
    for (size_t i = 0; i < count; i++) {
        block[i] = take(bytes, (unsigned char)(value + i % 50));
    }
}

static void register_all(char **block, size_t count) {
    for (size_t i = 0; i < count; i++) {
        registered_page(page_in(block[i]));
    }
}

static void give(void *block) {
    errno = ERROR;
    free(block);
    EXPECT(errno == ERROR, "free has set errno to %d", errno);
}

static void give_all(char **block, size_t count) {
    for (size_t i = 0; i < count; i++) {
        give(block[i]);
    }
}

static void take_again(char **block, size_t count, size_t bytes) {
    take_all(block, count, bytes, 101);
    (void)registered_check();
    give_all(block, count);
}

/* Blocks of both kinds are registered, freed and, after what `between` does, taken again. */
static void go_round(void (*between)(void)) {
    take_all(small, SMALLS, SMALL, 1);
    take_all(span, SPANS, SPAN, 1);
    register_all(small, SMALLS);
    register_all(span, SPANS);
    give_all(small, SMALLS);
    give_all(span, SPANS);
    between();
    take_again(small, SMALLS, SMALL);
    take_again(span, SPANS, SPAN);
}

static void trim(void) { (void)freestone_purge(); }

/* Longer than freed memory is kept, and than the keeper sleeps. */
static void idle(void) { tasks_sleep(2500); }

static char *register_some(char *block, size_t bytes) {
    enum { EACH = 16 };
    char *first = page_in(block);
    for (size_t at = 0; at + 2 * page < bytes; at += bytes / EACH) {
        registered_page(first + at / page * page);
    }
    return block;
}

static void resized(size_t from, size_t to) {
    char *block = register_some(take(from, 7), from);
    errno = ERROR;
    block = unseen(realloc(block, to));
    EXPECT(block != NULL, "no block of %zu bytes in place of %zu", to, from);
    EXPECT(errno == ERROR, "realloc has set errno to %d", errno);
    size_t kept = from < to ? from : to;
    EXPECT(block[0] == 7 && block[kept / 2] == 7 && block[kept - 1] == 7, "realloc has lost contents");
    memset(block, 8, to);
    (void)registered_check();
    register_some(block, to);
    give(block);
    block = take(to, 9);
    (void)registered_check();
    give(block);
}

/* Memory that was in use before is cleared by giving it back. */
static void zeroed(size_t bytes) {
    give(register_some(take(bytes, 11), bytes));
    char *block = unseen(calloc(1, bytes));
    EXPECT(block != NULL, "no block of %zu bytes", bytes);
    for (size_t at = 0; at < bytes; at += 512) {
        EXPECT(block[at] == 0, "byte %zu of %zu is not zero", at, bytes);
    }
    memset(block, 12, bytes);
    (void)registered_check();
    give(block);
}

static bool is_hardened(void) {
    const char *options = getenv("FREESTONE_OPTIONS");
    return options != NULL && strstr(options, "harden=1") != NULL;
}

int main(int count, char **arguments) {
    EXPECT(count == 3, "memory_hooks HOW KIND");
    require_serving();
    kind = arguments[2];
    page = (size_t)sysconf(_SC_PAGESIZE);
    size_t before = resident_kib();
    hooks_install(arguments[1], decide);
    go_round(trim);
    go_round(idle);
    EXPECT(atomic_load(&hooks_seen[HOOK_MADVISE]) > 0, "no hook has seen memory that went back");
    resized((size_t)150 * MIB, (size_t)210 * MIB);
    resized((size_t)210 * MIB, (size_t)140 * MIB);
    resized((size_t)40 * MIB, (size_t)70 * MIB);
    resized((size_t)100 * MIB, (size_t)160 * MIB);
    EXPECT(is_hardened() || atomic_load(&hooks_seen[HOOK_MREMAP]) > 0, "no hook has seen a block that moved");
    zeroed((size_t)50 * MIB);
    zeroed((size_t)140 * MIB);
    EXPECT(is_hardened() || atomic_load(&hooks_seen[HOOK_MUNMAP]) > 0, "no hook has seen a mapping that went");
    (void)freestone_purge();
    size_t more = resident_more_kib(resident_kib(), before), most = is_hardened() ? 48 * 1024 : 12 * 1024;
    EXPECT(more < most, "%zu KiB stay of what is freed, whatever the hooks answered", more);
    EXPECT(tasks_keeper() == 0, "the keeper lives, and its returns are seen by nobody");
    return 0;
}
