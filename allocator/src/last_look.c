/* At the end of the program: what the thread that ends it has freed, and nobody has looked at yet. Last among destructors, and nothing but
 * looking: a child of a fork that ends so copies no page for it. */
#include "hardened.h"
#include "options.h"
#include "thread_inside.h"

static unsigned gather(void **top, void **blocks) {
    unsigned count = top == NULL || top == VOID_TOP ? 0 : magazine_count(top);
    for (unsigned i = 0; i < count; i++) {
        blocks[i] = top[-(ptrdiff_t)i];
    }
    return count;
}

__attribute__((destructor(101))) void thread_last_look(void) {
    if (thread_view.state != THREAD_ALIVE) {
        return;
    }
    enum pass pass = thread_go_inside();
    if (pass == PASS_CACHE && (modes() & MODE_HARDENED) != 0) {
        (void)hardened_check(thread_view.cache->hard);
    } else if (pass == PASS_CACHE) {
        const struct thread_cache *cache = thread_view.cache;
        for (unsigned slot = 1; slot < SLOT_COUNT; slot++) {
            void *blocks[2 * MAGAZINE_MOST];
            magazine_lift(cache->slots[slot].top);
            unsigned count = gather(cache->slots[slot].top, blocks);
            count += gather(cache->slots[slot].previous, blocks + count);
            if (count > 0) {
                heap_check(slot_class(slot), blocks, count);
            }
        }
    }
    thread_come_out(pass);
}
