/* malloc_info writes what glibc's does, element by element, and says there what mallinfo2 says in its fields, with glibc's meanings: `system` leaves
 * out blocks with a mapping of their own, which `mmap` has, and no part is more than the whole. With small, large and mapped blocks, when some are freed, and trimmed.
 *
 *   info_agrees [spans]        spans: no block has a mapping of its own */
#include <stdbool.h>

#include "churning.h"
#include "entry.h"
#include "expect.h"
#include "serving.h"

enum { SMALL = 50000, LARGE = 50, MAPPED = 3, TRIES = 1000 };

static const size_t large_bytes = (size_t)6 << 20, mapped_bytes = (size_t)130 << 20;
static char *small[SMALL], *large[LARGE], *mapped[MAPPED];

/* Of one heap, and of all: the same, but that mappings are in the second alone. */
struct part {
    size_t fast_count, fast_size, rest_count, rest_size, mmap_count, mmap_size, current, most, total, protected;
};

struct document {
    struct part heap, all;
};

/* The elements and attributes that glibc writes, in its order, and nothing else: readers take no other. */
/* Also what mallinfo2 says right before and after, while the stream is open: its own blocks count. */
static struct document document(struct mallinfo2 *before, struct mallinfo2 *after) {
#define TOTALS                                           \
    "<total type=\"fast\" count=\"%zu\" size=\"%zu\"/> " \
    "<total type=\"rest\" count=\"%zu\" size=\"%zu\"/> "
#define SYSTEM                                                                     \
    "<system type=\"current\" size=\"%zu\"/> <system type=\"max\" size=\"%zu\"/> " \
    "<aspace type=\"total\" size=\"%zu\"/> <aspace type=\"mprotect\" size=\"%zu\"/> "
    enum { NUMBERS = 18 };
    static char text[1 << 14];
    FILE *file = fmemopen(text, sizeof text, "w");
    EXPECT(file != NULL && setvbuf(file, NULL, _IONBF, 0) == 0, "no stream");
    *before = mallinfo2();
    EXPECT(malloc_info(0, file) == 0, "malloc_info failed");
    *after = mallinfo2();
    fclose(file);
    struct document said = {0};
    struct part *heap = &said.heap, *all = &said.all;
    int length = 0;
    int numbers =
        sscanf(text,
               "<malloc version=\"1\"> <heap nr=\"0\"> <sizes> </sizes> " TOTALS SYSTEM "</heap> " TOTALS
               "<total type=\"mmap\" count=\"%zu\" size=\"%zu\"/> " SYSTEM "</malloc>%n",
               &heap->fast_count, &heap->fast_size, &heap->rest_count, &heap->rest_size, &heap->current, &heap->most,
               &heap->total, &heap->protected, &all->fast_count, &all->fast_size, &all->rest_count, &all->rest_size,
               &all->mmap_count, &all->mmap_size, &all->current, &all->most, &all->total, &all->protected, &length);
    EXPECT(numbers == NUMBERS && length > 0 && strcmp(text + length, "\n") == 0,
           "%d of %d numbers are where they belong, then comes '%s': %s", numbers, NUMBERS, text + length, text);
    return said;
}

/* What holds at every moment, whatever other threads do. */
static void check_whole(const struct document *said, const struct mallinfo2 *info, const char *when) {
    const struct part *all = &said->all;
    struct part heap = *all;
    heap.mmap_count = heap.mmap_size = 0;
    EXPECT(memcmp(&heap, &said->heap, sizeof heap) == 0, "%s: the only heap has another %zu of %zu bytes", when,
           said->heap.rest_size, said->heap.current);
    EXPECT(all->current >= all->rest_size && all->most >= all->current && all->total >= all->current &&
               all->protected >= all->current,
           "%s: %zu free of %zu, %zu at most, %zu addresses", when, all->rest_size, all->current, all->most,
           all->total);
    EXPECT(all->fast_count == 0 && all->fast_size == 0, "%s: %zu bytes are fast", when, all->fast_size);
    EXPECT(info->arena >= info->uordblks && info->arena - info->uordblks >= info->fordblks &&
               info->fordblks >= info->keepcost,
           "%s: %zu in the arena, %zu in use, %zu free, %zu to give back", when, info->arena, info->uordblks,
           info->fordblks, info->keepcost);
}

