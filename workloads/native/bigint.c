/* Arithmetic with big integers, where every intermediate result is a new block: a Fibonacci number by doubling, or a
 * factorial, by the methods of school. The last result of each round is held against the same modulo a prime. */
#include "block.h"
#include "crew.h"
#include "report.h"
#include "store.h"

#include <string.h>

enum compute { FIBONACCI, FACTORIAL };
static const char *const computes[] = {"fibonacci", "factorial", NULL};

enum { NUMBER_MOST = 20000, SPREAD = 64 };

static uint64_t compute = FIBONACCI, number = 1500, rounds = 120000, threads = 1;

static const struct parameter parameters[] = {
    {"compute", CHOICE, &compute, 0, 0, computes, "what"},
    {"number", COUNT, &number, SPREAD, NUMBER_MOST, NULL, "of which; a round takes one of the 64 up to it"},
    {"rounds", COUNT, &rounds, 1, 1e12, NULL, "of all threads together"},
    {"threads", COUNT, &threads, 1, CREW_MOST, NULL, "each with its own numbers"},
};
static const struct program program = {"bigint", "Big integers, each intermediate result in a new block.", parameters,
                                       sizeof parameters / sizeof *parameters};

typedef unsigned __int128 wide;

/* A natural number: limbs of 64 bits, the lowest first, without leading zeros. */
struct natural {
    uint64_t mark; /* of the block, checked when it is freed; the limbs are checked by the residue */
    uint64_t count;
    uint64_t limbs[];
};

/* A Mersenne prime: any sum of two residues fits into 64 bits. */
static const uint64_t prime = (UINT64_C(1) << 61) - 1;

struct worker {
    uint64_t calls, checksum;
};

static struct worker *workers;
static uint64_t rounds_each;

static uint64_t natural_mark(uint64_t room) { return block_mark(room, sizeof(struct natural)); }

ALWAYS_INLINE struct natural *natural_take(const struct allocator *a, struct worker *w, uint64_t room) {
    struct natural *n = take(a, sizeof *n + room * sizeof n->limbs[0]);
    block_put(&n->mark, natural_mark((uint64_t)(uintptr_t)n));
    n->count = room;
    w->calls++;
    return n;
}

ALWAYS_INLINE void natural_give(const struct allocator *a, struct worker *w, struct natural *n) {
    if (UNLIKELY(block_get(&n->mark) != natural_mark((uint64_t)(uintptr_t)n)))
        a->lost(n, sizeof *n, (uint64_t)(uintptr_t)n);
    a->free(n);
    w->calls++;
}

ALWAYS_INLINE struct natural *trimmed(struct natural *n) {
    while (n->count > 0 && n->limbs[n->count - 1] == 0)
        n->count--;
    return n;
}

ALWAYS_INLINE struct natural *natural_of(const struct allocator *a, struct worker *w, uint64_t value) {
    struct natural *n = natural_take(a, w, 1);
    n->limbs[0] = value;
    return trimmed(n);
}

ALWAYS_INLINE struct natural *sum(const struct allocator *a, struct worker *w, const struct natural *x,
                                  const struct natural *y) {
    const struct natural *longer = x->count > y->count ? x : y, *shorter = longer == x ? y : x;
    struct natural *z = natural_take(a, w, longer->count + 1);
    wide carry = 0;
    for (uint64_t i = 0; i < longer->count; i++) {
        carry += (wide)longer->limbs[i] + (i < shorter->count ? shorter->limbs[i] : 0);
        z->limbs[i] = (uint64_t)carry;
        carry >>= 64;
    }
    z->limbs[longer->count] = (uint64_t)carry;
    return trimmed(z);
}

/* x - y, where x is not below y. */
ALWAYS_INLINE struct natural *difference(const struct allocator *a, struct worker *w, const struct natural *x,
                                         const struct natural *y) {
    struct natural *z = natural_take(a, w, x->count);
    uint64_t borrow = 0;
    for (uint64_t i = 0; i < x->count; i++) {
        const wide subtrahend = (wide)(i < y->count ? y->limbs[i] : 0) + borrow;
        borrow = x->limbs[i] < subtrahend;
        z->limbs[i] = x->limbs[i] - (uint64_t)subtrahend;
    }
    return trimmed(z);
}

ALWAYS_INLINE struct natural *product(const struct allocator *a, struct worker *w, const struct natural *x,
                                      const struct natural *y) {
    struct natural *z = natural_take(a, w, x->count + y->count);
    memset(z->limbs, 0, z->count * sizeof z->limbs[0]);
    for (uint64_t i = 0; i < x->count; i++) {
        wide carry = 0;
        for (uint64_t j = 0; j < y->count; j++) {
            carry += (wide)x->limbs[i] * y->limbs[j] + z->limbs[i + j];
            z->limbs[i + j] = (uint64_t)carry;
            carry >>= 64;
        }
        z->limbs[i + y->count] = (uint64_t)carry;
    }
    return trimmed(z);
}

