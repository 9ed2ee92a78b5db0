/* Memory of the harness itself: mapped, never malloc'd, so that the allocator under test sees the workload alone. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Zeroed, written once so that no page of it is missing later, and on small pages whatever the machine's setting: the
 * same number of pages in every run. Ends the program with one line when there is no memory. */
void *store_take(size_t bytes);
void store_return(void *memory, size_t bytes);

/* What is taken now, and the most that was at one time, in KiB. */
uint64_t store_held_kib(void);
uint64_t store_peak_kib(void);
