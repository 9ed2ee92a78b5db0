/* The hardened heap from within: what it says of faults, and that looking at blocks beside whoever resizes them finds nothing that is not so. */
#include "hardened.h"

#include <pthread.h>
#include <stdatomic.h>

#include "hard_inside.h"
#include "os.h"
#include "scenario.h"

static void open_heap(void) {
    option_set(OPTION_GUARD_SMALL, 0); /* all blocks lie in slabs */
    EXPECT(arena_open(), "no street");
    hardened_open();
}

static unsigned char *take(size_t size, size_t alignment) {
    unsigned char *block = hardened_take(NULL, 0, size, alignment, MADE_BY_MALLOC);
    EXPECT(block != NULL, "no memory");
    return block;
}

static void give(unsigned char *block) {
    uint32_t tag;
    EXPECT(tag_of(block, &tag), "it is no block");
    if (tag == TAG_HARD_LARGE) {
        hardened_give_large(block, MADE_BY_MALLOC, SIZE_UNTOLD);
    } else if (hardened_give_ahead(NULL, block, MADE_BY_MALLOC, SIZE_UNTOLD, true) == HARD_CLEARED) {
        hardened_give_cleared(NULL, 0, block);
    }
}

/* -- faults -------------------------------------------------------------------------------------------------- */

/* What is said of an access; "" for nothing. */
static const char *said_of(const unsigned char *address) {
    static char said[512];
    int ends[2], error = dup(STDERR_FILENO);
    EXPECT(pipe(ends) == 0 && error >= 0 && dup2(ends[1], STDERR_FILENO) >= 0, "no pipe");
    bool is_own = hardened_explain(address);
    (void)dup2(error, STDERR_FILENO);
    close(error);
    close(ends[1]);
    ssize_t length = read(ends[0], said, sizeof said - 1);
    close(ends[0]);
    EXPECT(length >= 0 && is_own == (length > 0), "it says %d, and %zd bytes", is_own, length);
    said[length] = '\0';
    return said;
}

__attribute__((format(printf, 2, 3))) static void expect_said(const unsigned char *address, const char *format, ...) {
    char wanted[512];
    int lead = snprintf(wanted, sizeof wanted, "freestone: ");
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(wanted + lead, sizeof wanted - (size_t)lead, format, arguments);
    va_end(arguments);
    wanted[lead + length] = '\n';
    wanted[lead + length + 1] = '\0';
    const char *said = said_of(address);
    EXPECT(strcmp(said, wanted) == 0, "it says: %sinstead of: %s", said, wanted);
}

static void faults_are_explained(void) {
    open_heap();
    size_t page = os_page_bytes();
    unsigned char *large = take(300000, 1);
    unsigned char *end = large + 300000;
    expect_said(end, "overflow: pointer %p, 1 byte behind the end of a block of 300000 bytes at %p", (void *)end,
                (void *)large);
    expect_said(end + 99, "overflow: pointer %p, 100 bytes behind the end of a block of 300000 bytes at %p",
                (void *)(end + 99), (void *)large);
    unsigned char *before = large - page;
    expect_said(before, "underflow: pointer %p, %zu bytes before a block of 300000 bytes at %p", (void *)before, page,
                (void *)large);
    EXPECT(*said_of(large) == '\0' && *said_of(end - 1) == '\0', "a block in use is explained: %s", said_of(large));
    give(large);
    expect_said(large + 5, "use after free: pointer %p, byte 5 of a block of 300000 bytes at %p", (void *)(large + 5),
                (void *)large);

    unsigned char *aligned = take(1000, 1 << 20);
    expect_said(aligned - 1, "underflow: pointer %p, 1 byte before a block of 1000 bytes at %p", (void *)(aligned - 1),
                (void *)aligned);

    unsigned char *nothing = take(0, 1);
    expect_said(nothing, "overflow: pointer %p, 1 byte behind the end of a block of 0 bytes at %p", (void *)nothing,
                (void *)nothing);
    give(nothing);
    expect_said(nothing, "use after free: pointer %p, 1 byte behind the end of a block of 0 bytes at %p",
                (void *)nothing, (void *)nothing);

    unsigned char *small = take(100, 1);
    uint32_t slab = hard_slab_of(small);
    unsigned char *last = hard_slab_block(slab, arena_span(slab)->blocks - 1);
    unsigned char *guard = (unsigned char *)arena_address(slab) + hard_slab_guard(arena_span(slab)->size_class);
    expect_said(guard, "overflow: pointer %p, %zu bytes behind the last place of a slab, size class 112 bytes at %p",
                (void *)guard, (size_t)(guard - last) - 112 + 1, (void *)last);
    EXPECT(*said_of(small) == '\0' && *said_of(guard - 1) == '\0', "a slab's places are explained");
    EXPECT(*said_of((const unsigned char *)&slab) == '\0', "the stack is explained");
    EXPECT(*said_of(NULL) == '\0', "no address is explained");
}

/* Nobody may touch what the options leave touchable. */
static void without_guards_nothing_is_explained(void) {
    open_heap();
    option_set(OPTION_GUARD_PAGES, 0);
    unsigned char *large = take(300000, 1);
    EXPECT(*said_of(large + 300000 + os_page_bytes()) == '\0', "it is explained: %s",
           said_of(large + 300000 + os_page_bytes()));
    give(large);
    EXPECT(*said_of(large) == '\0', "a freed one is explained: %s", said_of(large));
}

/* -- looking ------------------------------------------------------------------------------------------------- */

enum { SHORT = 90, LONG = 104, LOOKS_AT_IT = 8000000 };

static _Atomic bool ended;

static void *resize(void *block) {
    while (!atomic_load_explicit(&ended, memory_order_relaxed)) {
        EXPECT(hardened_resize(block, LONG), "it does not grow");
        memset(block, 'x', LONG);
        EXPECT(hardened_resize(block, SHORT), "it does not shrink");
    }
    return NULL;
}

/* The trailer of the same size comes back again and again, over what was written while the block was larger. */
static void looks_beside_resizing(void) {
    if (SCENARIO_SANITIZED) { /* who looks, looks at what others write: a race by the letter */
        return;
    }
    open_heap();
    unsigned char *block = take(SHORT, 1);
    while ((uintptr_t)block % 64 !=
           32) { /* canary and trailer on different cache lines, which come one after the other */
        block = take(SHORT, 1);
    }
    uint32_t slab = hard_slab_of(block), slot = hard_slab_slot(slab, block);
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, resize, block) == 0, "no thread");
    for (unsigned i = 0; i < LOOKS_AT_IT; i++) {
        (void)hard_check_used(slab, slot);
        for (unsigned turn = 0; turn < i % 256; turn++) {
            __asm__ volatile("" ::: "memory");
        }
    }
    atomic_store(&ended, true);
    pthread_join(thread, NULL);
    give(block);
}

static const struct scenario scenarios[] = {
    {"faults_are_explained", faults_are_explained},
    {"without_guards_nothing_is_explained", without_guards_nothing_is_explained},
    {"looks_beside_resizing", looks_beside_resizing},
};

SCENARIO_MAIN(scenarios)