/* F(2k) = F(k) (2 F(k+1) - F(k)), F(2k+1) = F(k)^2 + F(k+1)^2, from the highest bit of n down. */
ALWAYS_INLINE struct natural *fibonacci(const struct allocator *a, struct worker *w, uint64_t n) {
    struct natural *low = natural_of(a, w, 0), *high = natural_of(a, w, 1); /* F(k) and F(k+1) */
    for (int bit = 63 - __builtin_clzll(n); bit >= 0; bit--) {
        struct natural *twice = sum(a, w, high, high), *factor = difference(a, w, twice, low);
        struct natural *even = product(a, w, low, factor);
        struct natural *low_square = product(a, w, low, low), *high_square = product(a, w, high, high);
        struct natural *odd = sum(a, w, low_square, high_square);
        natural_give(a, w, twice);
        natural_give(a, w, factor);
        natural_give(a, w, low_square);
        natural_give(a, w, high_square);
        natural_give(a, w, low);
        natural_give(a, w, high);
        low = even;
        high = odd;
        if (n >> bit & 1) {
            struct natural *next = sum(a, w, low, high);
            natural_give(a, w, low);
            low = high;
            high = next;
        }
    }
    natural_give(a, w, high);
    return low;
}

ALWAYS_INLINE struct natural *factorial(const struct allocator *a, struct worker *w, uint64_t n) {
    struct natural *result = natural_of(a, w, 1);
    for (uint64_t i = 2; i <= n; i++) {
        struct natural *factor = natural_of(a, w, i), *next = product(a, w, result, factor);
        natural_give(a, w, factor);
        natural_give(a, w, result);
        result = next;
    }
    return result;
}

static uint64_t times(uint64_t x, uint64_t y) { return (uint64_t)((wide)x * y % prime); }

static uint64_t fibonacci_residue(uint64_t n) {
    uint64_t low = 0, high = 1;
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t next = (low + high) % prime;
        low = high;
        high = next;
    }
    return low;
}

static uint64_t factorial_residue(uint64_t n) {
    uint64_t result = 1;
    for (uint64_t i = 2; i <= n; i++)
        result = times(result, i);
    return result;
}

static uint64_t residue_of(const struct natural *n) {
    uint64_t residue = 0;
    for (uint64_t i = n->count; i-- > 0;)
        residue = (uint64_t)(((wide)residue << 64 | n->limbs[i]) % prime);
    return residue;
}

static uint64_t expected[SPREAD]; /* residues, worked out before the clock */

ALWAYS_INLINE void work(const struct allocator *a, size_t member) {
    struct worker *w = &workers[member];
    *w = (struct worker){0};
    for (uint64_t round = 0; round < rounds_each; round++) {
        const uint64_t n = number - round % SPREAD;
        struct natural *result = compute == FIBONACCI ? fibonacci(a, w, n) : factorial(a, w, n);
        const uint64_t residue = residue_of(result);
        if (UNLIKELY(residue != expected[round % SPREAD]))
            a->lost(result, sizeof *result + result->count * sizeof result->limbs[0], n);
        w->checksum = checksum_add(w->checksum, residue);
        natural_give(a, w, result);
    }
}

static void work_measured(size_t member, void *unused) {
    (void)unused;
    work(&measured, member);
}

static void work_floor(size_t member, void *unused) {
    (void)unused;
    work(&null_allocator, member);
}

static struct measurement run(void (*member)(size_t, void *), uint64_t count, size_t null_pool) {
    rounds_each = count;
    struct measurement result = {.seconds = crew_run((struct crew){threads, member, NULL, null_pool})};
    for (uint64_t i = 0; i < threads; i++) {
        result.operations += workers[i].calls;
        result.checksum += workers[i].checksum;
    }
    return result;
}

/* Room for more than the numbers alive at a time: a dozen, and none is above the factorial of `number`, which is below
 * 2^(16 number). */
static size_t pool_for_numbers(void) { return null_pool_for(number * 32, number * 32, threads); }

int main(int argc, char **argv) {
    program_read(&program, argc, argv);
    for (uint64_t i = 0; i < SPREAD; i++)
        expected[i] = compute == FIBONACCI ? fibonacci_residue(number - i) : factorial_residue(number - i);
    workers = store_take(threads * sizeof *workers);
    const uint64_t each = rounds / threads == 0 ? 1 : rounds / threads;
    const struct measurement result = run(work_measured, each, 0);

    report_open(&program);
    report_measurement(result);
    if (program_has_floor())
        report_floor_of(run(work_floor, each / 8 == 0 ? 1 : each / 8, pool_for_numbers()), result);
    else
        report_no_floor();
    report_real("us_per_round", result.seconds * 1e6 / (double)(threads * each));
    report_close();
    return 0;
}
