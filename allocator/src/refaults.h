/* How long the keeper leaves the free pages of slabs alone before it purges them: longer for a program that takes them again soon, as
 * one does that works, pauses and works. Leaf. Of the keeper's thread alone.
 *
 * What is purged is on trial. When half of as much has been taken again, it was purged too early: from then on slabs have to rest four
 * times as long. When nearly nothing has been taken again a few looks later, half as long. */
#ifndef FREESTONE_REFAULTS_H
#define FREESTONE_REFAULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    REFAULTS_REST_MS = 333, /* slabs rest at the least: from one look of the keeper's to the next */
    REFAULTS_LONGEST = 16, /* times as long at the most: a pause of five seconds is not purged into */
    REFAULTS_TRIAL = 1024 * 1024, /* bytes: what less would tell is chance */
    REFAULTS_LOOKS = 6, /* later a trial ends */
};

struct refaults {
    uint64_t due; /* milliseconds: when slabs are looked at next, but for what the program asks for beyond */
    uint32_t patience; /* REFAULTS_REST_MS so many times; 0 before the first look */
    uint32_t looks; /* since the trial began */
    size_t trial; /* bytes purged on trial; 0: none */
    size_t reused; /* bytes that had ever been taken again when it began */
};

/* Whether slabs have rested long enough, of which `extra` milliseconds are more than they would by themselves. */
bool refaults_are_due(const struct refaults *refaults, uint64_t now, uint64_t extra);

/* Slabs were looked at: `purged` bytes were, and `reused` bytes of all that was ever purged have been taken again by now. */
void refaults_note(struct refaults *refaults, uint64_t now, size_t purged, size_t reused);

#endif
