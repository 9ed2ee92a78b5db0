/* Magazines that no heap needs, by the page. The keeper, and a trim, bring what a heap's spare list did not need; once every magazine of a page is
 * here, the page can be purged. Heaps take from here before new bookkeeping. */
#ifndef FREESTONE_MAGAZINE_POOL_H
#define FREESTONE_MAGAZINE_POOL_H

#include "magazine.h"

/* Magazines that belong together, linked by `next`: one, or those of a whole page. NULL if no bookkeeping is usable. Under a heap's lock. */
union magazine *magazine_pool_take(void);

/* Takes a list of magazines, linked by `next`, which hold nothing. */
void magazine_pool_give(union magazine *list);

/* Purges one page all of whose magazines are here. False if there is none; *bytes grows by what the kernel has taken. By a caller that holds
 * no lock. */
bool magazine_pool_purge(size_t *bytes);

/* Bytes of pages that are purged. */
size_t magazine_pool_purged(void);

/* In the child of a fork, where no other thread exists. */
void magazine_pool_after_fork(void);

#endif
