/* The macros of <stdatomic.h> come down to the built-in functions that the library's own sources use too, so that who redefines these sees every
 * atomic operation. Included after those. */
#ifndef FREESTONE_TESTS_ATOMICS_SPELLED_OUT_H
#define FREESTONE_TESTS_ATOMICS_SPELLED_OUT_H

#include <stdatomic.h>

#undef atomic_load_explicit
#undef atomic_store_explicit
#undef atomic_exchange_explicit
#undef atomic_fetch_add_explicit
#undef atomic_fetch_sub_explicit
#undef atomic_fetch_and_explicit
#undef atomic_fetch_or_explicit
#undef atomic_compare_exchange_strong_explicit
#undef atomic_compare_exchange_weak_explicit
#define atomic_load_explicit(place, order) __atomic_load_n(place, order)
#define atomic_store_explicit(place, value, order) __atomic_store_n(place, value, order)
#define atomic_exchange_explicit(place, value, order) __atomic_exchange_n(place, value, order)
#define atomic_fetch_add_explicit(place, value, order) __atomic_fetch_add(place, value, order)
#define atomic_fetch_sub_explicit(place, value, order) __atomic_fetch_sub(place, value, order)
#define atomic_fetch_and_explicit(place, value, order) __atomic_fetch_and(place, value, order)
#define atomic_fetch_or_explicit(place, value, order) __atomic_fetch_or(place, value, order)
#define atomic_compare_exchange_strong_explicit(place, seen, value, order, failed) \
    __atomic_compare_exchange_n(place, seen, value, 0, order, failed)
#define atomic_compare_exchange_weak_explicit(place, seen, value, order, failed) \
    __atomic_compare_exchange_n(place, seen, value, 1, order, failed)

#endif
