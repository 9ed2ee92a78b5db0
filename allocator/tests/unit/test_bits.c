/* Bits and powers of two, against loops that count. */
#include "bits.h"

#include "expect.h"
#include "pattern.h"

static unsigned lowest_by_counting(uint64_t word) {
    unsigned index = 0;
    while ((word >> index & 1) == 0) {
        index++;
    }
    return index;
}

static unsigned highest_by_counting(uint64_t word) {
    unsigned index = 63;
    while ((word >> index & 1) == 0) {
        index--;
    }
    return index;
}

static void check_ends(uint64_t word) {
    EXPECT(bits_lowest(word) == lowest_by_counting(word), "of %#llx: %u", (unsigned long long)word, bits_lowest(word));
    EXPECT(bits_highest(word) == highest_by_counting(word), "of %#llx: %u", (unsigned long long)word,
           bits_highest(word));
}

static void check_every_pair_of_bits(void) {
    for (unsigned low = 0; low < 64; low++) {
        for (unsigned high = low; high < 64; high++) {
            check_ends(UINT64_C(1) << low | UINT64_C(1) << high);
        }
    }
}

static void check_low(void) {
    uint64_t wanted = 0;
    for (unsigned count = 0; count <= 64; count++) {
        EXPECT(bits_low(count) == wanted, "%u bits: %#llx", count, (unsigned long long)bits_low(count));
        wanted = wanted << 1 | 1;
    }
    /* A slab's last word asks for all that is left, which is more than a word but in the last. */
    EXPECT(bits_low(4096) == UINT64_MAX, "a full word is not full");
}

static void check_powers(uint64_t *random) {
    for (int round = 0; round < 100000; round++) {
        size_t value = (size_t)(pattern_random(random) >> pattern_below(random, 64));
        size_t unit = (size_t)1 << pattern_below(random, 40);
        EXPECT(bits_is_power_of_two(value) == (value != 0 && lowest_by_counting(value) == highest_by_counting(value)),
               "%#zx", value);
        value >>= 8; /* the sum must not overflow */
        size_t rest = value % unit;
        size_t wanted = rest == 0 ? value : value + (unit - rest);
        EXPECT(bits_round_up(value, unit) == wanted, "%#zx by %#zx", value, unit);
        EXPECT(bits_min(value, unit) + bits_max(value, unit) == value + unit && bits_min(value, unit) <= unit &&
                   bits_max(value, unit) >= value,
               "%#zx and %#zx", value, unit);
    }
    EXPECT(!bits_is_power_of_two(0), "0 is one");
}

int main(void) {
    uint64_t random = 1;
    check_every_pair_of_bits();
    for (int round = 0; round < 100000; round++) {
        check_ends(pattern_random(&random) | UINT64_C(1) << pattern_below(&random, 64));
    }
    check_low();
    check_powers(&random);
    return 0;
}
