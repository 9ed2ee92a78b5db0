/* The census as perf's side-band records tell it: cheap enough to be taken inside a timed trial.
 *
 * A dummy software event per CPU, inherited by the whole tree and switched on by the program's exec, makes the kernel
 * write a record for every fork, exec, exit and executable mapping into one ring buffer per CPU. */
#ifndef FREESTONE_LAUNCHER_SIDEBAND_H
#define FREESTONE_LAUNCHER_SIDEBAND_H

#include "census.h"

#include <poll.h>
#include <stddef.h>

/* Before the program starts. False, with the reason in `*refusal`, where the kernel refuses. */
bool sideband_open(struct census *census, const char **refusal);

/* Number of descriptors to poll, and the descriptors: readable when a buffer is a quarter full. */
size_t sideband_poll(struct pollfd *entries, size_t room);

/* Moves what the buffers hold into the census. */
void sideband_drain(void);

#endif
