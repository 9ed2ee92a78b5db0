/* FREESTONE_OPTIONS takes effect however a program comes by the library: preloaded, linked, or all of it static, where
 * nothing but malloc itself draws the archive's members in. */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "scenario.h"

#define SECURE "secure\n"
#define PLAIN "plain\n"

static const char *self, *deed = "run"; /* or "rights": it says whether it has more than who starts it */

static void run_self(const void *options) {
    EXPECT(setenv("FREESTONE_OPTIONS", options, 1) == 0, "the environment is full");
    execl(self, self, deed, (char *)NULL);
    EXPECT(false, "%s cannot be run", self);
}

static void expect_says(const char *options, const char *wanted) {
    char output[1024];
    int status = scenario_child(run_self, options, output, sizeof output);
    EXPECT(status == 0 && strcmp(output, wanted) == 0, "under '%s': wait status %#x, it says '%s' instead of '%s'",
           options, (unsigned)status, output, wanted);
}

/* A program with more rights than its user reads nothing: whoever starts it may not choose what it does. Where root may make one, and it starts: a
 * dynamic one may not find the library. */
static void expect_deaf_with_rights(void) {
    enum { NOBODY = 65534 };
    static char program[] = "/tmp/test_environment-XXXXXX";
    char output[1024], block[1 << 16];
    int from = open(self, O_RDONLY | O_CLOEXEC), to = geteuid() == 0 ? mkostemp(program, O_CLOEXEC) : -1;
    if (to < 0) {
        return;
    }
    ssize_t length;
    while ((length = read(from, block, sizeof block)) > 0) {
        EXPECT(write(to, block, (size_t)length) == length, "no copy");
    }
    EXPECT(length == 0 && fchown(to, NOBODY, NOBODY) == 0 && fchmod(to, 04755) == 0,
           "no program with rights of another's");
    close(from);
    close(to);
    self = program;
    deed = "rights";
    int status = scenario_child(run_self, "identify=1", output, sizeof output);
    unlink(program);
    bool has_rights = status == 0 && strstr(output, PLAIN) == NULL;
    EXPECT(!has_rights || strcmp(output, SECURE) == 0, "with another's rights it says '%s'", output);
}

int main(int arguments, char **argument) {
    void *volatile block = malloc(100);
    EXPECT(block != NULL, "no memory");
    free(block);
    if (arguments > 1) {
        if (strcmp(argument[1], "rights") == 0) {
            fputs(getauxval(AT_SECURE) != 0 ? SECURE : PLAIN, stderr);
        }
        return 0;
    }
    self = argument[0];
    expect_says("", "");
    expect_says("retain_mib=1", "");
    expect_says("identify=1", "freestone: " VERSION " serves malloc\n");
    expect_says("identify=1,identify=0", "");
    expect_says(
        "bogus=1,identify=1",
        "freestone: FREESTONE_OPTIONS: 'bogus=1' is not an option; ignored (docs/reference/options.md lists them)\n"
        "freestone: " VERSION " serves malloc\n");
    expect_says("two\nlines",
                "freestone: FREESTONE_OPTIONS: 'two?lines' is not key=value; ignored (docs/reference/options.md)\n");
    expect_says("retain_mib=1, identify=1",
                "freestone: FREESTONE_OPTIONS: ' identify=1' holds a space, and there are none between options; "
                "ignored (docs/reference/options.md)\n");
    expect_deaf_with_rights();
    return 0;
}
