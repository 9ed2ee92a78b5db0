#include "sampling.h"

#include "keeper.h"
#include "options.h"
#include "os.h"
#include "random.h"
#include "street.h"
#include "thread_inside.h"

static _Atomic bool
    armed; /* release when set: who sees it finds `within` and `secret`. A few allocations more or less at the start are no matter */

static uint64_t secret; /* the process's. Written by sampling_arm alone */
static _Atomic uint64_t chances; /* relaxed: threads that have begun one, each with a number of its own */

static _Atomic uint32_t answers; /* relaxed: sampling_answers */

enum {
    DENSE = 100, /* at least one in so many: each is drawn */
    GLANCED = 2, /* of a magazine's newest blocks, at which each free looks: they stay in sight */
    SUMMONS_MS = 2, /* between two of them, */
    SUMMONS_MOST_MS = 1000,
    FREES_MOST = 64, /* that come one after the other before the allocation that is waited for */
    ALLOCATIONS_MS = 500, /* or what a thread that does little else, but not nothing else, takes a millisecond for */
};

/* That one of the next so many allocations is sampled, where each is with one chance in `guard`: of 2^64. Written by sampling_arm alone. */
uint64_t sampling_within[MAGAZINE_MOST + 1] LAID_LAST;

void sampling_arm(void) {
    double none = 1, others = 1 - 1.0 / option_value(OPTION_GUARD);
    for (unsigned count = 0; count <= MAGAZINE_MOST; count++) {
        double some = (1 - none) * 18446744073709551616.0;
        sampling_within[count] = some >= 18446744073709549568.0 ? UINT64_MAX : (uint64_t)some;
        none *= others;
    }
    secret = os_secret();
    atomic_store_explicit(&armed, true, memory_order_release);
}

/* By who has seen `armed`. Without a system call: the program may be under filters by now. Children of forks have the secret and the numbers in
 * common; the clock tells most of them apart. */
static uint64_t *chance_of(struct thread_cache *cache) {
    if (unlikely(cache->chance == 0)) {
        uint64_t number = atomic_fetch_add_explicit(&chances, 1, memory_order_relaxed) + 1;
        cache->chance = random_stir(secret + random_stir(number) + os_milliseconds()) | 1;
    }
    return &cache->chance;
}

OUT_OF_LINE void sampling_sow(struct cache_class *magazines, void **top, uint64_t drawn) {
    if (!atomic_load_explicit(&armed, memory_order_acquire)) {
        return;
    }
    struct thread_cache *cache = thread_view.cache;
    if (unlikely(cache->chance == 0)) { /* then 0 was drawn */
        drawn = random_next(chance_of(cache));
    }
    if (magazines->taken != TAKING || drawn >= sampling_within[magazine_count(top)]) {
        return;
    }
    unsigned depth = 0;
    while (drawn >= sampling_within[depth + 1]) {
        depth++;
    }
    depth += GLANCED;
    if (depth < magazine_count(top)) {
        magazine_plant(top, depth);
    }
}

void sampling_lift(void **top) { magazine_lift(top); }

bool sampling_is_dense(void) { return (modes() & MODE_GUARDED) != 0 && option_value(OPTION_GUARD) <= DENSE; }

uint32_t sampling_interval(void) {
    if ((modes() & MODE_GUARDED) == 0 || sampling_is_dense()) {
        return 0;
    }
    return (uint32_t)bits_min(bits_max(option_value(OPTION_GUARD) / ALLOCATIONS_MS, SUMMONS_MS), SUMMONS_MOST_MS);
}

struct summons *sampling_summons(void) {
    if (sampling_interval() == 0) {
        return NULL;
    }
    (void)street_bookkeeping_grow();
    return street_bookkeeping(sizeof(struct summons));
}

uint32_t sampling_answers(void) { return atomic_load_explicit(&answers, memory_order_relaxed); }

