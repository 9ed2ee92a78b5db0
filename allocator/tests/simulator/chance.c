#include "chance.h"

#include <string.h>

#include "fibers.h"
#include "options.h"

static uint64_t state;

/* xorshift64* */
static uint32_t below(uint32_t end) {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (uint32_t)((state * UINT64_C(0x2545F4914F6CDD1D)) >> 33) % end;
}

static bool one_in(uint32_t times) { return times != 0 && below(times) == 0; }

enum { SIZES_MOST = 5 };

/* Classes that share lines, small ones, one with fresh blocks, those that are not kept, large spans, mappings. */
static const uint32_t sizes[] = {16,     40,     48,     64,     64,     200,    1024,   1024,  2000,
                                 4096,   4096,   6000,   8192,   10000,  16384,  40000,  65536, 98304,
                                 131072, 262144, 300000, 500000, 600000, 900000, 1500000};

static struct {
    uint32_t threads, blocks, sizes, size[SIZES_MOST];
    uint32_t interrupts;                              /* of 100 steps */
    uint32_t longest;                                 /* yields before an interruption */
    uint32_t forks, ends, keepers, idles, refusals, trims, rests, limits; /* one in so many steps; 0 never */
    uint32_t growing, phases;                         /* of 100 operations that take or give; one in so many steps */
    bool roles; /* what even threads take, odd ones give */
    uint32_t duels, births, visits, sleeps, stays, heirs, crowds, stalls; /* one in so many steps */
} character;

static bool held[BLOCKS_MOST];
static uint32_t away; /* a bit for each thread that has ended and does nothing for now */
static uint32_t holding;

static uint32_t sometimes(uint32_t often, uint32_t rare) { return one_in(3) ? 0 : often + below(rare - often); }

static void choose_character(void) {
    memset(&character, 0, sizeof character);
    character.threads = 1 + below(one_in(3) ? 6 : 3);
    character.blocks = 8u << below(7);
    character.sizes = 1 + below(SIZES_MOST);
    for (uint32_t i = 0; i < SIZES_MOST; i++) {
        character.size[i] = sizes[below(sizeof sizes / sizeof *sizes)];
    }
    character.interrupts = one_in(4) ? 0 : below(70);
    character.longest = 4u << below(8);
    character.forks = one_in(2) ? 0 : 60 + below(400);
    character.ends = sometimes(20, 200);
    character.keepers = sometimes(4, 60);
    character.idles = sometimes(8, 100);
    character.refusals = one_in(2) ? 0 : 30 + below(200);
    character.trims = sometimes(40, 300);
    character.rests = 20 + below(100);
    character.limits = one_in(3) ? 200 + below(200) : 0;
    character.growing = 50;
    character.phases = one_in(2) ? 200 : 30;
    character.roles = one_in(3);
    character.duels = one_in(2) ? 0 : 3 + below(30);
    character.sleeps = character.keepers == 0 || one_in(2) ? 0 : 50 + below(150);
    character.stays = character.keepers == 0 || one_in(2) ? 0 : 20 + below(60);
    character.heirs = one_in(2) ? 0 : 30 + below(60);
    character.stalls = one_in(4) ? 40 + below(200) : 0;
    character.crowds = one_in(2) ? 0 : 40 + below(100);
}

/* Forks and births all the time. */
static void be_a_forker(void) {
    character.threads = 2 + below(2);
    character.forks = 6 + below(20);
    character.ends = 6 + below(20);
    character.blocks = 8 + below(24);
    character.births = 6 + below(20);
}

/* The keeper all the time, beside few threads that need heaps as often as they can. */
static void be_kept(void) {
    character.threads = 1 + below(2);
    character.keepers = 2 + below(4);
    character.sizes = 1;
    character.blocks = 12 + below(40);
    character.stays = 10 + below(20);
    character.forks = character.trims = character.limits = character.refusals = 0;
    character.ends = one_in(2) ? 0 : 100;
    character.interrupts = below(30);
    character.longest = 40;
    character.duels = 4;
    character.visits = 6 + below(10);
    character.phases = 20;
    character.size[0] = one_in(2) ? 1024 : character.size[0];
}

static uint32_t any_block(bool wanted) {
    uint32_t start = below(character.blocks);
    for (uint32_t i = 0; i < character.blocks; i++) {
        uint32_t block = (start + i) % character.blocks;
        if (held[block] == wanted) {
            return block;
        }
    }
    return start;
}

