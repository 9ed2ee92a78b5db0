#include "sampled.h"

enum { PLACES = 1 << 16, ONE_OF_BITS = 6 };

/* A place holds the block that was born there last; one that is written over is not counted as freed. The address is
 * written last and taken by exchange, so that a block's free counts once and reads what belongs to it. */
struct place {
    _Atomic uintptr_t block;
    _Atomic uint64_t asked;
    _Atomic uint32_t thread;
};

static struct place places[PLACES];

static uint64_t hashed(const void *block) { return ((uintptr_t)block >> 4) * 0x9E3779B97F4A7C15u; }

static bool is_chosen(uint64_t hash) { return hash >> (64 - ONE_OF_BITS) == 0; }

static struct place *place_of(uint64_t hash) { return &places[hash >> (64 - ONE_OF_BITS - 16) & (PLACES - 1)]; }

void sampled_born(const void *block, const struct tally *tally) {
    const uint64_t hash = hashed(block);
    if (!is_chosen(hash))
        return;
    struct place *place = place_of(hash);
    atomic_store_explicit(&place->block, 0, memory_order_relaxed);
    atomic_store_explicit(&place->asked, tally_asked(), memory_order_relaxed);
    atomic_store_explicit(&place->thread, tally->number, memory_order_relaxed);
    /* release: whoever finds the block finds what was written before it */
    atomic_store_explicit(&place->block, (uintptr_t)block, memory_order_release);
}

void sampled_gone(const void *block, struct tally *tally) {
    const uint64_t hash = hashed(block);
    if (!is_chosen(hash))
        return;
    struct place *place = place_of(hash);
    const uint64_t asked = atomic_load_explicit(&place->asked, memory_order_relaxed);
    const uint32_t thread = atomic_load_explicit(&place->thread, memory_order_relaxed);
    uintptr_t expected = (uintptr_t)block;
    /* acquire: pairs with the release at its birth */
    if (!atomic_compare_exchange_strong_explicit(&place->block, &expected, 0, memory_order_acquire,
                                                 memory_order_relaxed))
        return;
    const uint64_t meanwhile = tally_asked() - asked;
    const unsigned row = meanwhile == 0 ? 0 : 64 - (unsigned)__builtin_clzll(meanwhile);
    tally_add(&tally->lifetimes[row < STATE_LIFETIMES ? row : STATE_LIFETIMES - 1], 1);
    tally_add(&tally->sampled_frees, 1);
    tally_add(&tally->remote_frees, thread != tally->number);
}
