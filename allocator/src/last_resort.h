/* The last resort of a request that finds no memory: what is free with others or elsewhere is given back, and the request is tried again. It is
 * refused once a look round that missed nothing has found too little. Beside the thread caches; malloc, calloc, realloc and the aligned ones share it.
 *
 *   room        under limit_mib: free spans go back to the kernel, then free pages of slabs, until the request has room under the limit
 *   elsewhere   a block of another heap or class
 *   reclaim     what caches and depots hold goes into the slabs, and empty slabs to the arena
 *
 * Room is made for everybody: another thread may take it, so the look round goes on until the request is served or all slabs have been seen. Its work
 * is bounded by what the request lacks, in pieces; the thread comes out between two if a fork waits. */
#ifndef FREESTONE_LAST_RESORT_H
#define FREESTONE_LAST_RESORT_H

#include "thread_life.h"

struct request {
    size_t size, alignment; /* of a block from the shelter, if a fork begins meanwhile */
    size_t charge; /* bytes that must have room under limit_mib */
    /* Each returns NULL if there is no block. The caller is inside. */
    void *(*take)(const struct request *request, enum pass pass);
    void *(*elsewhere)(const struct request *request, enum pass pass);
    void (*reclaim)(enum pass pass);
};

/* The caller is inside, by *pass, and was refused. If *pass becomes PASS_REFUSED, a fork is under way and the block is one of the shelter,
 * which reads as zero, or NULL. */
void *last_resort(const struct request *request, enum pass *pass);

#endif
