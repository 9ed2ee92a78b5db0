/* Included before every source of the library: at each atomic the scheduler may let another thread go on, each thread has its own
 * thread-local variables, and what the library asks of libc's threads is answered by the simulator. */
#ifndef FREESTONE_SIMULATOR_YIELDS_H
#define FREESTONE_SIMULATOR_YIELDS_H

#include <pthread.h>
#include <stdatomic.h>

/* Before an atomic of that order. */
void simulator_yield(int order);

/* The macros of <stdatomic.h> come down to these; a macro is not expanded within itself. */
#define __atomic_load(p, r, o) (simulator_yield(o), __atomic_load(p, r, o))
#define __atomic_load_n(p, o) (simulator_yield(o), __atomic_load_n(p, o))
#define __atomic_store(p, v, o) (simulator_yield(o), __atomic_store(p, v, o))
#define __atomic_store_n(p, v, o) (simulator_yield(o), __atomic_store_n(p, v, o))
#define __atomic_exchange(p, v, r, o) (simulator_yield(o), __atomic_exchange(p, v, r, o))
#define __atomic_compare_exchange(p, e, v, w, o, f) (simulator_yield(o), __atomic_compare_exchange(p, e, v, w, o, f))
#define __atomic_fetch_add(p, v, o) (simulator_yield(o), __atomic_fetch_add(p, v, o))
#define __atomic_fetch_sub(p, v, o) (simulator_yield(o), __atomic_fetch_sub(p, v, o))
#define __atomic_fetch_or(p, v, o) (simulator_yield(o), __atomic_fetch_or(p, v, o))
#define __atomic_fetch_and(p, v, o) (simulator_yield(o), __atomic_fetch_and(p, v, o))
#define __c11_atomic_load(p, o) (simulator_yield(o), __c11_atomic_load(p, o))
#define __c11_atomic_store(p, v, o) (simulator_yield(o), __c11_atomic_store(p, v, o))
#define __c11_atomic_exchange(p, v, o) (simulator_yield(o), __c11_atomic_exchange(p, v, o))
#define __c11_atomic_compare_exchange_strong(p, e, v, o, f) \
    (simulator_yield(o), __c11_atomic_compare_exchange_strong(p, e, v, o, f))
#define __c11_atomic_compare_exchange_weak(p, e, v, o, f) \
    (simulator_yield(o), __c11_atomic_compare_exchange_weak(p, e, v, o, f))
#define __c11_atomic_fetch_add(p, v, o) (simulator_yield(o), __c11_atomic_fetch_add(p, v, o))
#define __c11_atomic_fetch_sub(p, v, o) (simulator_yield(o), __c11_atomic_fetch_sub(p, v, o))
#define __c11_atomic_fetch_or(p, v, o) (simulator_yield(o), __c11_atomic_fetch_or(p, v, o))
#define __c11_atomic_fetch_and(p, v, o) (simulator_yield(o), __c11_atomic_fetch_and(p, v, o))

/* Plain variables in a section of their own, of which each thread's copy is put in place when it goes on (fibers.c). */
#define _Thread_local __attribute__((section("simulator_locals")))
#define tls_model(model) unused

#define pthread_key_create simulator_key_create
#define pthread_setspecific simulator_setspecific
#define pthread_atfork simulator_atfork
int simulator_key_create(pthread_key_t *key, void (*destructor)(void *));
int simulator_setspecific(pthread_key_t key, const void *value);
int simulator_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void));

/* The fiber that runs: what tells one thread from another. */
void *simulator_self(void);

#include "planted.h"

#endif
