/* What the kernel says of this process, asked without a call of malloc. */
#pragma once

#include <stdint.h>

/* Resident set now less the harness's own memory, in KiB; 0 when the kernel does not tell. */
uint64_t resident_kib(void);

/* Minor page faults of the process so far. */
uint64_t minor_faults(void);