/* The keeper may change something in between: asked again until nothing has. */
static struct part check(const char *when) {
    for (int i = 0; i < TRIES; i++) {
        struct mallinfo2 before, info;
        struct document said = document(&before, &info);
        const struct part *all = &said.all;
        check_whole(&said, &info, when);
        if (memcmp(&before, &info, sizeof info) != 0) {
            continue;
        }
        EXPECT(all->current == info.arena, "%s: %zu of the system, %zu in the arena", when, all->current, info.arena);
        EXPECT(all->rest_size == info.fordblks, "%s: %zu are the rest, %zu free", when, all->rest_size, info.fordblks);
        EXPECT((all->rest_count > 0) == (all->rest_size > 0) && all->rest_count <= all->rest_size / 16,
               "%s: %zu bytes are free in %zu pieces", when, all->rest_size, all->rest_count);
        EXPECT(all->mmap_count == info.hblks && all->mmap_size == info.hblkhd,
               "%s: %zu bytes in %zu mappings, or %zu in %zu", when, all->mmap_size, all->mmap_count, info.hblkhd,
               info.hblks);
        return *all;
    }
    EXPECT(false, "%s: the figures never rest", when);
    return (struct part){0};
}

static char *take(size_t bytes) {
    char *block = unseen(malloc(bytes));
    EXPECT(block != NULL, "malloc failed");
    memset(block, 1, bytes < large_bytes ? bytes : large_bytes);
    return block;
}

static void beside_threads(void) {
    churning_begin();
    for (int i = 0; i < TRIES; i++) {
        struct mallinfo2 before, info;
        struct document said = document(&before, &info);
        check_whole(&said, &info, "beside threads");
    }
    churning_end();
}

int main(int count, char **arguments) {
    require_serving();
    EXPECT(count == 1 || (count == 2 && strcmp(arguments[1], "spans") == 0), "usage: info_agrees [spans]");
    struct part first = check("at first");
    for (size_t i = 0; i < SMALL; i++) {
        small[i] = take(1 + i % 1000);
    }
    for (size_t i = 0; i < LARGE; i++) {
        large[i] = take(large_bytes);
    }
    struct part filled = check("filled");
    EXPECT(filled.current >= first.current + LARGE * large_bytes, "%zu of the system, %zu at first", filled.current,
           first.current);
    for (size_t i = 0; i < MAPPED; i++) {
        mapped[i] = take(mapped_bytes);
    }
    struct part beside = check("with mappings");
    bool apart = count == 1;
    EXPECT(beside.mmap_count == filled.mmap_count + (apart ? MAPPED : 0) &&
               beside.mmap_size >= filled.mmap_size + (apart ? MAPPED * mapped_bytes : 0),
           "%zu bytes in %zu mappings", beside.mmap_size, beside.mmap_count);
    EXPECT(!apart || beside.current < filled.current + mapped_bytes,
           "mappings are in the system's too: %zu, %zu before", beside.current, filled.current);
    for (size_t i = 0; i < SMALL; i++) {
        if (i % 50 != 0) {
            free(small[i]);
        }
    }
    for (size_t i = 1; i < LARGE; i++) {
        free(large[i]);
    }
    free(mapped[0]);
    check("mostly freed");
    malloc_trim(0);
    struct part trimmed = check("trimmed");
    bool counted = strstr(getenv("FREESTONE_OPTIONS") != NULL ? getenv("FREESTONE_OPTIONS") : "", "harden") == NULL;
    EXPECT(!counted || (trimmed.rest_count > SMALL / 2 && trimmed.rest_count < 2 * SMALL),
           "%d blocks were freed, %zu pieces are free", SMALL - SMALL / 50, trimmed.rest_count);
    for (size_t i = 0; i < SMALL; i += 50) {
        free(small[i]);
    }
    free(large[0]);
    free(mapped[1]);
    free(mapped[2]);
    malloc_trim(0);
    check("all freed");
    beside_threads();
    return 0;
}