static uint32_t any_size(void) {
    uint32_t size = character.size[below(character.sizes)];
    return one_in(4) ? 1 + below(size) : size;
}

/* One that is at work: the first always is. */
static uint32_t any_thread(void) {
    uint32_t thread = below(character.threads);
    return (away >> thread & 1) != 0 ? 0 : thread;
}

/* Takes a block, or gives one. */
static struct step trade(void) {
    bool takes = holding == 0 || (holding < character.blocks && below(100) < character.growing);
    struct step step = {.block = (uint16_t)any_block(!takes), .size = any_size()};
    if (!takes && one_in(6)) {
        step.verb = VERB_REALLOC;
        step.size = one_in(3) ? step.size * 2 : step.size;
        return step;
    }
    held[step.block] = takes;
    holding = takes ? holding + 1 : holding - 1;
    if (!takes) {
        step.verb = VERB_FREE;
        step.size = 0;
    } else if (one_in(5)) {
        step.verb = VERB_CALLOC;
    } else if (one_in(8)) {
        step.verb = VERB_ALIGNED;
        step.more = 16u << below(one_in(6) ? 18 : 9);
    } else {
        step.verb = VERB_MALLOC;
    }
    return step;
}

static struct step of_thread(uint32_t thread) {
    struct step step;
    if (one_in(character.forks)) {
        step = (struct step){.verb = one_in(4) ? VERB_FORK_UNANNOUNCED : VERB_FORK, .size = below(30)};
    } else if (one_in(character.ends)) {
        step = (struct step){.verb = VERB_END, .size = any_size()};
    } else if (one_in(character.trims)) {
        step = (struct step){.verb = VERB_TRIM};
    } else if (one_in(400)) {
        step = (struct step){.verb = VERB_FIGURES};
    } else {
        step = trade();
    }
    step.thread = (uint8_t)thread;
    if (character.roles && character.threads > 1 && !one_in(8)) {
        bool gives = step.verb == VERB_FREE;
        step.thread = (uint8_t)((thread & ~1u) + gives < character.threads ? (thread & ~1u) + gives : thread);
    }
    return step;
}

/* Somewhere on its way, or on that of what comes after it. */
static void interrupt(struct step *step) {
    step->grain = one_in(2) ? GRAIN_ALL : one_in(2) ? GRAIN_ORDERED : GRAIN_TOTAL;
    step->yields = 1 + below(step->grain == GRAIN_ALL ? character.longest : step->grain == GRAIN_ORDERED ? 40 : 10);
}

/* The world's, and the keeper's; a thread's where nothing else is due. */
static struct step any_step(uint32_t thread) {
    if (one_in(character.keepers)) {
        return (struct step){.verb = VERB_KEEPER};
    }
    if (one_in(character.idles)) {
        return (struct step){.verb = VERB_IDLE, .size = one_in(4) ? 400 + below(4000) : 1 + below(400)};
    }
    if (one_in(character.refusals)) {
        return (struct step){.verb = VERB_REFUSE, .size = one_in(4) ? 0 : 1 + below(12), .more = below(4)};
    }
    if (one_in(character.limits)) {
        return (struct step){.verb = VERB_LIMIT, .size = one_in(2) ? 0 : 2048u << below(5)};
    }
    if (one_in(character.rests)) {
        return (struct step){.verb = VERB_REST};
    }
    return of_thread(thread);
}

static void open_script(struct script *script) {
    script_add(script, (struct step){.verb = VERB_CPUS, .size = 1 + below(3)});
    if (one_in(8)) {
        script_add(script, (struct step){.verb = VERB_OLD});
    }
    if (one_in(2)) {
        script_add(script, (struct step){.verb = VERB_OPTION, .size = OPTION_RETAIN_MIB, .more = below(3)});
        script_add(script, (struct step){.verb = VERB_OPTION, .size = OPTION_RETAIN_MS, .more = 1 + below(500)});
    }
    if (one_in(3)) {
        script_add(script, (struct step){.verb = VERB_OPTION, .size = OPTION_HUGE_FROM_MIB, .more = below(3)});
    }
    if (one_in(6)) {
        script_add(script, (struct step){.verb = VERB_OPTION, .size = OPTION_KEEPER, .more = 0});
    }
    if (one_in(6)) {
        script_add(script, (struct step){.verb = VERB_OPTION, .size = OPTION_HEAPS, .more = 1 + below(3)});
    }
}

/* -- duels --------------------------------------------------------------------------------------------------- */

