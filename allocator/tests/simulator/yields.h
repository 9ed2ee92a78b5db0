/* Included before every source of the library: at each atomic the scheduler may let another thread go on, each thread has its own
 * thread-local variables, and what the library asks of libc's threads is answered by the simulator. */
#ifndef FREESTONE_SIMULATOR_YIELDS_H
#define FREESTONE_SIMULATOR_YIELDS_H

#include <pthread.h>
#include <stdatomic.h>

void simulator_yield(void);

/* The macros of <stdatomic.h> come down to these; a macro is not expanded within itself. */
#define __atomic_load(...) (simulator_yield(), __atomic_load(__VA_ARGS__))
#define __atomic_load_n(...) (simulator_yield(), __atomic_load_n(__VA_ARGS__))
#define __atomic_store(...) (simulator_yield(), __atomic_store(__VA_ARGS__))
#define __atomic_store_n(...) (simulator_yield(), __atomic_store_n(__VA_ARGS__))
#define __atomic_exchange(...) (simulator_yield(), __atomic_exchange(__VA_ARGS__))
#define __atomic_compare_exchange(...) (simulator_yield(), __atomic_compare_exchange(__VA_ARGS__))
#define __atomic_fetch_add(...) (simulator_yield(), __atomic_fetch_add(__VA_ARGS__))
#define __atomic_fetch_sub(...) (simulator_yield(), __atomic_fetch_sub(__VA_ARGS__))
#define __atomic_fetch_or(...) (simulator_yield(), __atomic_fetch_or(__VA_ARGS__))
#define __atomic_fetch_and(...) (simulator_yield(), __atomic_fetch_and(__VA_ARGS__))
#define __c11_atomic_load(...) (simulator_yield(), __c11_atomic_load(__VA_ARGS__))
#define __c11_atomic_store(...) (simulator_yield(), __c11_atomic_store(__VA_ARGS__))
#define __c11_atomic_exchange(...) (simulator_yield(), __c11_atomic_exchange(__VA_ARGS__))
#define __c11_atomic_compare_exchange_strong(...) (simulator_yield(), __c11_atomic_compare_exchange_strong(__VA_ARGS__))
#define __c11_atomic_compare_exchange_weak(...) (simulator_yield(), __c11_atomic_compare_exchange_weak(__VA_ARGS__))
#define __c11_atomic_fetch_add(...) (simulator_yield(), __c11_atomic_fetch_add(__VA_ARGS__))
#define __c11_atomic_fetch_sub(...) (simulator_yield(), __c11_atomic_fetch_sub(__VA_ARGS__))
#define __c11_atomic_fetch_or(...) (simulator_yield(), __c11_atomic_fetch_or(__VA_ARGS__))
#define __c11_atomic_fetch_and(...) (simulator_yield(), __c11_atomic_fetch_and(__VA_ARGS__))

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
