#include "control_group.h"

#include "os.h"

enum {
    LINE_MOST = 4096, /* longer lines are skipped */
    FOLDER_MOST = 1024,
    NAME_MOST = 32, /* the longest name of a file in a folder */
    LEVELS_MOST = 64, /* nested groups that are read */
    LINES_MOST = 1 << 16, /* lines of a file that are read */
};

/* -- lines ----------------------------------------------------------------------------------------------------- */

/* Returns the text behind the n-th next `stop`, or NULL if the text ends before. */
static const char *behind(const char *text, char stop, int n) {
    for (; text != NULL && n > 0; n--) {
        while (*text != '\0' && *text != stop) {
            text++;
        }
        text = *text == stop ? text + 1 : NULL;
    }
    return text;
}

static bool begins(const char *text, const char *start) {
    while (*start != '\0' && *text == *start) {
        text++;
        start++;
    }
    return *start == '\0';
}

/* Returns whether a list with commas, up to `stop` or its end, has the word. */
static bool has_word(const char *list, const char *word, char stop) {
    size_t length = 0;
    while (length < NAME_MOST && word[length] != '\0') { /* bounded: the compiler would call strlen */
        length++;
    }
    for (const char *at = list;; at++) {
        bool here = begins(at, word) && (at[length] == ',' || at[length] == stop || at[length] == '\0');
        if (here) {
            return true;
        }
        while (*at != ',' && *at != stop && *at != '\0') {
            at++;
        }
        if (*at != ',') {
            return false;
        }
    }
}

const char *control_group_of_line(const char *line, enum control_group_version version) {
    const char *list = behind(line, ':', 1), *group = behind(line, ':', 2);
    if (group == NULL || *group != '/') {
        return NULL;
    }
    bool found = version == CONTROL_GROUP_V2 ? begins(line, "0::") : has_word(list, "memory", ':');
    return found ? group : NULL;
}

/* Copies a field up to a space, in which some characters stand as three octal digits; returns its length, `room` where it is longer than that. */
static size_t copy_field(const char *field, char *to, size_t room) {
    size_t length = 0;
    while (*field != ' ' && *field != '\0' && length < room) {
        bool octal = field[0] == '\\' && field[1] >= '0' && field[1] <= '3' && field[2] >= '0' && field[2] <= '7' &&
                     field[3] >= '0' && field[3] <= '7';
        int code = octal ? (field[1] - '0') * 64 + (field[2] - '0') * 8 + field[3] - '0' : *field;
        to[length++] = (char)code;
        field += octal ? 4 : 1;
    }
    return length;
}

/* Returns the part of the group below the root of the mount, or NULL if the mount does not show the group. */
static const char *below_root(const char *group, const char *root, size_t length) {
    length -= length == 1; /* "/" */
    for (size_t i = 0; i < length; i++) {
        if (group[i] != root[i]) {
            return NULL;
        }
    }
    return group[length] == '/' || group[length] == '\0' ? group + length : NULL;
}

size_t control_group_folder(const char *line, enum control_group_version version, const char *group, char *folder,
                            size_t room) {
    const char *root = behind(line, ' ', 3), *point = behind(line, ' ', 4), *type = behind(line, ' ', 6);
    while (type != NULL && !begins(type, "- ")) { /* optional fields */
        type = behind(type, ' ', 1);
    }
    type = behind(type, ' ', 1);
    const char *options = behind(type, ' ', 2);
    if (options == NULL ||
        (version == CONTROL_GROUP_V2 ? !begins(type, "cgroup2 ")
                                     : !begins(type, "cgroup ") || !has_word(options, "memory", '\0'))) {
        return 0;
    }
    size_t length = copy_field(root, folder, room);
    const char *below = length == room ? NULL : below_root(group, folder, length);
    if (below == NULL ||
        (begins(below, "/..") && (below[3] == '/' || below[3] == '\0'))) { /* outside of the process's namespace */
        return 0;
    }
    size_t mount = copy_field(point, folder, room);
    length = mount;
    while (*below != '\0' && length < room) {
        folder[length++] = *below++;
    }
    if (length == room || mount == 0) {
        return 0;
    }
    length -= folder[length - 1] == '/' && length > mount;
    folder[length] = '\0';
    return mount;
}

size_t control_group_number(const char *text) {
    static const size_t least_none = (size_t)1 << 60; /* version 1 writes the largest number of whole pages */
    size_t number = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9' && number < least_none; at++) {
        number = number * 10 + (size_t)(*at - '0');
    }
    return at == text || number >= least_none ? CONTROL_GROUP_NONE : bits_max(number, 1);
}

/* -- files ----------------------------------------------------------------------------------------------------- */

/* Static: a thread's stack may be small. */
struct reading {
    char line[LINE_MOST];
    char group[2][FOLDER_MOST];
    char folder[FOLDER_MOST + NAME_MOST];
    long file;
    size_t from, to; /* of `line`, what was read and not yet looked at */
};
struct reading cgroup_text LAID_LAST;

static bool open_lines(const char *name) {
    cgroup_text.file = os_open(name);
    cgroup_text.from = cgroup_text.to = 0;
    return cgroup_text.file >= 0;
}

