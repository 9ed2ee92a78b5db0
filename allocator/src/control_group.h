/* Reads the control group's limit on memory. Beside os, which opens the files.
 *
 *   /proc/self/cgroup      0::/system.slice/a.service          the process's group, version 2
 *                          4:memory:/docker/abc                ... and version 1
 *   /proc/self/mountinfo   31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw          the root and the place of a mount
 *
 *   /sys/fs/cgroup/system.slice/a.service/memory.max and memory.high, and those of each group above, up to the mount; in version 1
 *   memory.limit_in_bytes */
#ifndef FREESTONE_CONTROL_GROUP_H
#define FREESTONE_CONTROL_GROUP_H

#include "bits.h"

enum control_group_version { CONTROL_GROUP_V2, CONTROL_GROUP_V1 };

/* No limit; and a limit that could not be read. */
static const size_t CONTROL_GROUP_NONE = SIZE_MAX;
static const size_t CONTROL_GROUP_UNKNOWN = 0;

/* Returns the least limit in bytes of the process's group and those above it. Opens files, so the caller knows that this is allowed. One thread at a
 * time. Allocates nothing; skips lines longer than a few KiB. */
size_t control_group_limit(void);

/* Its parts, which have unit tests. A line ends with a zero. */

/* Returns the group in a line of /proc/self/cgroup if the line is of that version and for memory, else NULL. */
const char *control_group_of_line(const char *line, enum control_group_version version);

/* Writes the folder of the group, from a line of /proc/self/mountinfo. Returns the length of the mount's own part of it. Returns 0 if the line is no
 * mount of that version, does not show the group, or the folder does not fit into `room` bytes. */
size_t control_group_folder(const char *line, enum control_group_version version, const char *group, char *folder,
                            size_t room);

/* Returns the number in a file with a limit: CONTROL_GROUP_NONE for "max" and for the number that version 1 writes instead. */
size_t control_group_number(const char *text);

#endif
