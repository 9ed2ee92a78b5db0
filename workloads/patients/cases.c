/* cases.c: how real programs asked for memory whose trouble was reported, with the report. Written after the reports: what was
 * asked, how much of it and in which order; nothing else of these programs. */
#define _GNU_SOURCE
#include "patient.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

/* cloudflare/cf_benchmark#2: a few buffers of 136 KiB for each operation; the end of the heap is cut off after each. */
static void benchmark_loop(void) {
    for (int i = 0; i < 5000; i++) {
        void *buffers[3];
        for (int j = 0; j < 3; j++)
            touch(buffers[j] = asked(136 * KIB), 136 * KIB);
        for (int j = 3; j-- > 0;)
            free(buffers[j]);
    }
}

/* hiroz#349, rmw_zenoh#1060: messages of 1 MiB, copied on their way. */
static void messages(void) {
    for (int i = 0; i < 300; i++) {
        void *copies[4];
        for (int j = 0; j < 4; j++)
            memset(copies[j] = asked(1 * MIB), i, 1 * MIB);
        for (int j = 0; j < 4; j++)
            free(copies[j]);
    }
}

/* sonos/tract#2783: tensors on both sides of 32 MiB, above which no threshold follows. */
static void tensors(void) {
    static const size_t sizes[] = {28 * MIB, 34 * MIB, 40 * MIB};
    for (int i = 0; i < 20; i++) {
        for (size_t j = 0; j < sizeof sizes / sizeof sizes[0]; j++) {
            void *tensor = asked(sizes[j]);
            touch(tensor, sizes[j]);
            free(tensor);
        }
    }
}

/* openfhe#1213: buffers of half a MiB to 30 MiB, a few alive at a time. */
static void ciphertexts(void) {
    enum { ALIVE = 6 };
    unsigned state = 1;
    void *alive[ALIVE] = {NULL};
    for (int i = 0; i < 500; i++) {
        free(alive[i % ALIVE]);
        size_t size = 512 * (size_t)KIB + drawn(&state) % (29 * MIB);
        touch(alive[i % ALIVE] = asked(size), size);
    }
    for (int i = 0; i < ALIVE; i++)
        free(alive[i]);
}

/* intel-accel-for-llm#17: a thread that takes what it needs in pieces of 24 KiB, layer by layer. */
static void *loads_layers(void *unused) {
    enum { PIECES = 4000, SIZE = 24 * KIB };
    static void *pieces[PIECES];
    for (int layer = 0; layer < 8; layer++) {
        for (int i = 0; i < PIECES; i++)
            touch(pieces[i] = asked(SIZE), SIZE);
        for (int i = PIECES; i-- > 0;)
            free(pieces[i]);
    }
    return unused;
}

static void layers(void) {
    pthread_t thread;
    start(&thread, loads_layers, NULL);
    finish(thread);
}

/* cosmic-bg#73, concord#319, relion#673: pictures are read once at the start. The largest has moved the threshold, so the next ones
 * lay in the heap, below small things that stay. */
static void pictures(void) {
    free(asked(30 * MIB));
    static void *kept[8];
    for (int i = 0; i < 8; i++) {
        void *picture = asked(16 * MIB), *scaled = asked(4 * MIB);
        touch(picture, 16 * MIB);
        touch(scaled, 4 * MIB);
        kept[i] = scaled;
        memset(asked(200), 1, 200); /* its name, to the end */
        free(picture);
    }
    for (int i = 0; i < 8; i++)
        free(kept[i]);
    work(1500);
}

/* amule#1095, synalinks#102, hypha#976: threads that come and go, and each leaves the heap that it worked in as large as it was. */
static void *serves(void *unused) {
    enum { BLOCKS = 8 * KIB };
    void *session = NULL;
    for (int i = 0; i < 3; i++) {
        void **blocks = many(BLOCKS, 1500);
        if (session == NULL)
            session = asked(1500);
        free_many(blocks, BLOCKS);
    }
    meet();
    meet();
    free(session);
    return unused;
}

static void servers(void) { crowd(12, serves, 1500); }

/* simpler#2022: many faults whose end was no gain, for the program computes. */
static void computes_over_new(void) {
    for (int i = 0; i < 12; i++) {
        void *block = asked(34 * MIB);
        touch(block, 4 * MIB);
        work(250);
        free(block);
    }
}

/* lighthouse#2857, opendcdiag#179: mallopt was called with -4, which is the number of mappings, where -3 was meant. */
static void wrong_knob(void) {
    mallopt(-4, 128 * KIB);
    for (int i = 0; i < 150; i++) {
        void *block = asked(3 * MIB), *other = asked(2 * MIB);
        touch(block, 3 * MIB);
        touch(other, 2 * MIB);
        free(block);
        free(other);
    }
}

/* concord#319: threads whose heaps keep what they had, and in the main heap a block above all that was freed. */
static void capped(void) {
    void **blocks = many(30 * KIB, 1000);
    memset(asked(1000), 1, 1000); /* stays */
    free_many(blocks, 30 * KIB);
    servers();
}

const struct patient reported_cases[] = {
    {"case-benchmark-loop", benchmark_loop},
    {"case-messages", messages},
    {"case-tensors", tensors},
    {"case-ciphertexts", ciphertexts},
    {"case-layers", layers},
    {"case-pictures", pictures},
    {"case-servers", servers},
    {"case-computes-over-new", computes_over_new},
    {"case-wrong-knob", wrong_knob},
    {"case-capped", capped},
    {NULL, NULL},
};
