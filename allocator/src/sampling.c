#include "sampling.h"

#include "options.h"
#include "os.h"
#include "random.h"
#include "thread_inside.h"

static _Atomic bool
    armed; /* release when set: who sees it finds `within`. A few allocations more or less at the start are no matter */

/* That one of the next so many allocations is sampled, where each is with one chance in `guard`: of 2^64. Written by sampling_arm alone. */
uint64_t sampling_within[MAGAZINE_MOST + 1] LAID_LAST;

void sampling_arm(void) {
    double none = 1, others = 1 - 1.0 / option_value(OPTION_GUARD);
    for (unsigned count = 0; count <= MAGAZINE_MOST; count++) {
        double some = (1 - none) * 18446744073709551616.0;
        sampling_within[count] = some >= 18446744073709549568.0 ? UINT64_MAX : (uint64_t)some;
        none *= others;
    }
    atomic_store_explicit(&armed, true, memory_order_release);
}

static uint64_t *chance_of(struct thread_cache *cache) {
    if (unlikely(cache->chance == 0)) {
        cache->chance = random_stir(os_secret() + (uintptr_t)cache) | 1;
    }
    return &cache->chance;
}

void sampling_sow(struct cache_class *magazines, void **top) {
    struct thread_cache *cache = thread_view.cache;
    if (top == VOID_TOP || !magazines->taken || thread_view.state != THREAD_ALIVE ||
        !atomic_load_explicit(&armed, memory_order_acquire)) {
        return;
    }
    uint64_t drawn = random_next(chance_of(cache));
    if (likely(drawn >= sampling_within[magazine_count(top)])) {
        return;
    }
    unsigned depth = 0;
    while (drawn >= sampling_within[depth + 1]) {
        depth++;
    }
    magazine_plant(top, depth);
}

void sampling_lift(void **top) { magazine_lift(top); }

/* The early end is reached: the magazine is loaded anew, with another perhaps. False when the thread may not come inside. */
static bool load_anew(struct cache_class *magazines) {
    enum pass pass = thread_enter();
    if (pass == PASS_CACHE) {
        void **top = slot_unload(magazines);
        slot_load(magazines, top);
    }
    thread_leave(pass);
    return pass == PASS_CACHE;
}

bool sampling_is_due(unsigned class) {
    if (thread_view.state == THREAD_UNBORN) { /* its first allocation is one like the others */
        thread_leave(thread_enter());
    }
    if (thread_view.state != THREAD_ALIVE || !atomic_load_explicit(&armed, memory_order_acquire)) {
        return false;
    }
    struct thread_cache *cache = thread_view.cache;
    if (class < CLASS_COUNT) {
        struct cache_class *magazines = thread_magazines(class);
        if (!magazine_is_empty(magazines->top)) { /* larger than the fast path knows: it was drawn with the magazine */
            return false;
        }
        if (magazine_ends_early(magazines->top)) {
            return load_anew(magazines);
        }
    }
    return random_next(chance_of(cache)) < sampling_within[1];
}
