#include "refaults.h"

#include "bits.h"
#include "patience.h"

enum {
    EARLY_SHARE = 2, /* of a trial taken again: it was purged too early, */
    EARLY_TIMES = 4, /* and the next rests so many times as long */
    LATE_SHARE = 8,  /* less than this share: it was not */
};

bool refaults_are_due(const struct refaults *refaults, uint64_t now, uint64_t extra) {
    return refaults->patience == 0 ||
           !stamp_is_ahead(refaults->due + extra, now, (uint64_t)REFAULTS_REST_MS * REFAULTS_LONGEST + extra);
}

static void judge(struct refaults *refaults, size_t reused) {
    size_t again = reused - refaults->reused;
    refaults->looks++;
    if (refaults->trial < REFAULTS_TRIAL) {
        refaults->trial = 0; /* or it grows by what is purged now */
    } else if (again >= refaults->trial / EARLY_SHARE) {
        refaults->patience = (uint32_t)bits_min(EARLY_TIMES * (size_t)refaults->patience, REFAULTS_LONGEST);
        refaults->trial = 0;
    } else if (refaults->looks >= REFAULTS_LOOKS) {
        if (again < refaults->trial / LATE_SHARE) {
            refaults->patience = (uint32_t)bits_max(refaults->patience / 2, 1);
        }
        refaults->trial = 0;
    }
}

void refaults_note(struct refaults *refaults, uint64_t now, size_t purged, size_t reused) {
    refaults->patience = (uint32_t)bits_max(refaults->patience, 1);
    if (refaults->trial != 0) {
        judge(refaults, reused);
    }
    if (purged != 0) {
        if (refaults->trial == 0) {
            refaults->looks = 0;
            refaults->reused = reused;
        }
        refaults->trial += purged;
    }
    /* Half a rest less: the keeper comes at its own times, and not to the millisecond. */
    refaults->due = now + REFAULTS_REST_MS * (uint64_t)refaults->patience - REFAULTS_REST_MS / 2;
}
