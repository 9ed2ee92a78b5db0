/* How a block was made, which tells how it is to be freed. Leaf. */
#ifndef FREESTONE_MADE_H
#define FREESTONE_MADE_H

#include <stdint.h>

enum made {
    MADE_BY_MALLOC, /* and by all that free() takes back */
    MADE_BY_NEW,
    MADE_BY_NEW_ARRAY,
    MADE_BY_ALIGNED_NEW,
    MADE_BY_ALIGNED_NEW_ARRAY,
    MADE_ANYHOW, /* of a free: nobody says how */
};

/* Of a free that does not tell how large the block is. */
#define SIZE_UNTOLD SIZE_MAX

/* "malloc", "new[]", ...; and what takes such a block back. */
static inline const char *made_name(enum made made) {
    static const char *const names[] = {"malloc", "new", "new[]", "aligned new", "aligned new[]", "?"};
    return names[made];
}
static inline const char *made_end(enum made made) {
    static const char *const names[] = {"free", "delete", "delete[]", "aligned delete", "aligned delete[]", "?"};
    return names[made];
}

#endif
