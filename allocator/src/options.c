#include "options.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "direct_binding.h"
#include "elf_objects.h"
#include "message.h"

uint32_t options[OPTION_COUNT] = {
    [OPTION_RETAIN_MIB] = RETAIN_DEFAULT_MIB,
    [OPTION_RETAIN_PERCENT] = RETAIN_DEFAULT_PERCENT,
    [OPTION_RETAIN_MS] = RETAIN_DEFAULT_MS,
    [OPTION_HEAPS] = 0,
    [OPTION_HUGE_FROM_MIB] = 200,
    [OPTION_HUGE_SLOW_US] = 800,
    [OPTION_POPULATE_KIB] = 0,
    [OPTION_RESERVE_GIB] = 0,
    [OPTION_KEEPER] = 1,
    [OPTION_IDENTIFY] = 0,
    [OPTION_HARDEN] = 0,
    [OPTION_QUARANTINE_KIB] = 16,
    [OPTION_CANARIES] = 1,
    [OPTION_CLEAR] = 1,
    [OPTION_GUARD_PAGES] = 1,
    [OPTION_GUARD_SMALL] = 1,
    [OPTION_KINDS] = 1,
    [OPTION_RANDOM] = 1,
};

uint32_t options_modes = MODES_UNREAD;

static const struct {
    const char *name;
    uint32_t most;
} known[OPTION_COUNT] = {
    [OPTION_RETAIN_MIB] = {"retain_mib", RETAIN_ALL_MIB},
    [OPTION_RETAIN_PERCENT] = {"retain_percent", 1000},
    [OPTION_RETAIN_MS] = {"retain_ms", 1000u * 86400},
    [OPTION_HEAPS] = {"heaps", 1024},
    [OPTION_HUGE_FROM_MIB] = {"huge_from_mib", HUGE_NEVER},
    [OPTION_HUGE_SLOW_US] = {"huge_slow_us", 1000u * 1000},
    [OPTION_POPULATE_KIB] = {"populate_kib", 1u << 20},
    [OPTION_RESERVE_GIB] = {"reserve_gib", 1024},
    [OPTION_LIMIT_MIB] = {"limit_mib", LIMIT_MOST_MIB},
    [OPTION_KEEPER] = {"keeper", KEEPER_ALWAYS},
    [OPTION_IDENTIFY] = {"identify", 1},
    [OPTION_HARDEN] = {"harden", 1},
    [OPTION_QUARANTINE_KIB] = {"quarantine_kib", 1024},
    [OPTION_CANARIES] = {"canaries", 1},
    [OPTION_CLEAR] = {"clear", 1},
    [OPTION_GUARD_PAGES] = {"guard_pages", 1},
    [OPTION_GUARD_SMALL] = {"guard_small", 1},
    [OPTION_KINDS] = {"kinds", 1},
    [OPTION_RANDOM] = {"random", 1},
    [OPTION_GUARD] = {"guard", 1000u * 1000 * 1000},
    [OPTION_GUARD_RECOVER] = {"guard_recover", 1},
    [OPTION_DEEPBIND] = {"deepbind", 1},
};

/* Weak: the program's, if it has any (freestone.h). By itself a reference to it is none to the library that the program defines it in. */
extern const char freestone_default_options[] __attribute__((weak, visibility("default")));

/* What is being read, for the lines about it; and what the program has chosen for itself, which nobody weakens. Of the first thread. */
static const char *source = "FREESTONE_OPTIONS";
static bool chose_harden, chose_guard;

#define LOOK_THERE "; ignored (docs/reference/options.md)"

/* Begins the line about a part; the caller says why. */
static struct message about(const char *part, size_t length) {
    struct message message = {0};
    message_text(&message, source);
    message_text(&message, ": '");
    for (size_t i = 0; i < bits_min(length, 60); i++) {
        /* whatever it holds, it stays one line */
        bool printable = part[i] >= ' ' && part[i] <= '~';
        char one[2] = {'?', '\0'};
        if (printable) {
            one[0] = part[i];
        }
        message_text(&message, one);
    }
    message_text(&message, "' ");
    return message;
}

static void warn(const char *part, size_t length, const char *why) {
    struct message message = about(part, length);
    message_text(&message, why);
    message_print(&message);
}

static void warn_of_range(const char *part, size_t length, enum option option) {
    struct message message = about(part, length);
    message_text(&message, "has a value that is not a number from 0 to ");
    message_number(&message, known[option].most);
    message_text(&message, option == OPTION_GUARD ? ", nor auto" : "");
    message_text(&message, LOOK_THERE);
    message_print(&message);
}

/* True when text[0..length) is a number up to `most`. */
static bool read_number(const char *text, size_t length, uint32_t most, uint32_t *value) {
    uint64_t number = 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return false;
        }
        number = number * 10 + (uint64_t)(text[i] - '0');
        if (number > most) {
            return false;
        }
    }
    *value = (uint32_t)number;
    return length > 0;
}

/* How far it is to the first `stop`, or to the end. Each function of libc's that is called here would be looked up in every
 * program that starts. */
static size_t length_to(const char *text, size_t length, char stop) {
    size_t at = 0;
    while (at < length && text[at] != '\0' && text[at] != stop) {
        at++;
    }
    return at;
}

static bool is_name(const char *name, const char *text, size_t length) {
    size_t at = 0;
    while (at < length && name[at] != '\0' && name[at] == text[at]) {
        at++;
    }
    return at == length && name[at] == '\0';
}

