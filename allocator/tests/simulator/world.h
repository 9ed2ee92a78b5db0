/* The world of a simulation: what os.h asks of the kernel. Memory is real, at addresses that are the same in every run; time passes as
 * it is told; threads and sleeping are the scheduler's; any request can be refused. */
#ifndef FREESTONE_SIMULATOR_WORLD_H
#define FREESTONE_SIMULATOR_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* From now on the kernel wipes no pages at forks; before the library's first call. Only handlers tell a child then that it is one. */
void world_be_old(void);
bool world_is_old(void);

/* Processors that the library is told of; before its first call. */
extern unsigned world_cpus;

/* What the clock says at the start of each run. */
void world_begin_at(uint64_t milliseconds);

/* Nanoseconds; also a microsecond goes by at each yield. */
uint64_t world_now(void);
void world_pass(uint64_t nanoseconds);

/* So many requests for memory, or to give it back, or for a thread, are refused, after the next `later`. */
void world_refuse(uint32_t requests, uint32_t later);

/* Mapped memory at most, in KiB; 0 lifts the limit. */
void world_limit(uint32_t kib);

/* Requests refused so far. */
uint64_t world_refused(void);

/* There is memory there. */
bool world_is_mapped(const void *page);

/* Mappings of os_map that exist. */
size_t world_mappings(void);

/* What the fork of a process does to it. */
void world_fork(void);

/* Milliseconds that the running thread has asked to sleep at most, in all. */
uint64_t world_waited(void);

/* The keeper exists. */
bool world_has_keeper(void);

/* The destructors at the running thread's end, and the end itself. */
void world_destroy_specific(void);
void world_end_thread(void);

/* The handlers of the library's fork. */
void world_before_fork(void);
void world_after_fork_in_parent(void);
void world_after_fork_in_child(void);

#endif