/* Returns the next line without its end, or NULL behind the last. A line that is too long is returned empty. */
static const char *next_line(void) {
    bool is_long = false;
    for (size_t at = cgroup_text.from;; at++) {
        if (at == cgroup_text.to && cgroup_text.from > 0) { /* move the line's beginning to the front */
            for (size_t i = cgroup_text.from; i < cgroup_text.to; i++) {
                cgroup_text.line[i - cgroup_text.from] = cgroup_text.line[i];
            }
            at -= cgroup_text.from;
            cgroup_text.to -= cgroup_text.from;
            cgroup_text.from = 0;
        }
        if (at == cgroup_text.to) {
            if (cgroup_text.to == LINE_MOST) {
                is_long = true;
                at = cgroup_text.to = 0;
            }
            long length = os_read(cgroup_text.file, cgroup_text.line + at, LINE_MOST - at);
            if (length <= 0) {
                return NULL; /* files of the kernel end with a line's end */
            }
            cgroup_text.to += (size_t)length;
        }
        if (cgroup_text.line[at] == '\n') {
            const char *line = cgroup_text.line + cgroup_text.from;
            cgroup_text.line[at] = '\0';
            cgroup_text.from = at + 1;
            return is_long ? "" : line;
        }
    }
}

/* Copies a text; keeps an empty one, and returns false, if it does not fit. */
static bool keep(char *to, const char *text) {
    size_t length = 0;
    while (text[length] != '\0' && length < FOLDER_MOST) {
        to[length] = text[length];
        length++;
    }
    if (length < FOLDER_MOST) {
        to[length] = '\0';
    } else {
        to[0] = '\0';
    }
    return length < FOLDER_MOST;
}

/* Reads the process's group of each version, or an empty text. Returns false if the file cannot be opened. */
static bool read_groups(void) {
    cgroup_text.group[CONTROL_GROUP_V2][0] = cgroup_text.group[CONTROL_GROUP_V1][0] = '\0';
    if (!open_lines("/proc/self/cgroup")) {
        return false;
    }
    const char *line;
    for (int lines = 0; lines < LINES_MOST && (line = next_line()) != NULL; lines++) {
        for (int version = CONTROL_GROUP_V2; version <= CONTROL_GROUP_V1; version++) {
            const char *group = control_group_of_line(line, (enum control_group_version)version);
            if (group != NULL) {
                (void)keep(cgroup_text.group[version], group);
            }
        }
    }
    os_close(cgroup_text.file);
    return true;
}

/* Returns the number in a file of the folder, whose name has `length` bytes. */
static size_t number_in(size_t length, const char *name) {
    size_t at = 0;
    for (; name[at] != '\0'; at++) {
        cgroup_text.folder[length + at] = name[at];
    }
    cgroup_text.folder[length + at] = '\0';
    if (!open_lines(cgroup_text.folder)) {
        return CONTROL_GROUP_NONE;
    }
    const char *line = next_line();
    os_close(cgroup_text.file);
    return line == NULL ? CONTROL_GROUP_NONE : control_group_number(line);
}

/* Returns the least limit of the folder and of those above it, up to the mount. */
static size_t least_of_levels(enum control_group_version version, size_t mount) {
    size_t length = 0, least = CONTROL_GROUP_NONE;
    while (length < FOLDER_MOST && cgroup_text.folder[length] != '\0') {
        length++;
    }
    for (int levels = 0; length >= mount && levels < LEVELS_MOST; levels++) {
        if (version == CONTROL_GROUP_V2) {
            least = bits_min(least, number_in(length, "/memory.max"));
            least = bits_min(least, number_in(length, "/memory.high"));
        } else {
            least = bits_min(least, number_in(length, "/memory.limit_in_bytes"));
        }
        if (length == mount) {
            break;
        }
        while (length > mount && cgroup_text.folder[length - 1] != '/') {
            length--;
        }
        length -= length > mount;
    }
    return least;
}

/* Returns the least limit that the first mount with the group shows. One file is open at a time. */
static size_t least_of_group(enum control_group_version version) {
    const char *group = cgroup_text.group[version], *line;
    size_t mount = 0;
    if (group[0] == '\0') {
        return CONTROL_GROUP_NONE;
    }
    if (!open_lines("/proc/self/mountinfo")) {
        return CONTROL_GROUP_UNKNOWN;
    }
    for (int lines = 0; mount == 0 && lines < LINES_MOST && (line = next_line()) != NULL; lines++) {
        mount = control_group_folder(line, version, group, cgroup_text.folder, FOLDER_MOST);
    }
    os_close(cgroup_text.file);
    return mount == 0 ? CONTROL_GROUP_UNKNOWN : least_of_levels(version, mount); /* as in a chroot */
}

size_t control_group_limit(void) {
    if (!read_groups()) {
        return CONTROL_GROUP_UNKNOWN;
    }
    size_t newer = least_of_group(CONTROL_GROUP_V2), older = least_of_group(CONTROL_GROUP_V1);
    if (newer == CONTROL_GROUP_UNKNOWN || older == CONTROL_GROUP_UNKNOWN) {
        size_t known = bits_max(newer, older);
        return known == CONTROL_GROUP_NONE ? CONTROL_GROUP_UNKNOWN : known;
    }
    return bits_min(newer, older);
}
