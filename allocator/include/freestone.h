/* libfreestone: a drop-in malloc for Linux.
 *
 * Nothing here is needed to use it: preload or link the library, and the standard functions are served by it. This
 * header adds what the standard has no word for: which library serves, its figures, and purging on demand.
 * All functions are thread-safe and may be called at any time. */
#ifndef FREESTONE_H
#define FREESTONE_H

#if !defined(__linux__) || !defined(__LP64__)
#error "Freestone needs a 64-bit Linux: this compiler makes programs for another system (docs/reference/platforms.md)"
#else

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "freestone <version>". Its address, found by dlsym, tells any tool that the library is in the process; that malloc
 * resolves to the same object tells that it is in force. */
extern const char freestone_identity[];

/* The version, e.g. "0.1.0". */
const char *freestone_version(void);

/* Gives every page that holds no block back to the system, also pages in the midst of blocks that are in use: empties the calling
 * thread's cache and all depots, then purges. Other threads' caches stay (at most 64 KiB of blocks, or one block where that is more,
 * for each of two magazines of each size class they use). Returns the bytes given back, of which those that were never written were in no
 * memory. Locked pages stay. */
size_t freestone_purge(void);

/* Changes options while the program runs, in the form of FREESTONE_OPTIONS: "limit_mib=512,retain_mib=16". These may be changed: limit_mib,
 * retain_mib, retain_percent and retain_ms (docs/reference/options.md). All of them, or none and -1 with errno EINVAL if a part cannot be
 * understood; else 0. What is beyond a limit then stays with the program; freestone_purge gives back what is free. */
int freestone_set_options(const char *options);

/* The program's own options, in the form of FREESTONE_OPTIONS, if it defines this: const char freestone_default_options[] = "harden=1";
 * Linked with libfreestone, static or shared, it has them also where it is privileged (set-user-ID) and the environment counts for nothing. In any
 * other process the environment is read after them. If they choose harden=1 or guard=N, it may make those and their parts stronger, not weaker
 * (docs/reference/options.md). */
extern const char freestone_default_options[] __attribute__((weak, visibility("default")));

/* What the library holds at the moment, in bytes unless said. Counts of different parts are read one after the other
 * and may be a little apart while other threads run. In memory are at most slabs - clean + large + retained + bookkeeping: pages that were
 * never written count, and cost nothing. */
struct freestone_stats {
    size_t reserved;      /* address space of the arena; costs no memory */
    size_t extent;        /* of which ever handed out */
    size_t in_use;        /* blocks the program holds, by size class; thread caches count as held */
    size_t large;         /* of which in spans and mappings of their own */
    size_t slabs;         /* spans cut into blocks */
    size_t free_blocks;   /* free in slabs: bitmaps and depots */
    size_t retained;      /* free spans kept for reuse, but for pages that were given back already */
    size_t purged;        /* given back since the start; pages that were never written count too */
    size_t bookkeeping;   /* tags, descriptors, bitmaps, magazines */
    size_t mappings;      /* number of mappings of their own: blocks above 128 MiB */
    size_t mapped;        /* their bytes; part of `large` */
    size_t heaps;         /* number of heaps in use */
    size_t clean;         /* pages of free blocks that the kernel has back; part of `slabs` and `free_blocks` */
    size_t unguarded;     /* number of guards left out that harden=1 or guard=N ask for: refused, or too many */
    size_t guarded;       /* number of blocks that guard=N has guarded since the start */
};

/* In a hardened process (FREESTONE_OPTIONS=harden=1), looks at every block: whether anything was written behind it or before it, or into
 * what is free. Stops the program with a line that says what it found; else returns the number of blocks in use. 0 in any other process. */
size_t freestone_check(void);

void freestone_stats_read(struct freestone_stats *stats);

/* Writes the same as one JSON object, always terminated when `size` > 0. Returns the text's length, without the terminator, where it is less
 * than `size`. Else the text is cut, and what is returned is a length that no text exceeds, at least `size`: the figures change with every
 * allocation. So this is never cut, whatever allocates meanwhile, and `length` is the text's:
 *
 *   int most = freestone_stats_json(NULL, 0);
 *   char *text = malloc((size_t)most + 1);
 *   int length = freestone_stats_json(text, (size_t)most + 1); */
int freestone_stats_json(char *buffer, size_t size);

#ifdef __cplusplus
}
#endif

#endif

#endif