OUT_OF_LINE void sampling_answer(struct thread_cache *cache) {
    struct summons *summons = cache->summons;
    if (atomic_load_explicit(&summons->out, memory_order_relaxed) == 0) {
        return;
    }
    for (unsigned slot = 1; slot < SLOT_COUNT; slot++) {
        /* Where the thread was about to push or to pop at that instant, it has done so, and nothing is withheld. */
        if (summons->withheld[slot] != NULL && cache->slots[slot].top == VOID_TOP) {
            __atomic_store_n(&cache->slots[slot].top, summons->withheld[slot], __ATOMIC_RELAXED);
        }
        summons->withheld[slot] = NULL;
    }
    atomic_store_explicit(&summons->out, 0, memory_order_relaxed);
    summons->answered = true;
    atomic_fetch_add_explicit(&answers, 1, memory_order_relaxed);
    keeper_wish(); /* the thread works: the next summons is to come */
}

OUT_OF_LINE void sampling_wait_on(struct thread_cache *cache, unsigned slot) {
    struct summons *summons = cache->summons;
    struct cache_class *magazines = &cache->slots[slot];
    if (!summons->answered) {
        summons->frees = 0;
        return;
    }
    /* A thread that goes on freeing is not held up any longer: the summons is for its next allocation that comes inside by itself. */
    if (summons->frees == FREES_MOST || magazines->taken != TAKING || magazines->top == VOID_TOP) {
        return;
    }
    summons->frees++;
    summons->answered = false;
    summons->withheld[slot] = magazines->top;
    atomic_signal_fence(memory_order_seq_cst);
    magazines->top = VOID_TOP;
    atomic_store_explicit(&summons->out, 1, memory_order_relaxed);
}

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

/* Whether the thread was summoned, and this is what it has come with. */
static bool is_summoned(struct thread_cache *cache) {
    struct summons *summons = cache->summons;
    if (summons == NULL) {
        return false;
    }
    if (atomic_load_explicit(&summons->out, memory_order_relaxed) != 0) {
        thread_leave(thread_enter());
    }
    bool answered = summons->answered;
    summons->answered = false;
    summons->frees = 0;
    return answered;
}

/* What nearly every allocation finds that comes inside: nobody has summoned its thread, and no early end is reached. */
static bool is_like_others(const struct thread_cache *cache, const struct cache_class *magazines) {
    const struct summons *summons = cache->summons;
    return cache->chance != 0 && !magazine_ends_early(magazines->top) && magazine_is_empty(magazines->top) &&
           (summons == NULL || (!summons->answered && summons->frees == 0 &&
                                atomic_load_explicit(&summons->out, memory_order_relaxed) == 0));
}

static OUT_OF_LINE bool is_due(unsigned class);

bool sampling_is_due(unsigned class) {
    if (likely(thread_view.state == THREAD_ALIVE) && class < CLASS_COUNT &&
        likely(is_like_others(thread_view.cache, thread_magazines(class)))) {
        return random_next(&thread_view.cache->chance) < sampling_within[1]; /* all 0 before it is armed */
    }
    return is_due(class);
}

static OUT_OF_LINE bool is_due(unsigned class) {
    if (thread_view.state == THREAD_UNBORN) { /* its first allocation is one like the others */
        thread_leave(thread_enter());
    }
    if (thread_view.state != THREAD_ALIVE || !atomic_load_explicit(&armed, memory_order_acquire)) {
        return false;
    }
    struct thread_cache *cache = thread_view.cache;
    /* Larger ones are drawn one by one: the summons is for those that the fast path serves. */
    bool due = class < CLASS_COUNT && is_summoned(cache);
    if (class < CLASS_COUNT) {
        struct cache_class *magazines = thread_magazines(class);
        if (magazine_ends_early(magazines->top)) {
            return load_anew(magazines) || due;
        }
        if (!due &&
            !magazine_is_empty(magazines->top)) { /* larger than the fast path knows: it was drawn with the magazine */
            return false;
        }
    }
    return due || random_next(chance_of(cache)) < sampling_within[1];
}
