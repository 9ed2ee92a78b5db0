/* FREESTONE_OPTIONS: the parser against a model of the language, on texts made and texts marred. */
#include "options.h"

#include <errno.h>
#include <sys/mman.h>

#include "expect.h"
#include "pattern.h"

enum { TEXTS = 50000, TEXT_MOST = 200 };

static const struct {
    const char *name;
    uint64_t most;
    uint32_t at_first;
} knobs[OPTION_COUNT] = {
    [OPTION_RETAIN_MIB] = {"retain_mib", 16777216, 128},
    [OPTION_RETAIN_PERCENT] = {"retain_percent", 1000, 50},
    [OPTION_RETAIN_MS] = {"retain_ms", 86400000, 1000},
    [OPTION_HEAPS] = {"heaps", 1024, 0},
    [OPTION_POPULATE_KIB] = {"populate_kib", 1048576, 0},
    [OPTION_HUGE_FROM_MIB] = {"huge_from_mib", 16777216, 200},
    [OPTION_HUGE_SLOW_US] = {"huge_slow_us", 1000000, 800},
    [OPTION_RESERVE_GIB] = {"reserve_gib", 1024, 0},
    [OPTION_LIMIT_MIB] = {"limit_mib", 16777216, 0},
    [OPTION_KEEPER] = {"keeper", 2, 1},
    [OPTION_IDENTIFY] = {"identify", 1, 0},
    [OPTION_HARDEN] = {"harden", 1, 0},
    [OPTION_QUARANTINE_KIB] = {"quarantine_kib", 1024, 16},
    [OPTION_CANARIES] = {"canaries", 1, 1},
    [OPTION_CLEAR] = {"clear", 1, 1},
    [OPTION_GUARD_PAGES] = {"guard_pages", 1, 1},
    [OPTION_GUARD_SMALL] = {"guard_small", 1, 1},
    [OPTION_KINDS] = {"kinds", 1, 1},
    [OPTION_RANDOM] = {"random", 1, 1},
    [OPTION_GUARD] = {"guard", 1000000000, 0},
    [OPTION_GUARD_RECOVER] = {"guard_recover", 1, 0},
    [OPTION_DEEPBIND] = {"deepbind", 1, 0},
};

static int screen, warnings_file;

/* Reads the options; returns the number of warnings that cost, their text in `lines`. */
static unsigned warnings_of(const char *text, char *lines, size_t size) {
    dup2(warnings_file, STDERR_FILENO);
    options_read(text);
    dup2(screen, STDERR_FILENO); /* what the test itself has to say */
    off_t length = lseek(warnings_file, 0, SEEK_END);
    EXPECT(length >= 0 && (size_t)length < size, "%lld bytes of warnings", (long long)length);
    EXPECT(pread(warnings_file, lines, (size_t)length, 0) == length, "the warnings cannot be read back");
    lines[length] = '\0';
    EXPECT(ftruncate(warnings_file, 0) == 0 && lseek(warnings_file, 0, SEEK_SET) == 0, "the file stays");
    unsigned count = 0;
    for (const char *line = lines; *line != '\0'; line = strchr(line, '\n') + 1) {
        EXPECT(strncmp(line, "freestone: FREESTONE_OPTIONS: '", 31) == 0, "a line of its own kind: %s", line);
        EXPECT(strchr(line, '\n') != NULL, "a line without an end: %s", line);
        count++;
    }
    return count;
}

/* What one part of the text means to the model: true, and the change, or false for a warning. */
static bool model_part(const char *part, uint32_t *values) {
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        size_t name = strlen(knobs[i].name);
        if (strncmp(part, knobs[i].name, name) != 0 || part[name] != '=') {
            continue;
        }
        const char *number = part + name + 1;
        if (*number == '\0' || strspn(number, "0123456789") != strlen(number)) {
            return false;
        }
        errno = 0;
        unsigned long long value = strtoull(number, NULL, 10);
        if (errno == ERANGE || value > knobs[i].most) {
            return false;
        }
        values[i] = (uint32_t)value;
        return true;
    }
    return false;
}

static unsigned model(const char *text, uint32_t *values) {
    char copy[TEXT_MOST + 1];
    unsigned count = 0;
    strcpy(copy, text);
    for (char *rest = copy, *part; (part = strsep(&rest, ",")) != NULL;) {
        if (*part != '\0' && !model_part(part, values)) {
            count++;
        }
    }
    return count;
}

