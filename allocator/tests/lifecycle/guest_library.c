/* A library that comes and goes: allocates for others, keeps blocks of others and frees them as it is unloaded. */
#include "entry.h"
#include "expect.h"

void *guest_allocate(size_t size);
void guest_keep(void *block);

enum { KEPT = 100 }; /* two threads may keep it loaded all the time */

static void *kept[KEPT];
static size_t count;

void *guest_allocate(size_t size) { return malloc(size); }

void guest_keep(void *block) {
    size_t place = __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
    EXPECT(place < KEPT, "too many blocks to keep");
    kept[place] = block;
}

__attribute__((destructor)) static void leave(void) {
    for (size_t i = 0; i < count; i++) {
        free(kept[i]);
    }
    free(malloc(100));
}
