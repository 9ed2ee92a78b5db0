/* freestone-prices: what the kernel's services about memory cost on this machine, as one JSON object of nanoseconds.
 *
 * Each price is the median of many short measurements, so that what disturbs some of them does not count. A fault's
 * price includes clearing what it brings in. */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { TIMES = 31, SHORT = 64 };

static const size_t HUGE_BYTES = (size_t)2 << 20, REGION = (size_t)8 << 20;

static size_t page;

static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID,
                  &now); /* what others do meanwhile on this processor costs the program nothing */
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static long faults(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

static int by_size(const void *one, const void *other) {
    const double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

static double median(double *values, size_t count) {
    qsort(values, count, sizeof *values, by_size);
    return values[count / 2];
}

/* A fresh region that begins at a huge page; NULL where there is no memory. Its mapping is `*mapping`, of REGION and
 * a huge page more. */
static char *fresh(char **mapping, int advice) {
    *mapping = mmap(NULL, REGION + HUGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (*mapping == MAP_FAILED)
        return NULL;
    char *begin = (char *)(((uintptr_t)*mapping + HUGE_BYTES - 1) & ~((uintptr_t)HUGE_BYTES - 1));
    if (advice >= 0)
        madvise(begin, REGION, advice);
    return begin;
}

static void touch(char *begin) {
    for (size_t at = 0; at < REGION; at += page)
        ((volatile char *)begin)[at] = 1;
}

struct fault {
    double ns, kib; /* of one: its price, and how much it brings in */
};

/* First touches of a fresh region under some advice, -1 for none. */
static bool fault_price(int advice, struct fault *price) {
    double ns[TIMES], kib[TIMES];
    for (int i = 0; i < TIMES; i++) {
        char *mapping, *begin = fresh(&mapping, advice);
        if (begin == NULL)
            return false;
        const long before = faults();
        const double began = now_ns();
        touch(begin);
        const double took = now_ns() - began;
        const long taken = faults() - before;
        munmap(mapping, REGION + HUGE_BYTES);
        if (taken <= 0)
            return false;
        ns[i] = took / (double)taken;
        kib[i] = (double)REGION / 1024 / (double)taken;
    }
    price->ns = median(ns, TIMES);
    price->kib = median(kib, TIMES);
    return true;
}

/* What taking touched pages back costs for each: by munmap, or by madvise(MADV_DONTNEED). */
static double back_price(bool unmapped) {
    double ns[TIMES];
    for (int i = 0; i < TIMES; i++) {
        char *mapping, *begin = fresh(&mapping, MADV_NOHUGEPAGE);
        if (begin == NULL)
            return -1;
        touch(begin);
        const double began = now_ns();
        if (unmapped)
            munmap(begin, REGION);
        else
            madvise(begin, REGION, MADV_DONTNEED);
        ns[i] = (now_ns() - began) / ((double)REGION / (double)page);
        munmap(mapping, REGION + HUGE_BYTES);
    }
    return median(ns, TIMES);
}

static double map_price(void) {
    double ns[TIMES];
    for (int i = 0; i < TIMES; i++) {
        const double began = now_ns();
        for (int j = 0; j < SHORT; j++) {
            void *mapping = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (mapping == MAP_FAILED)
                return -1;
            munmap(mapping, 1 << 20);
        }
        ns[i] = (now_ns() - began) / SHORT;
    }
    return median(ns, TIMES);
}

/* One page more of a reserved range is opened at each call, as glibc's heaps of threads grow. */
static double protect_price(void) {
    double ns[TIMES];
    for (int i = 0; i < TIMES; i++) {
        char *begin = mmap(NULL, SHORT * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (begin == MAP_FAILED)
            return -1;
        const double began = now_ns();
        for (size_t j = 0; j < SHORT; j++)
            mprotect(begin + j * page, page, PROT_READ | PROT_WRITE);
        ns[i] = (now_ns() - began) / SHORT;
        munmap(begin, SHORT * page);
    }
    return median(ns, TIMES);
}

static double brk_price(void) {
    double ns[TIMES];
    for (int i = 0; i < TIMES; i++) {
        const double began = now_ns();
        for (int j = 0; j < SHORT; j++) {
            if (sbrk(128 << 10) == (void *)-1)
                return -1;
            sbrk(-(128 << 10));
        }
        ns[i] = (now_ns() - began) / SHORT;
    }
    return median(ns, TIMES);
}

/* Of a KiB that is cleared or copied, in memory that was used a moment before. */
static double bytes_price(bool copied) {
    double ns[TIMES];
    char *one = malloc(2 * HUGE_BYTES), *other = malloc(2 * HUGE_BYTES);
    if (one == NULL || other == NULL) {
        free(one);
        free(other);
        return -1;
    }
    memset(one, 1, 2 * HUGE_BYTES);
    memset(other, 1, 2 * HUGE_BYTES);
    for (int i = 0; i < TIMES; i++) {
        const double began = now_ns();
        if (copied)
            memcpy(one, other, 2 * HUGE_BYTES);
        else
            memset(one, i, 2 * HUGE_BYTES);
        ns[i] = (now_ns() - began) / ((double)(2 * HUGE_BYTES) / 1024);
    }
    /* Else the compiler may leave the last of them out. */
    volatile char kept = one[HUGE_BYTES];
    (void)kept;
    free(one);
    free(other);
    return median(ns, TIMES);
}

int main(void) {
    page = (size_t)sysconf(_SC_PAGESIZE);
    const struct {
        const char *name;
        int advice;
    } kinds[] = {{"small", MADV_NOHUGEPAGE}, {"plain", -1}, {"advised", MADV_HUGEPAGE}};
    printf("{\"version\": 1, \"page_kib\": %zu, \"faults\": {", page / 1024);
    bool first = true;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct fault price;
        if (!fault_price(kinds[i].advice, &price))
            continue;
        printf("%s\"%s\": {\"ns\": %.1f, \"kib\": %.2f}", first ? "" : ", ", kinds[i].name, price.ns, price.kib);
        first = false;
    }
    printf("}, \"map_unmap_ns\": %.1f, \"unmap_page_ns\": %.2f, \"dontneed_page_ns\": %.2f, \"protect_ns\": %.1f, "
           "\"brk_ns\": %.1f, \"clear_kib_ns\": %.2f, \"copy_kib_ns\": %.2f}\n",
           map_price(), back_price(true), back_price(false), protect_price(), brk_price(), bytes_price(false),
           bytes_price(true));
    return fflush(stdout) == 0 ? 0 : 1;
}
