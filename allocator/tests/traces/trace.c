/* Random traces of every operation on the heap, by many threads that hand blocks to each other and come and go,
 * checked byte for byte against a model.
 *
 *   trace THREADS SEED OPERATIONS     OPERATIONS per thread and generation, three generations of threads
 *   trace THREADS SEED soak           as many generations as the time allows
 *
 * The model is what each thread's table says of its blocks: address, sizes, alignment and the number from which the
 * contents derive. It lives in memory the allocator never sees. A block that overlaps another, moves without its
 * contents, shrinks, or changes while nobody holds the pen differs from its stream when it is next looked at. */
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>

#include "conventions.h"
#include "entry.h"
#include "expect.h"
#include "pattern.h"
#include "serving.h"
#include "soak.h"

enum {
    THREADS_MOST = 64,
    TABLE = 1024,             /* blocks a thread may hold */
    EXCHANGE = 256,           /* blocks that belong to whoever fetches them next */
    GENERATIONS = 3,
    THREAD_BYTES = 48 << 20,  /* live bytes at which a thread only frees */
};

struct block {
    unsigned char *address;
    size_t size;   /* asked for */
    size_t usable; /* all of it is written and checked */
    size_t alignment;
    uint64_t id;
    enum { UNSIZED, SIZED, SIZED_ALIGNED } kind; /* how C23 allows to free it, besides by free */
};

struct table {
    struct block blocks[TABLE];
    size_t live_bytes;
    uint64_t random;
    uint64_t next_id;
    size_t operations;
};

struct stall {
    pthread_mutex_t lock;
    struct block block;
};

static struct table *tables;
static struct stall *stalls;

static void inspect(const struct block *block, const char *when) {
    size_t usable = malloc_usable_size(block->address);
    EXPECT(usable == block->usable, "block %llx of %zu bytes at %p: usable size went from %zu to %zu %s",
           (unsigned long long)block->id, block->size, (void *)block->address, block->usable, usable, when);
    size_t mismatch = pattern_mismatch(block->address, block->usable, block->id);
    EXPECT(mismatch == SIZE_MAX, "block %llx of %zu bytes (%zu usable) at %p: byte %zu changed %s",
           (unsigned long long)block->id, block->size, block->usable, (void *)block->address, mismatch, when);
}

/* Mostly small; each power of two about equally likely below 1 KiB, ever rarer up to 4 MiB. */
static size_t any_size(uint64_t *random) {
    size_t kind = pattern_below(random, 1000);
    size_t bits = kind < 850   ? pattern_below(random, 11)
                  : kind < 990 ? 10 + pattern_below(random, 7)
                               : 16 + pattern_below(random, 7);
    return pattern_below(random, ((size_t)1 << bits) + 1);
}

static void take(struct table *table, struct block *block, unsigned char *address, size_t size, size_t alignment) {
    block->address = address;
    if (address == NULL && may_be_null(size)) {
        return;
    }
    EXPECT(address != NULL, "an allocation of %zu bytes failed", size);
    EXPECT((uintptr_t)address % alignment_owed(alignment, size) == 0, "%p is not aligned to %zu", (void *)address,
           alignment);
    block->size = size;
    block->usable = malloc_usable_size(address);
    block->alignment = alignment;
    block->id = table->next_id++;
    EXPECT(block->usable >= size, "%zu bytes were asked for, %zu are usable", size, block->usable);
    table->live_bytes += block->usable;
    pattern_fill(address, 0, block->usable, block->id);
}

static void allocate(struct table *table, struct block *block) {
    size_t size = any_size(&table->random);
    size_t alignment = least_alignment(size);
    void *address = NULL;
    block->kind = UNSIZED;
    switch (pattern_below(&table->random, 8)) {
    case 0: {
        size_t count = 1 + pattern_below(&table->random, 9);
        address = calloc(count, size / count + 1);
        size = count * (size / count + 1);
        alignment = least_alignment(size);
        EXPECT(address != NULL, "calloc of %zu bytes failed", size);
        size_t dirty = pattern_not_zero(address, size);
        EXPECT(dirty == SIZE_MAX, "calloc of %zu bytes: byte %zu is not zero", size, dirty);
        break;
    }
    case 1:
        address = realloc(NULL, size);
        block->kind = SIZED;
        break;
    case 2:
        alignment = (size_t)16 << pattern_below(&table->random, 13);
        address = memalign(alignment, size);
        break;
    case 3:
        alignment = (size_t)16 << pattern_below(&table->random, 9);
        EXPECT(posix_memalign(&address, alignment, size) == 0, "posix_memalign of %zu bytes failed", size);
        break;
    case 4:
        alignment = (size_t)16 << pattern_below(&table->random, 5);
        address = aligned_alloc(alignment, size);
        block->kind = SIZED_ALIGNED;
        break;
    default:
        address = malloc(size);
        block->kind = SIZED;
        break;
    }
    take(table, block, address, size, alignment);
}

static void release(struct table *table, struct block *block) {
    inspect(block, "before it was freed");
    table->live_bytes -= block->usable;
    if (block->kind != UNSIZED && block->size > 0 && pattern_below(&table->random, 4) == 0) {
        if (block->kind == SIZED_ALIGNED) {
            free_aligned_sized(block->address, block->alignment, block->size);
        } else {
            free_sized(block->address, block->size);
        }
    } else if (pattern_below(&table->random, 64) == 0) {
        take_resized_to_zero(realloc(block->address, unseen_size(0)), "realloc(p, 0)");
    } else {
        free(block->address);
    }
    block->address = NULL;
}