/* One who may be in another's way. */
static struct step duellist(uint32_t thread) {
    if (thread == character.threads) {
        return (struct step){.verb = VERB_KEEPER};
    }
    struct step step = of_thread(thread);
    step.thread = (uint8_t)thread;
    return step;
}

static void go_on(struct script *script, const struct step *who, bool to_its_end) {
    struct step more = {.verb = who->verb == VERB_KEEPER ? VERB_KEEPER : VERB_GO, .thread = who->thread};
    if (!to_its_end) {
        interrupt(&more);
    }
    script_add(script, more);
}

/* Rather early than late. */
static void interrupt_early(struct step *step) {
    bool keeper = step->verb == VERB_KEEPER;
    step->grain = keeper && !one_in(4) ? GRAIN_TOTAL : one_in(4) ? GRAIN_ALL : GRAIN_ORDERED;
    step->yields = 1 + below(step->grain == GRAIN_TOTAL ? 10 : 2u << below(6));
}

/* Two go at the same, each interrupted somewhere; then on, by turns. */
static void duel(struct script *script) {
    uint32_t actors = character.threads + (character.keepers != 0);
    uint32_t first = one_in(2) && character.keepers != 0 ? character.threads : below(actors);
    struct step one = duellist(first);
    struct step other = duellist(actors > 1 ? (first + 1 + below(actors - 1)) % actors : first);
    interrupt_early(&one);
    if (!one_in(4)) {
        interrupt_early(&other);
    }
    if (one.verb == VERB_KEEPER && one_in(2)) { /* so that it has seen everybody since */
        script_add(script, (struct step){.verb = VERB_KEEPER});
    }
    script_add(script, one);
    script_add(script, other);
    for (bool ended = false; !ended;) {
        ended = one_in(3);
        go_on(script, &one, ended);
        go_on(script, &other, ended && one_in(2));
    }
}

/* A thread's first step inside, or its last, beside a fork. */
static void birth(struct script *script) {
    uint8_t born = (uint8_t)below(character.threads);
    struct step end = {.verb = VERB_END, .thread = born, .size = any_size()};
    struct step one = {.verb = VERB_MALLOC, .thread = born, .block = (uint16_t)any_block(false), .size = any_size()};
    struct step other = {.verb = VERB_FORK, .thread = (uint8_t)((born + 1) % character.threads), .size = below(12)};
    one.yields = 1 + below(4);
    if (one_in(2)) {
        one = end;
        one.yields = 1 + below(24);
    } else {
        script_add(script, end);
    }
    one.grain = GRAIN_TOTAL;
    other.grain = GRAIN_ORDERED;
    other.yields = 1 + below(16);
    script_add(script, one);
    script_add(script, other);
    go_on(script, &one, false);
    go_on(script, &other, true);
    go_on(script, &one, true);
}

/* A thread gives some blocks and sleeps; it comes again just when the keeper looks into its cache. */
static void visit(struct script *script) {
    uint8_t thread = (uint8_t)below(character.threads);
    struct step look = {.verb = VERB_KEEPER};
    struct step last = {.verb = VERB_FREE, .thread = thread};
    for (uint32_t gives = below(9); gives > 0 && holding > 1; gives--) {
        struct step step = {.verb = VERB_FREE, .thread = thread, .block = (uint16_t)any_block(true)};
        held[step.block] = false;
        holding--;
        script_add(script, step);
    }
    script_add(script, look);
    look.grain = GRAIN_TOTAL;
    look.yields = 3 + below(8);
    last.block = (uint16_t)any_block(true);
    holding -= held[last.block];
    held[last.block] = false;
    last.grain = GRAIN_ORDERED;
    last.yields = 1 + below(12);
    script_add(script, look);
    script_add(script, last);
    go_on(script, &look, true);
    go_on(script, &last, true);
}

/* Somebody is interrupted and does not go on, though others wait. */
static void stall(struct script *script) {
    bool keeper = character.keepers != 0 && one_in(2);
    struct step one = duellist(keeper ? character.threads : any_thread());
    interrupt_early(&one);
    script_add(script, one);
    script_add(script,
               (struct step){.verb = VERB_STALL, .size = keeper ? FIBER_KEEPER : one.thread, .more = 1 + below(6)});
}

