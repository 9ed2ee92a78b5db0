/* Magazines of every capacity: their ends, their order, their header. */
#include "magazine.h"

#include "expect.h"

static union magazine magazine __attribute__((aligned(MAGAZINE_BYTES)));

/* The block that a test pushes as number `i`: any address but NULL. */
static void *block(unsigned i) { return (void *)(uintptr_t)(0x1000 + 16 * i); }

static void check_ends(void **top, unsigned capacity, unsigned holds) {
    EXPECT(magazine_of(top) == &magazine, "capacity %u holding %u: not the magazine it is in", capacity, holds);
    EXPECT(magazine_count(top) == holds, "capacity %u: counts %u instead of %u", capacity, magazine_count(top), holds);
    EXPECT(magazine_is_empty(top) == (holds == 0), "capacity %u holding %u", capacity, holds);
    EXPECT(magazine_is_full(top) == (holds == capacity), "capacity %u holding %u", capacity, holds);
    EXPECT(magazine_capacity(&magazine) == capacity, "capacity %u became %u", capacity, magazine_capacity(&magazine));
}

/* Pushes as free does, up to the end its address tells; pops as malloc does, down to the NULL. */
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
    while (*top != NULL) {
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
    EXPECT(magazine_is_empty(top), "capacity %u: the header overwrote the NULL at the bottom", capacity);
}

int main(void) {
    for (unsigned capacity = 1; capacity <= MAGAZINE_MOST; capacity++) {
        check_stack(capacity);
        check_refill(capacity);
        check_header(capacity);
    }
    return 0;
}
