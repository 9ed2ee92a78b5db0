/* At the end of the program: what the thread that ends it has freed, and nobody has looked at yet. Last among destructors, and nothing but
 * looking: a child of a fork that ends so copies no page for it.
 *
 * Other threads may have been stopped for good by then, with a lock or with this thread's cache in their hands: what is not to be had
 * within some milliseconds is not looked at. */
#include "hardened.h"
#include "options.h"
#include "os.h"
#include "patience.h"
#include "thread_inside.h"

/* Return true if no thread has borrowed the cache, or if the borrower returns it within some
 * milliseconds. Going inside waits for a borrower without a limit. A thread that borrows the cache
 * after this check blocks the end of the program only if it is stopped at that instant. */
static bool is_own(const struct thread_cache *cache) {
    enum { NAPS = 10 };
    /* relaxed: asked again by who goes inside */
    for (unsigned nap = 0; nap < NAPS; nap++) {
        if (likely(atomic_load_explicit(&cache->borrowed, memory_order_relaxed) == 0)) {
            return true;
        }
        os_nap(1);
    }
    return false;
}

static unsigned gather(void **top, void **blocks) {
    unsigned count = top == NULL || top == VOID_TOP ? 0 : magazine_count(top);
    for (unsigned i = 0; i < count; i++) {
        blocks[i] = top[-(ptrdiff_t)i];
    }
    return count;
}

__attribute__((destructor(101))) void thread_last_look(void) {
    if (thread_view.state != THREAD_ALIVE || !is_own(thread_view.cache)) {
        return;
    }
    struct patience patience = patience_begin();
    enum pass pass = thread_go_inside();
    if (pass == PASS_CACHE && (modes() & MODE_HARDENED) != 0) {
        (void)hardened_check(thread_view.cache->hard, &patience, thread_is_alone_inside);
    } else if (pass == PASS_CACHE) {
        const struct thread_cache *cache = thread_view.cache;
        for (unsigned slot = 1; slot < SLOT_COUNT; slot++) {
            void *blocks[2 * MAGAZINE_MOST];
            magazine_lift(cache->slots[slot].top);
            unsigned count = gather(cache->slots[slot].top, blocks);
            count += gather(cache->slots[slot].previous, blocks + count);
            if (count > 0) {
                heap_check(slot_class(slot), blocks, count, &patience);
            }
        }
    }
    thread_come_out(pass);
}