/* A thread stays inside while the keeper looks at it, and again. */
static void stay(struct script *script) {
    uint8_t thread = (uint8_t)any_thread();
    struct step long_one = trade();
    struct step look = {.verb = VERB_KEEPER};
    long_one.thread = thread;
    interrupt_early(&long_one);
    script_add(script, long_one);
    script_add(script, look);
    if (one_in(2)) {
        interrupt_early(&look);
    }
    script_add(script, look);
    go_on(script, &long_one, one_in(2));
    go_on(script, &look, true);
    go_on(script, &long_one, true);
}

/* A thread goes without a word, and another comes in its place: what the first has left is for who comes by, and he may be interrupted. */
static void leave_heir(struct script *script) {
    struct step end = {.verb = VERB_END, .thread = (uint8_t)any_thread(), .size = any_size()};
    struct step born = {
        .verb = VERB_CALLOC, .thread = end.thread, .block = (uint16_t)any_block(false), .size = any_size()};
    struct step look = {.verb = VERB_KEEPER};
    script_add(script, end);
    script_add(script, end);
    script_add(script, born);
    held[born.block] = true;
    if (character.keepers != 0) {
        script_add(script, look);
        interrupt_early(&look);
        script_add(script, look);
    }
    for (uint32_t others = 1 + below(3); others > 0; others--) {
        struct step step = trade();
        step.thread = (uint8_t)any_thread();
        if (one_in(2)) {
            interrupt_early(&step);
        }
        script_add(script, step);
    }
    if (character.keepers != 0) {
        go_on(script, &look, true);
    }
}

/* Some threads end, and come again only when others do: heaps are left to few. */
static void crowd(struct script *script) {
    away = 0;
    for (uint32_t thread = 0; thread < character.threads; thread++) {
        struct step begin = trade();
        begin.thread = (uint8_t)thread;
        script_add(script, begin);
    }
    uint32_t stays = one_in(2) ? 0 : 1; /* of every other, or of every third: of one heap, perhaps */
    uint32_t apart = 2 + below(2);
    for (uint32_t thread = 1; thread < character.threads; thread++) {
        if (thread % apart != stays) {
            script_add(script, (struct step){.verb = VERB_END, .thread = (uint8_t)thread, .size = any_size()});
            away |= 1u << thread;
        }
    }
}

/* Everybody sleeps, and the keeper looks again and again. */
static void sleep_all(struct script *script) {
    script_add(script, (struct step){.verb = VERB_REST});
    for (uint32_t looks = 2 + below(6); looks > 0; looks--) {
        script_add(script, (struct step){.verb = VERB_KEEPER});
    }
}

void chance_script(struct script *script, uint64_t seed, size_t steps) {
    state = (seed + 1) * UINT64_C(0x9E3779B97F4A7C15);
    memset(held, 0, sizeof held);
    away = 0;
    holding = 0;
    (void)below(1), (void)below(1);
    choose_character();
    if (one_in(4)) {
        be_a_forker();
    } else if (one_in(3)) {
        be_kept();
    }
    open_script(script);
    uint32_t thread = 0;
    while (script->count < steps) {
        if (one_in(character.phases)) { /* in one the program grows, in another it shrinks */
            character.growing = 10 + 20 * below(5);
        }
        if (one_in(4)) {
            thread = any_thread();
        }
        if (one_in(character.births) && character.threads > 1) {
            birth(script);
            continue;
        }
        if (one_in(character.crowds) && character.threads > 2) {
            crowd(script);
            continue;
        }
        if (one_in(character.stalls)) {
            stall(script);
            continue;
        }
        if (one_in(character.stays)) {
            stay(script);
            continue;
        }
        if (one_in(character.heirs)) {
            leave_heir(script);
            continue;
        }
        if (one_in(character.sleeps)) {
            sleep_all(script);
            continue;
        }
        if (one_in(character.visits)) {
            visit(script);
            continue;
        }
        if (one_in(character.duels)) {
            duel(script);
            continue;
        }
        struct step step = any_step(thread);
        bool goes_on = step.verb < VERBS_OF_THREADS || step.verb == VERB_KEEPER;
        if (goes_on && below(100) < character.interrupts) {
            interrupt(&step);
            thread = any_thread(); /* somebody else, perhaps */
        }
        script_add(script, step);
        if (step.yields != 0 && one_in(3)) {
            struct step more = {.verb = one_in(4) ? VERB_KEEPER : VERB_GO, .thread = (uint8_t)below(character.threads)};
            interrupt(&more);
            more.thread = more.verb == VERB_GO ? more.thread : 0;
            script_add(script, more);
        }
    }
}
