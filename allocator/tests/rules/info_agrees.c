/* malloc_info says in its elements what mallinfo2 says in its fields, with glibc's meanings: `system` leaves out blocks with a mapping of their
 * own, which `mmap` has, and no part is more than the whole. With small, large and mapped blocks, when some are freed, and trimmed.
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

struct document {
    size_t rest, mmap_count, mmap_size, system, aspace, in_use, retained, in_memory, heaps;
};

static size_t number_behind(const char *text, const char *words) {
    size_t number = 0;
    const char *at = strstr(text, words);
    EXPECT(at != NULL && sscanf(at + strlen(words), "%zu\"", &number) == 1, "no %s in %s", words, text);
    return number;
}

static struct document document(void) {
    static char text[1 << 14];
    FILE *file = fmemopen(text, sizeof text, "w");
    EXPECT(file != NULL && setvbuf(file, NULL, _IONBF, 0) == 0, "no stream");
    EXPECT(malloc_info(0, file) == 0, "malloc_info failed");
    fclose(file);
    return (struct document){
        .rest = number_behind(text, "<total type=\"rest\" size=\""),
        .mmap_count = number_behind(text, "<total type=\"mmap\" count=\""),
        .mmap_size = number_behind(strstr(text, "<total type=\"mmap\""), " size=\""),
        .system = number_behind(text, "<system type=\"current\" size=\""),
        .aspace = number_behind(text, "<aspace type=\"total\" size=\""),
        .in_use = number_behind(text, "<in_use size=\""),
        .retained = number_behind(text, "<retained size=\""),
        .in_memory = number_behind(text, "<in_memory size=\""),
        .heaps = number_behind(text, "<heaps count=\""),
    };
}

/* What holds at every moment, whatever other threads do. */
static void check_whole(const struct document *said, const struct mallinfo2 *info, const char *when) {
    EXPECT(said->system >= said->rest && said->system - said->rest >= said->in_use - said->mmap_size &&
               said->in_use >= said->mmap_size,
           "%s: %zu of the system, %zu free of them, %zu in use, %zu of them mapped", when, said->system, said->rest,
           said->in_use, said->mmap_size);
    EXPECT(said->rest >= said->retained, "%s: %zu are free and %zu retained", when, said->rest, said->retained);
    EXPECT(info->arena >= info->uordblks && info->arena - info->uordblks >= info->fordblks &&
               info->fordblks >= info->keepcost,
           "%s: %zu in the arena, %zu in use, %zu free, %zu to give back", when, info->arena, info->uordblks,
           info->fordblks, info->keepcost);
}

/* The keeper, and the stream itself, may change something in between: asked again until nothing has. */
static struct document check(const char *when) {
    for (int i = 0; i < TRIES; i++) {
        struct mallinfo2 before = mallinfo2();
        struct document said = document();
        struct mallinfo2 info = mallinfo2();
        check_whole(&said, &info, when);
        if (memcmp(&before, &info, sizeof info) != 0) {
            continue;
        }
        EXPECT(said.system == info.arena, "%s: %zu of the system, %zu in the arena", when, said.system, info.arena);
        EXPECT(said.rest == info.fordblks, "%s: %zu are the rest, %zu free", when, said.rest, info.fordblks);
        EXPECT(said.mmap_count == info.hblks && said.mmap_size == info.hblkhd,
               "%s: %zu bytes in %zu mappings, or %zu in %zu", when, said.mmap_size, said.mmap_count, info.hblkhd,
               info.hblks);
        EXPECT(said.in_use == info.uordblks + info.hblkhd && said.retained == info.keepcost,
               "%s: %zu in use, %zu retained", when, said.in_use, said.retained);
        EXPECT(said.aspace >= said.system && said.heaps > 0, "%s: %zu of %zu addresses", when, said.system,
               said.aspace);
        EXPECT(said.in_memory > 0, "%s: nothing is in memory", when);
        return said;
    }
    EXPECT(false, "%s: the figures never rest", when);
    return (struct document){0};
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
        struct document said = document();
        struct mallinfo2 info = mallinfo2();
        check_whole(&said, &info, "beside threads");
    }
    churning_end();
}

int main(int count, char **arguments) {
    require_serving();
    EXPECT(count == 1 || (count == 2 && strcmp(arguments[1], "spans") == 0), "usage: info_agrees [spans]");
    struct document first = check("at first");
    for (size_t i = 0; i < SMALL; i++) {
        small[i] = take(1 + i % 1000);
    }
    for (size_t i = 0; i < LARGE; i++) {
        large[i] = take(large_bytes);
    }
    struct document filled = check("filled");
    EXPECT(filled.system >= first.system + LARGE * large_bytes, "%zu of the system, %zu at first", filled.system,
           first.system);
    for (size_t i = 0; i < MAPPED; i++) {
        mapped[i] = take(mapped_bytes);
    }
    struct document beside = check("with mappings");
    bool apart = count == 1;
    EXPECT(beside.mmap_count == filled.mmap_count + (apart ? MAPPED : 0) &&
               beside.mmap_size >= filled.mmap_size + (apart ? MAPPED * mapped_bytes : 0),
           "%zu bytes in %zu mappings", beside.mmap_size, beside.mmap_count);
    EXPECT(!apart || beside.system < filled.system + mapped_bytes, "mappings are in the system's too: %zu, %zu before",
           beside.system, filled.system);
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
    check("trimmed");
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
