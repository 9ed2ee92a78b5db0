/* Magazines of every capacity: their ends, their order, their header. */
#include "magazine.h"

#include "expect.h"

static union magazine magazine __attribute__((aligned(MAGAZINE_BYTES)));

/* The block that a test pushes as number `i`: any address that is aligned as blocks are. */
static void *block(unsigned i) { return (void *)(uintptr_t)(0x1000 + 16 * i); }

static void check_ends(void **top, unsigned capacity, unsigned holds) {
    EXPECT(magazine_of(top) == &magazine, "capacity %u holding %u: not the magazine it is in", capacity, holds);
    EXPECT(magazine_count(top) == holds, "capacity %u: counts %u instead of %u", capacity, magazine_count(top), holds);
    EXPECT(magazine_is_empty(top) == (holds == 0), "capacity %u holding %u", capacity, holds);
    EXPECT(magazine_is_full(top) == (holds == capacity), "capacity %u holding %u", capacity, holds);
    EXPECT(magazine_capacity(&magazine) == capacity, "capacity %u became %u", capacity, magazine_capacity(&magazine));
}

/* Pushes as free does, up to the end its address tells; pops as malloc does, down to the bottom. */
static void check_stack(unsigned capacity) {
    void **top = magazine_clear(&magazine, capacity);
    check_ends(top, capacity, 0);
    unsigned holds = 0;
    while (!magazine_is_past_end(top + 1)) {
        *++top = block(holds++);
        check_ends(top, capacity, holds);
    }
    EXPECT(holds == capacity, "capacity %u took %u", capacity, holds);
    EXPECT(top == magazine_full_top(&magazine), "capacity %u: the full top is elsewhere", capacity);
    while (*top != MAGAZINE_NONE) {
        EXPECT(*top == block(--holds), "capacity %u: number %u is not on top", capacity, holds);
        top--;
        check_ends(top, capacity, holds);
    }
    EXPECT(holds == 0, "capacity %u: %u are left below the bottom", capacity, holds);
}

/* Filled from the end downwards, as a refill does, the lowest block comes out first. */
static void check_refill(unsigned capacity) {
    void **end = &magazine.word[MAGAZINE_WORDS];
    for (unsigned i = 0; i < capacity; i++) {
        end[-1 - (int)i] = block(i);
    }
    (void)magazine_clear(&magazine, capacity);
    void **top = magazine_full_top(&magazine);
    check_ends(top, capacity, capacity);
    for (unsigned i = 0; i < capacity; i++) {
        EXPECT(*top-- == block(i), "capacity %u: number %u comes out of order", capacity, i);
    }
    EXPECT(magazine_is_empty(top), "capacity %u: more than was put in", capacity);
}

/* Folded it holds all but the newest, and is full; unfolded it hands them out as if that had been popped. */
static void check_fold(unsigned capacity) {
    void **top = magazine_clear(&magazine, capacity);
    for (unsigned i = 0; i < capacity; i++) {
        *++top = block(i);
    }
    EXPECT(magazine_unfold(top) == top, "capacity %u: what is not folded is unfolded", capacity);
    EXPECT(magazine_fold(top) == block(capacity - 1), "capacity %u: another than the newest comes out", capacity);
    check_ends(top, capacity - 1, capacity - 1);
    uint64_t seen[2] = {0};
    for (void **at = top; *at != MAGAZINE_NONE; at--) {
        size_t number = ((uintptr_t)*at - 0x1000) / 16;
        seen[number / 64] |= UINT64_C(1) << (number % 64);
    }
    EXPECT(seen[0] == bits_low(capacity - 1) && seen[1] == (capacity - 1 > 64 ? bits_low(capacity - 1 - 64) : 0),
           "capacity %u: folded, it does not hold each once", capacity);
    top = magazine_unfold(top);
    check_ends(top, capacity, capacity - 1);
    for (unsigned i = capacity - 1; i-- > 0;) {
        EXPECT(*top-- == block(i), "capacity %u: number %u comes out of order after a fold", capacity, i);
    }
    EXPECT(magazine_is_empty(top), "capacity %u: more than was put in", capacity);
    EXPECT(magazine_unfold(magazine_full_top(&magazine)) == magazine_full_top(&magazine), "it is unfolded twice");
}

/* In a depot a full magazine carries a link; neither that nor its bottom may touch a block. */
static void check_header(unsigned capacity) {
    void **top = magazine_clear(&magazine, capacity);
    for (unsigned i = 0; i < capacity; i++) {
        *++top = block(i);
    }
    magazine.next = (union magazine *)(uintptr_t)0x5555555555555555;
    EXPECT(magazine_capacity(&magazine) == capacity, "capacity %u: the link overwrote the bottom", capacity);
    for (unsigned i = capacity; i-- > 0;) {
        EXPECT(*top == block(i), "capacity %u: the header overwrote block %u", capacity, i);
        top--;
    }
    EXPECT(magazine_is_empty(top), "capacity %u: the header overwrote the bottom", capacity);
}

/* An early end at every depth: as many can be popped as lie above it, then none, and when it is lifted the rest is there. */
static void check_early_end(unsigned capacity) {
    for (unsigned depth = 0; depth < capacity; depth++) {
        void **top = magazine_clear(&magazine, capacity);
        for (unsigned i = 0; i < capacity; i++) {
            *++top = block(i);
        }
        magazine_plant(top, depth);
        EXPECT(magazine_ends_early(top) == (depth == 0), "capacity %u: ends %u deep, and says so at the top", capacity,
               depth);
        for (unsigned i = capacity; i-- > capacity - depth;) {
            EXPECT(*top-- == block(i), "capacity %u, %u deep: number %u is not there", capacity, depth, i);
        }
        EXPECT(magazine_is_empty(top) && magazine_ends_early(top), "capacity %u: does not end %u deep", capacity,
               depth);
        EXPECT(magazine_count(top) == capacity - depth, "capacity %u: %u are left", capacity, magazine_count(top));
        magazine_lift(top);
        EXPECT(!magazine_ends_early(top), "capacity %u: it still ends early", capacity);
        for (unsigned i = capacity - depth; i-- > 0;) {
            EXPECT(*top-- == block(i), "capacity %u, %u deep: number %u is lost", capacity, depth, i);
        }
        EXPECT(magazine_is_empty(top), "capacity %u: more than was put in", capacity);
        magazine_lift(top);
        EXPECT(magazine_is_empty(top), "capacity %u: lifted twice, it changes", capacity);
    }
}

int main(void) {
    for (unsigned capacity = 1; capacity <= MAGAZINE_MOST; capacity++) {
        check_stack(capacity);
        check_refill(capacity);
        check_header(capacity);
        check_early_end(capacity);
        if (capacity > 1) {
            check_fold(capacity);
        }
    }
    return 0;
}