static void check(const char *text) {
    char lines[64 * 1024];
    uint32_t wanted[OPTION_COUNT];
    for (int i = 0; i < OPTION_COUNT; i++) {
        wanted[i] = option_value((enum option)i);
    }
    unsigned warned = model(text, wanted);
    unsigned seen = warnings_of(text, lines, sizeof lines);
    EXPECT(seen == warned, "'%s': %u warnings instead of %u: %s", text, seen, warned, lines);
    for (int i = 0; i < OPTION_COUNT; i++) {
        EXPECT(option_value((enum option)i) == wanted[i], "'%s': %s is %u instead of %u", text, knobs[i].name,
               option_value((enum option)i), wanted[i]);
    }
}

static size_t append(char *text, size_t length, const char *more) {
    size_t fits = strlen(more) < TEXT_MOST - length ? strlen(more) : TEXT_MOST - length;
    memcpy(text + length, more, fits);
    text[length + fits] = '\0';
    return length + fits;
}

/* Mostly what a user writes, then struck by a few changes of single characters. */
static void make(char *text, uint64_t *random) {
    static const char *const scraps[] = {"=", ",", "==", ",,", " ", "-1", "+1", "0x10", "1e3", "true", "Heaps", "=,"};
    size_t length = 0;
    text[0] = '\0';
    for (size_t parts = pattern_below(random, 6); parts > 0; parts--) {
        char number[32];
        uint64_t value = pattern_random(random) >> pattern_below(random, 64);
        snprintf(number, sizeof number, "%llu", (unsigned long long)value);
        length = append(text, length, knobs[pattern_below(random, OPTION_COUNT)].name);
        length = append(text, length, "=");
        length = append(text, length, number);
        length = append(text, length, parts > 1 ? "," : "");
        if (pattern_below(random, 8) == 0) {
            length = append(text, length, scraps[pattern_below(random, sizeof scraps / sizeof *scraps)]);
        }
    }
    for (size_t strikes = pattern_below(random, 3); length > 0 && strikes > 0; strikes--) {
        text[pattern_below(random, length)] = (char)(1 + pattern_below(random, 255));
    }
}

int main(void) {
    char lines[4096];
    warnings_file = memfd_create("warnings", 0);
    EXPECT(warnings_file >= 0, "no file in memory");
    screen = dup(STDERR_FILENO);
    for (int i = 0; i < OPTION_COUNT; i++) {
        EXPECT(option_value((enum option)i) == knobs[i].at_first, "%s is %u at first", knobs[i].name,
               option_value((enum option)i));
    }

    static const char *const corners[] = {
        "",
        ",",
        ",,,",
        "=",
        "=1",
        "heaps",
        "heaps=",
        "heaps=0",
        "heaps=1024",
        "heaps=1025",
        "identify=2",
        "heaps=00000000000000000000000000000000000000007",
        "retain_ms=18446744073709551616",
        "retain_ms=99999999999999999999999999",
        "retain_mib=16777216",
        "retain_mib=16777217",
        "retain_percent=1000",
        "retain_percent=1001",
        "heap=1",
        "heapss=1",
        "HEAPS=1",
        " heaps=1",
        "heaps=1 ",
        "heaps=1, retain_ms=5",
        "heaps=1 , retain_ms=5,heaps=2",
        "heaps = 1",
        " ",
        "heaps=1=1",
        "heaps=-0",
        "heaps=1,heaps=2,heaps=x",
        "heaps=3,,retain_ms=5,",
    };
    for (size_t i = 0; i < sizeof corners / sizeof *corners; i++) {
        check(corners[i]);
    }

    /* The five things it can say, word for word; a part longer than a line is cut. */
    EXPECT(
        warnings_of("heaps,heaps=x,guard=autox,bogus=1, heaps=2", lines, sizeof lines) == 5 &&
            strstr(lines, "'heaps' is not key=value; ignored (docs/reference/options.md)\n") != NULL &&
            strstr(
                lines,
                "'heaps=x' has a value that is not a number from 0 to 1024; ignored (docs/reference/options.md)\n") !=
                NULL &&
            strstr(lines, "'guard=autox' has a value that is not a number from 0 to 1000000000, nor auto; ignored "
                          "(docs/reference/options.md)\n") != NULL &&
            strstr(lines, "' heaps=2' holds a space, and there are none between options; ignored "
                          "(docs/reference/options.md)\n") != NULL &&
            strstr(lines, "'bogus=1' is not an option; ignored (docs/reference/options.md lists them)\n") != NULL,
        "it says %s", lines);
    char endless[3000];
    memset(endless, 'a', sizeof endless - 1);
    endless[sizeof endless - 1] = '\0';
    EXPECT(warnings_of(endless, lines, sizeof lines) == 1 && strlen(lines) < 300, "it says %s", lines);

    uint64_t random = 2;
    for (int round = 0; round < TEXTS; round++) {
        char text[TEXT_MOST + 1];
        make(text, &random);
        check(text);
    }
    return 0;
}
