/* The library's constructor opens its read-only pages and writes to them. A thread that another constructor has started may call an operator meanwhile:
 * what is kept of it lies there too. Here that call is made each time, as the pages are opened. It leaves them as they are. */
#include "cxx_operators.h"
#include "elf_objects.h"
#include "expect.h"
#include "libc.h"
#include "os.h"
#include "scenario.h"

bool __real_os_seal(void *const *places, size_t count, bool sealed);
bool __wrap_os_seal(void *const *places, size_t count, bool sealed);
void __wrap_elf_search_before(struct elf_search *search);

static char program_operator, own_operator;
static void *seen_at_start;
static unsigned opened, closed, searches, opened_at_start, closed_at_start;
static bool is_meanwhile;

void *cxx_own(enum cxx_operator which) {
    (void)which;
    return &own_operator;
}

/* The program has replaced the first. */
void __wrap_elf_search_before(struct elf_search *search) {
    searches++;
    search->found[CXX_NEW] = &program_operator;
}

bool __wrap_os_seal(void *const *places, size_t count, bool sealed) {
    opened += !sealed;
    closed += sealed;
    if (!sealed && opened == 1) {
        is_meanwhile = true;
        seen_at_start = cxx_in_force(CXX_NEW);
        is_meanwhile = false;
        opened_at_start = opened;
        closed_at_start = closed;
    }
    return is_meanwhile || __real_os_seal(places, count, sealed);
}

static void the_constructor_alone_opens_and_closes_its_pages(void) {
    EXPECT(opened_at_start == 1 && closed_at_start == 0, "they were opened %u times and closed %u times",
           opened_at_start, closed_at_start);
    EXPECT(opened == 1 && closed == 1, "the constructor opened them %u times and closed them %u times", opened, closed);
    EXPECT(seen_at_start == &program_operator, "another operator than the program's was found");
}

static void an_operator_is_kept_after_the_constructor(void) {
    EXPECT(cxx_in_force(CXX_NEW) == &program_operator, "another operator than the program's is in force");
    EXPECT(opened == 2 && closed == 2, "it was not kept: %u times opened, %u times closed", opened, closed);
    unsigned before = searches;
    EXPECT(cxx_in_force(CXX_NEW) == &program_operator, "another operator than the one kept");
    EXPECT(cxx_in_force(CXX_DELETE) == &own_operator, "an operator is not the library's");
    EXPECT(searches == before, "it was looked for again");
}

static const struct scenario scenarios[] = {
    {"the_constructor_alone_opens_and_closes_its_pages", the_constructor_alone_opens_and_closes_its_pages},
    {"an_operator_is_kept_after_the_constructor", an_operator_is_kept_after_the_constructor},
};

SCENARIO_MAIN(scenarios)
