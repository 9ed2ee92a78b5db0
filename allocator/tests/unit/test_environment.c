/* FREESTONE_OPTIONS takes effect however a program comes by the library: preloaded, linked, or all of it static, where
 * nothing but malloc itself draws the archive's members in. */
#include <stdlib.h>

#include "scenario.h"

static const char *self;

static void run_self(const void *options) {
    EXPECT(setenv("FREESTONE_OPTIONS", options, 1) == 0, "the environment is full");
    execl(self, self, "run", (char *)NULL);
    EXPECT(false, "%s cannot be run", self);
}

static void expect_says(const char *options, const char *wanted) {
    char output[1024];
    int status = scenario_child(run_self, options, output, sizeof output);
    EXPECT(status == 0 && strcmp(output, wanted) == 0, "under '%s': wait status %#x, it says '%s' instead of '%s'",
           options, (unsigned)status, output, wanted);
}

int main(int arguments, char **argument) {
    void *volatile block = malloc(100);
    EXPECT(block != NULL, "no memory");
    free(block);
    if (arguments > 1) {
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
    expect_says("two\nlines", "freestone: FREESTONE_OPTIONS: 'two?lines' is not key=value; ignored\n");
    return 0;
}
