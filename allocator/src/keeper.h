/* The keeper: a thread of the library's own that gives memory back while the program idles. Leaf
 * above options and os.
 *
 * There is none until a wish for it was made, which is when so much freed memory lies about that
 * returning it matters, and none any more when a look round finds nothing left to return. Rooms
 * below say that there may be work (keeper_wish), or that some is due at once (keeper_hurry); the
 * slow paths above, once nobody is inside, start the thread (keeper_serve).
 *
 * No wish is lost. A thread writes its wish before it reads whether the keeper lives, and the
 * keeper announces its end before it reads the wish for the last time. All four are in one order
 * for all threads (seq_cst), so one of the two sees the other.
 *
 * It makes no system call that a program's sandbox might punish. If no filter is known, it runs on
 * the CPUs that the process was started on, as a thread of the plain class, without capabilities
 * and, if the process has privileges, under a filter of its own. Under filters it starts only if a
 * second thread of the program has allocated under the same ones. It then only sleeps (futex),
 * purges (madvise), unmaps the street's free end (munmap) and ends. If the program can give up
 * privileges unseen (keeper_hear_identity), it is not started with them.
 *
 * If a memory hook is installed (memory_hooks.h), the keeper ends and none is started: the hook
 * would not see what it returns. */
#ifndef FREESTONE_KEEPER_H
#define FREESTONE_KEEPER_H

#include <stdatomic.h>

#include "options.h"

/* What a keeper does. Defined above, in keeping.c, and called by name: a pointer to code that can be written is what an attacker looks for.
 *
 * A look round: returns what is given back, and says in *more whether waiting longer may find more. */
size_t keeping_look(bool *more);

/* Only what is due at once. */
size_t keeping_hurry(void);

/* Something short between two looks: summons a thread; false when none has answered since the last. */
bool keeping_summon(void);

/* That in so many milliseconds again, while the program works; 0: never. Once, at the first allocation. */
void keeper_beat_every(uint32_t milliseconds);

extern _Atomic uint32_t keeper_wished INTERNAL;

/* There is, or soon will be, memory worth returning. If `keeper` is 0, nothing is written: every slow path of every thread reads
 * this word, and taking the wish back would change it for all of them again. */
static inline void keeper_wish(void) {
    if (atomic_load_explicit(&keeper_wished, memory_order_relaxed) == 0 && likely(option_value(OPTION_KEEPER) != 0)) {
        atomic_store_explicit(&keeper_wished, 1, memory_order_seq_cst);
    }
}

/* Whether a wish is open: then keeper_serve is to be called. Relaxed: a thread sees its own wish. */
static inline bool keeper_is_wished(void) {
    return unlikely(atomic_load_explicit(&keeper_wished, memory_order_relaxed) != 0);
}

/* Memory is due to be returned now. False when no keeper will see to it: the caller has to, in part. */
bool keeper_hurry(void);

/* Starts the keeper unless it lives, or must not. Called by who is not inside and holds no lock. */
void keeper_serve(void);

/* A thread of the program has allocated for the first time. After the second one the keeper may be
 * started under the filters of the start. */
void keeper_note_thread(void);

/* The keeper is made to leave before libc changes who the process is: by the shared library. */
void keeper_hear_identity(void);

/* The program has put itself under filters, or is about to: none is started any more. Between keeper_leave and keeper_return. */
void keeper_confine(void);

/* The keeper ends, and none is started until keeper_return: a fork comes, or the program changes who it is. Waits for it a while. After
 * that it is started again by the next wish that is served, or, where it need not be `at_once`, a little later. False where nothing
 * was ever allocated: then there is nothing to return from. `inside`: the caller is a signal's handler whose thread is (thread_is_inside). */
bool keeper_leave(bool inside);

/* The same before a call that fails, or leaves the keeper as it was, if the keeper lives. Waits for one that gets no CPU: the call goes on after half a
 * minute, since a debugger may have stopped it alone. */
bool keeper_leave_first(bool inside);
void keeper_return(bool at_once);

/* Whether it left before it looked, should have looked long ago, and was not started again: no slow path came by. keeper_has_looked: somebody
 * else has done that. */
bool keeper_is_overdue(void);
void keeper_has_looked(void);

/* keeper_leave, where there is a keeper; else false, and nothing is asked for, not even the time. */
bool keeper_give_way(bool inside);

/* In the place of keeper_return: the program was refused a thread, and the keeper is tried again as after a refusal of its own. */
void keeper_stay_away(void);

/* Whether the program has put itself under filters: what they allow nobody knows. Those that were there at its start let it run. */
bool keeper_is_confined(void);

/* Whether no filter watches what the library asks the kernel for, as far as that is known. */
bool keeper_is_unwatched(void);

/* Return true if system calls that are not made at start are allowed: no filter is known, and
 * `keeper` is not 0, which says that there may be one that cannot be seen. */
bool keeper_may_ask(void);

/* Whether none may be started at present, though the program has nothing against it: filters watch, or privileges would stay with it. */
bool keeper_is_barred(void);

/* Whether files may be opened after the start. Not once the program has started a second thread: it may close descriptors whose numbers it does not
 * know, and open its own, while the library reads. Those filters that were there then have let the library open one, none was seen to come
 * since, and nobody has said that one might which cannot be seen (`keeper=0`). */
bool keeper_may_open(void);

/* The program is about to start a task that shares its descriptors. */
void keeper_note_sharing(void);

/* Asked by the keeper between two pieces of work. */
bool keeper_is_to_leave(void);

/* Asked in the child of a fork that nobody has announced: whether it lived at that moment. */
bool keeper_was_there(void);

/* In the child of a fork, where the keeper does not exist. */
void keeper_after_fork(void);

#endif
