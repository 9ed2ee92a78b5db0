#include "last_resort.h"

#include "arena.h"
#include "gate.h"
#include "heap.h"
#include "limit.h"
#include "os.h"

/* Comes out while a fork waits. A large block waits for the fork's end, since the shelter, which no limit counts, would exceed the limit. False if
 * the thread is kept outside all the same (turns.h), and for a small block: the shelter serves them. */
static bool step_aside(const struct request *request, enum pass *pass, void **block) {
    if (likely(gate_is_open())) {
        return true;
    }
    thread_leave(*pass);
    *pass = request->size > CLASS_LARGEST ? thread_enter_at_last() : thread_enter();
    if (*pass == PASS_REFUSED) {
        *pass = thread_take_shelter(request->size, request->alignment, block);
    }
    return *pass != PASS_REFUSED;
}

/* A piece of what the request lacks goes back; false if no more is to be had. */
static bool give_back(const struct request *request, struct heap_sweep *sweep) {
    return arena_purge_piece() || heap_sweep_some(sweep, limit_lack_of_own(request->charge));
}

/* Makes room under the limit and tries the request. While there is more to give back, whoever took the room is no reason to refuse. */
static void *make_room(const struct request *request, enum pass *pass, struct heap_sweep *sweep) {
    void *block;
    bool more = true;
    heap_begin_sweep(sweep);
    do {
        while (more && limit_lack_of_own(request->charge) > 0) {
            more = give_back(request, sweep);
            if (!step_aside(request, pass, &block)) {
                return block;
            }
        }
        block = request->take(request, *pass);
    } while (block == NULL && more && limit_lack_of_own(request->charge) > 0);
    return block;
}

/* Looks in every heap; again if a fork ended the look early. False if the thread is kept outside: see step_aside. */
static bool look_elsewhere(const struct request *request, enum pass *pass, void **block) {
    enum { FORKS_MOST = 20 }; /* a program that forks all the time gives no end to this */
    for (int forks = 0;; forks++) {
        *block = request->elsewhere(request, *pass);
        if (*block != NULL || likely(gate_is_open()) || forks == FORKS_MOST) {
            return true;
        }
        if (!step_aside(request, pass, block)) {
            return false;
        }
    }
}

/* Whether another round may find more. Others who are inside may hold blocks in their hands: two rounds at least, with what caches hold. A program that
 * frees all the time gives no end to what a round may have missed. */
static bool is_worth_another(int round, bool alone, const struct heap_sweep *sweep) {
    enum { FUTILE_ROUNDS = 3 };
    if (round == 0 || heap_is_cleaning() || (!alone && round == 1)) {
        return true;
    }
    return heap_sweep_missed(sweep) && (sweep->bytes > 0 || round < FUTILE_ROUNDS);
}

void *last_resort(const struct request *request, enum pass *pass) {
    enum { ROUNDS = 20 }; /* a millisecond apart */
    void *block = NULL;
    for (int round = 0; round < ROUNDS; round++) {
        bool alone = thread_is_alone_inside();
        struct heap_sweep sweep = {0};
        if (round > 0 || limit_own() != LIMIT_NONE) { /* else it was tried just now */
            block = make_room(request, pass, &sweep);
        }
        if (block == NULL && *pass != PASS_REFUSED && request->elsewhere != NULL &&
            !look_elsewhere(request, pass, &block)) {
            return block;
        }
        if (block != NULL || *pass == PASS_REFUSED || !is_worth_another(round, alone, &sweep)) {
            break;
        }
        if (round > 0) {
            os_nap(1);
        }
        request->reclaim(*pass);
    }
    return block;
}
