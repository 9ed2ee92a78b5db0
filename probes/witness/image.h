/* What the kernel says of this process and of the files mapped into it, read without allocating. */
#ifndef FREESTONE_WITNESS_IMAGE_H
#define FREESTONE_WITNESS_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { IMAGE_PATH = 4096 };

uint64_t image_now(void); /* CLOCK_MONOTONIC in nanoseconds */
void image_wait_until(uint64_t moment_ns); /* of the same clock; signals' handlers run meanwhile */
int image_pid(void);      /* from the kernel: a library's cached value may be a parent's */
int image_parent(void);

/* Resident set in KiB as /proc/self/statm has it; 0 when it cannot be read. */
uint64_t image_resident_kib(void);

/* The most that was resident at once and is no file's, in KiB; 0 when it cannot be read. */
uint64_t image_private_peak_kib(void);

/* What /proc/self/smaps_rollup adds up, in KiB. The kernel walks the page tables for it: that takes time. */
struct image_memory {
    bool known;
    uint64_t pss_kib;       /* each page divided by how many map it */
    uint64_t huge_kib;      /* anonymous memory in transparent huge pages */
    uint64_t lazy_free_kib; /* resident, and the kernel's to take at any time (MADV_FREE) */
};
struct image_memory image_memory(void);

uint64_t image_thread_ns(void); /* processor time of this thread */

/* Path of the program of this process. Empty when it cannot be read. */
void image_program(char path[IMAGE_PATH]);

/* The file mapped at an address. */
struct image_mapping {
    uintptr_t address; /* asked for */
    uint64_t device_major, device_minor, inode;
    char path[IMAGE_PATH]; /* empty: nothing, or no file, is mapped there */
};

/* Fills in `count` mappings in one pass over /proc/self/maps. */
void image_mappings(struct image_mapping *mappings, size_t count);

#endif
