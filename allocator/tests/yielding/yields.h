/* Included before every source of the library where FREESTONE_YIELDS asks for it: each atomic operation, and with them each lock, lets other
 * threads go first now and then. What a scheduler does once in a million steps happens all the time. gcc only. */
#ifndef FREESTONE_TESTS_YIELDS_H
#define FREESTONE_TESTS_YIELDS_H

#include <stdatomic.h>

/* Goes on at once mostly, after the others now and then, and rarely after a nap that others use to get far. */
__attribute__((visibility("hidden"))) void yields_now(void);

/* A macro is not expanded within itself: the built-in function. */
#define __atomic_load_n(place, order) (yields_now(), __atomic_load_n(place, order))
#define __atomic_store_n(place, value, order) (yields_now(), __atomic_store_n(place, value, order))
#define __atomic_exchange_n(place, value, order) (yields_now(), __atomic_exchange_n(place, value, order))
#define __atomic_fetch_add(place, value, order) (yields_now(), __atomic_fetch_add(place, value, order))
#define __atomic_fetch_sub(place, value, order) (yields_now(), __atomic_fetch_sub(place, value, order))
#define __atomic_fetch_and(place, value, order) (yields_now(), __atomic_fetch_and(place, value, order))
#define __atomic_fetch_or(place, value, order) (yields_now(), __atomic_fetch_or(place, value, order))
#define __atomic_compare_exchange_n(place, seen, value, weak, order, failed) \
    (yields_now(), __atomic_compare_exchange_n(place, seen, value, weak, order, failed))

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
