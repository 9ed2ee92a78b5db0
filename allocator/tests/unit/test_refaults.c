/* How long slabs rest: by programs that take what was purged again, and programs that do not. */
#include "refaults.h"

#include "expect.h"
#include "pattern.h"

enum { MIB = 1 << 20, LOOK_MS = 333, PROGRAMS = 2000 };

/* What the keeper knows: the clock, how much was ever taken again. */
struct play {
    struct refaults refaults;
    uint64_t now;
    size_t reused;
};

static void look(struct play *play, size_t purged) {
    play->now = play->now > play->refaults.due ? play->now : play->refaults.due;
    refaults_note(&play->refaults, play->now, purged, play->reused);
    play->now += LOOK_MS;
}

static void at_first(void) {
    struct play play = {.now = 12345};
    EXPECT(refaults_are_due(&play.refaults, 0, UINT32_MAX), "the first look has to wait");
    for (int i = 0; i < 100; i++) {
        EXPECT(refaults_are_due(&play.refaults, play.now, 0), "look %d of a program that purges nothing has to wait",
               i);
        look(&play, 0);
    }
    EXPECT(play.refaults.patience == 1, "patience %u without a reason", play.refaults.patience);
}

/* All is taken again each time: in two purges slabs rest as long as they may. Then the program sleeps, and they rest shorter again. */
static void phases_then_sleep(void) {
    struct play play = {.now = 1};
    for (int phase = 0; phase < 10; phase++) {
        look(&play, 60 * (size_t)MIB);
        play.reused += 60 * (size_t)MIB;
        look(&play, 0);
        EXPECT(phase != 1 || play.refaults.patience == REFAULTS_LONGEST, "patience %u after two purges in vain",
               play.refaults.patience);
    }
    EXPECT(play.refaults.patience == REFAULTS_LONGEST, "patience %u", play.refaults.patience);
    for (int sleep = 0; sleep < 10; sleep++) {
        look(&play, 2 * (size_t)MIB);
        for (int i = 0; i < REFAULTS_LOOKS; i++) {
            look(&play, 0);
        }
    }
    EXPECT(play.refaults.patience == 1, "patience %u after a long sleep", play.refaults.patience);
}

static void little_tells_nothing(void) {
    struct play play = {.now = 1};
    for (int i = 0; i < 100; i++) {
        look(&play, REFAULTS_TRIAL - 1);
        play.reused += REFAULTS_TRIAL - 1;
        look(&play, 0);
    }
    EXPECT(play.refaults.patience == 1, "patience %u for little", play.refaults.patience);
}

/* Longer or not is asked at the time, and not at the look before: a program may change its mind. */
static void kept_longer(void) {
    struct play play = {.now = 1};
    refaults_note(&play.refaults, 1, 0, 0);
    EXPECT(!refaults_are_due(&play.refaults, 59000, 59000) && refaults_are_due(&play.refaults, 60000, 59000),
           "due at %llu", (unsigned long long)play.refaults.due);
    EXPECT(refaults_are_due(&play.refaults, 59000, 0), "due at %llu", (unsigned long long)play.refaults.due);
}

/* Whatever comes: the rest is within its bounds, and a trial ends. */
static void any_program(void) {
    uint64_t random = 7;
    for (int program = 0; program < PROGRAMS; program++) {
        struct play play = {.now = pattern_below(&random, 1000000)};
        for (int i = 0; i < 60; i++) {
            size_t purged = pattern_below(&random, 3) == 0 ? pattern_below(&random, 8 * (size_t)MIB) : 0;
            look(&play, purged);
            play.reused += pattern_below(&random, 4) == 0 ? pattern_below(&random, 8 * (size_t)MIB) : 0;
            const struct refaults *refaults = &play.refaults;
            EXPECT(refaults->patience >= 1 && refaults->patience <= REFAULTS_LONGEST, "patience %u",
                   refaults->patience);
            uint64_t rest = refaults->due - (play.now - LOOK_MS);
            EXPECT(rest > REFAULTS_REST_MS / 4 && rest <= (uint64_t)REFAULTS_REST_MS * REFAULTS_LONGEST,
                   "a rest of %llu ms", (unsigned long long)rest);
            EXPECT(refaults->looks <= REFAULTS_LOOKS, "a trial of %u looks", refaults->looks);
        }
    }
}

int main(void) {
    at_first();
    phases_then_sleep();
    little_tells_nothing();
    kept_longer();
    any_program();
    return 0;
}