static void resize(struct table *table, struct block *block) {
    inspect(block, "before it was resized");
    /* Half of the time near what it was, as growing vectors and shrinking buffers are. */
    size_t size = pattern_below(&table->random, 2) == 0
                      ? block->size / 2 + pattern_below(&table->random, block->size + 1)
                      : any_size(&table->random);
    size += size == 0;
    size_t kept = carried(block->size, block->usable);
    kept = size < kept ? size : kept;
    table->live_bytes -= block->usable;
    unsigned char *moved = realloc(block->address, size);
    EXPECT(moved != NULL, "realloc from %zu to %zu bytes failed", block->size, size);
    size_t mismatch = pattern_mismatch(moved, kept, block->id);
    EXPECT(mismatch == SIZE_MAX, "realloc from %zu to %zu bytes changed byte %zu", block->size, size, mismatch);
    block->kind = SIZED;
    take(table, block, moved, size, least_alignment(size));
}

static void exchange(struct table *table, struct block *block) {
    struct stall *stall = &stalls[pattern_below(&table->random, EXCHANGE)];
    pthread_mutex_lock(&stall->lock);
    struct block other = stall->block;
    stall->block = *block;
    pthread_mutex_unlock(&stall->lock);
    table->live_bytes -= block->address == NULL ? 0 : block->usable;
    table->live_bytes += other.address == NULL ? 0 : other.usable;
    *block = other;
    if (block->address != NULL) {
        inspect(block, "on its way to another thread");
    }
}

static void step(struct table *table) {
    struct block *block = &table->blocks[pattern_below(&table->random, TABLE)];
    size_t what = pattern_below(&table->random, 16);
    if (what == 0) {
        exchange(table, block);
    } else if (block->address == NULL) {
        if (table->live_bytes < THREAD_BYTES) {
            allocate(table, block);
        }
    } else if (what < 5 && table->live_bytes < THREAD_BYTES) {
        resize(table, block);
    } else if (what < 7) {
        inspect(block, "while it lay there");
    } else {
        release(table, block);
    }
    if (pattern_below(&table->random, 1 << 16) == 0) {
        (void)freestone_purge();
    }
}

static void *run(void *argument) {
    struct table *table = argument;
    for (size_t i = 0; i < table->operations; i++) {
        step(table);
    }
    return NULL;
}

static void *outside_the_heap(size_t size) {
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(memory != MAP_FAILED, "no memory for the model");
    return memory;
}

/* One generation of threads works on the tables, and ends; the next finds the blocks of the dead. */
static void generation(size_t threads, size_t operations) {
    pthread_t running[THREADS_MOST];
    for (size_t t = 0; t < threads; t++) {
        tables[t].operations = operations;
        EXPECT(pthread_create(&running[t], NULL, run, &tables[t]) == 0, "no thread");
    }
    for (size_t t = 0; t < threads; t++) {
        pthread_join(running[t], NULL);
    }
    for (size_t t = 0; t < threads; t++) {
        for (size_t b = 0; b < TABLE; b++) {
            if (tables[t].blocks[b].address != NULL) {
                inspect(&tables[t].blocks[b], "after its thread had ended");
            }
        }
    }
}

static void release_all(size_t threads) {
    for (size_t t = 0; t < threads; t++) {
        for (size_t b = 0; b < TABLE; b++) {
            if (tables[t].blocks[b].address != NULL) {
                release(&tables[t], &tables[t].blocks[b]);
            }
        }
    }
    for (size_t s = 0; s < EXCHANGE; s++) {
        if (stalls[s].block.address != NULL) {
            inspect(&stalls[s].block, "while nobody held it");
            free(stalls[s].block.address);
            stalls[s].block.address = NULL;
        }
    }
}

int main(int count, char **arguments) {
    require_serving();
    EXPECT(count == 4, "usage: trace THREADS SEED OPERATIONS|soak");
    size_t threads = strtoul(arguments[1], NULL, 10);
    uint64_t seed = strtoull(arguments[2], NULL, 10);
    EXPECT(threads >= 1 && threads <= THREADS_MOST, "THREADS is 1 to %d", THREADS_MOST);
    tables = outside_the_heap(threads * sizeof *tables);
    stalls = outside_the_heap(EXCHANGE * sizeof *stalls);
    for (size_t t = 0; t < threads; t++) {
        tables[t].random = seed * 1000 + t;
        tables[t].next_id = (uint64_t)(t + 1) << 40;
    }
    for (size_t s = 0; s < EXCHANGE; s++) {
        pthread_mutex_init(&stalls[s].lock, NULL);
    }
    if (!soak_wanted(arguments[3])) {
        size_t operations = strtoul(arguments[3], NULL, 10);
        for (size_t g = 0; g < GENERATIONS; g++) {
            generation(threads, operations);
        }
        release_all(threads);
        return 0;
    }
    struct soak soak = soak_begin(arguments[3]);
    size_t generations = 0;
    do {
        generation(threads, 100000);
        generations++;
        /* From time to time everything goes, so that whole slabs and spans change their size class. */
        if (generations % 8 == 0) {
            release_all(threads);
        }
    } while (soak_goes_on(&soak, generations));
    release_all(threads);
    printf("%zu generations of %zu threads, seed %llu\n", generations, threads, (unsigned long long)seed);
    return 0;
}
