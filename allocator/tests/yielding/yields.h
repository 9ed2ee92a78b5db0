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

#include "../atomics_spelled_out.h"

#endif