/* Whether the value would leave something out that the program has chosen. Of guard=N a smaller N guards more, but 0 guards nothing. */
static bool is_weaker(enum option option, uint32_t value) {
    uint32_t now = option_value(option);
    switch (option) {
    case OPTION_HARDEN:
    case OPTION_QUARANTINE_KIB:
    case OPTION_CANARIES:
    case OPTION_CLEAR:
    case OPTION_GUARD_PAGES:
    case OPTION_GUARD_SMALL:
    case OPTION_RANDOM:
        return chose_harden && value < now;
    case OPTION_KINDS:
        return (chose_harden || chose_guard) && value < now;
    case OPTION_GUARD:
        return chose_guard && now != 0 && (value == 0 || value > now);
    case OPTION_GUARD_RECOVER:
        return chose_guard && value > now;
    default:
        return false;
    }
}

static void choose(enum option option, uint32_t value, const char *part, size_t length) {
    if (is_weaker(option, value)) {
        warn(part, length, "is weaker than what the program has chosen" LOOK_THERE);
    } else {
        option_set(option, value);
    }
}

static void read_part(const char *part, size_t length) {
    if (length_to(part, length, ' ') < length) {
        warn(part, length, "holds a space, and there are none between options" LOOK_THERE);
        return;
    }
    size_t key = length_to(part, length, '=');
    if (key == length) {
        warn(part, length, "is not key=value" LOOK_THERE);
        return;
    }
    for (unsigned i = 0; i < OPTION_COUNT; i++) {
        if (is_name(known[i].name, part, key)) {
            uint32_t value;
            if (i == OPTION_GUARD && is_name("auto", part + key + 1, length - key - 1)) {
                choose(OPTION_GUARD, GUARD_AUTO, part, length);
            } else if (read_number(part + key + 1, length - key - 1, known[i].most, &value)) {
                choose((enum option)i, value, part, length);
            } else {
                warn_of_range(part, length, (enum option)i);
            }
            return;
        }
    }
    warn(part, length, "is not an option; ignored (docs/reference/options.md lists them)");
}

static bool starts_with(const char *text, const char *start) {
    while (*start != '\0' && *text == *start) {
        text++;
        start++;
    }
    return *start == '\0';
}

/* Most programs have none: libc's own look for it would bring 64 KiB of its code into each of them. */
static bool is_in_environment(const char *start) {
    for (char **each = environ; each != NULL && *each != NULL; each++) {
        if (starts_with(*each, start)) {
            return true;
        }
    }
    return false;
}

/* Another preload or the program itself may stand before the library, and what was loaded late serves nobody. */
static void identify(void) {
    const char *other = elf_file_before_own("malloc");
    struct message message = {0};
    message_text(&message, FREESTONE_BUILD_VERSION);
    if (other == NULL) {
        message_text(&message, " serves malloc");
    } else {
        message_text(&message, " is loaded, but malloc is ");
        message_text(&message, *other == '\0' ? "the program's own" : "that of ");
        message_text(&message, other);
    }
    message_print(&message);
}

/* Early among constructors: a program that does not allocate is told all the same that the library is in force. */
__attribute__((constructor(101))) void options_read_environment(void) {
    static _Atomic bool done; /* relaxed: only who sets it first reads */
    if (atomic_exchange_explicit(&done, true, memory_order_relaxed)) {
        return;
    }
    if (freestone_default_options != NULL) {
        source = "freestone_default_options";
        options_read(freestone_default_options);
        source = "FREESTONE_OPTIONS";
        chose_harden = option_value(OPTION_HARDEN) != 0;
        chose_guard = option_value(OPTION_GUARD) != 0;
    }
    const char *text = is_in_environment("FREESTONE_OPTIONS=") ? DIRECT(secure_getenv)("FREESTONE_OPTIONS") : NULL;
    if (text != NULL) {
        options_read(text);
    }
    /* Hardened, every block is looked after. */
    uint32_t chosen = option_value(OPTION_HARDEN) != 0  ? MODE_HARDENED
                      : option_value(OPTION_GUARD) != 0 ? MODE_GUARDED
                                                        : 0;
    __atomic_store_n(&options_modes, chosen, __ATOMIC_RELAXED);
    if (option_value(OPTION_IDENTIFY) != 0) {
        identify();
    }
}

static bool is_changeable(enum option option) {
    return option == OPTION_LIMIT_MIB || option == OPTION_RETAIN_MIB || option == OPTION_RETAIN_PERCENT ||
           option == OPTION_RETAIN_MS;
}

/* Whether the part can be understood; changes what it says if it is to be `done`. */
static bool change_part(const char *part, size_t length, bool done) {
    size_t key = length_to(part, length, '=');
    for (unsigned i = 0; i < OPTION_COUNT && key < length; i++) {
        uint32_t value = 0;
        if (is_changeable((enum option)i) && is_name(known[i].name, part, key)) {
            bool read = read_number(part + key + 1, length - key - 1, known[i].most, &value);
            if (read && done) {
                option_set((enum option)i, value);
            }
            return read;
        }
    }
    return false;
}

bool options_change(const char *text) {
    bool understood = true;
    for (int done = 0; done <= 1 && understood; done++) {
        for (const char *part = text; understood && *part != '\0';) {
            size_t length = length_to(part, SIZE_MAX, ',');
            understood = length == 0 || change_part(part, length, done == 1);
            part += length + (part[length] == ',');
        }
    }
    return understood;
}

void options_read(const char *text) {
    while (*text != '\0') {
        size_t length = length_to(text, SIZE_MAX, ',');
        if (length > 0) {
            read_part(text, length);
        }
        text += length;
        if (*text == ',') {
            text++;
        }
    }
}
