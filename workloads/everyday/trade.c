/* Threads that trade blocks of 16 B to 8 MiB through a shared table: each frees what another has allocated, and
 * checks every block it takes out. cc -O2 -fno-builtin trade.c -o trade -lpthread; ./trade THREADS STEPS */
#include <stdatomic.h>
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <malloc.h>
enum { SLOTS = 4096 };
static struct slot {
    _Atomic(unsigned char *) p;
} shared[SLOTS];
static int iters = 300000;
static uint64_t rnd(uint64_t *s) {
    *s ^= *s << 13;
    *s ^= *s >> 7;
    *s ^= *s << 17;
    return *s;
}
static void check_free(unsigned char *p) {
    if (!p)
        return;
    size_t n;
    memcpy(&n, p, 8);
    unsigned char c = p[8];
    size_t lim = n < 4096 ? n : 4096;
    for (size_t i = 9; i < lim; i++)
        if (p[i] != c) {
            fprintf(stderr, "corrupt %p n=%zu i=%zu\n", (void *)p, n, i);
            abort();
        }
    if (p[n - 1] != c) {
        fprintf(stderr, "corrupt tail\n");
        abort();
    }
    free(p);
}
static void *work(void *a) {
    uint64_t s = (uint64_t)(uintptr_t)a * 0x9E3779B97F4A7C15ull + 1;
    for (int i = 0; i < iters; i++) {
        uint64_t r = rnd(&s);
        size_t n;
        switch (r & 15) {
        case 0:
            n = (rnd(&s) % 300000) + 16;
            break;
        case 1:
            if ((r >> 8 & 63) == 0)
                n = (rnd(&s) % 8000000) + 16;
            else
                n = (rnd(&s) % 20000) + 16;
            break;
        default:
            n = (rnd(&s) % 1000) + 16;
        }
        unsigned char *p;
        unsigned k = (r >> 20) & 7;
        if (k == 0) {
            p = calloc(1, n);
            for (size_t j = 0; j < n; j += 1 + (n > 4096 ? 64 : 0))
                if (p[j]) {
                    fprintf(stderr, "calloc nonzero\n");
                    abort();
                }
        } else if (k == 1) {
            size_t al = 16ull << (rnd(&s) % 14);
            p = aligned_alloc(al, n);
            if ((uintptr_t)p % al) {
                fprintf(stderr, "align\n");
                abort();
            }
        } else if (k == 2) {
            p = malloc(n / 2 + 16);
            memset(p, 7, n / 2 + 16);
            p = realloc(p, n);
            for (size_t j = 0; j < (n < n / 2 + 16 ? n : n / 2 + 16); j++)
                if (p[j] != 7) {
                    fprintf(stderr, "realloc\n");
                    abort();
                }
        } else
            p = malloc(n);
        if (!p)
            abort();
        memcpy(p, &n, 8);
        unsigned char c = (unsigned char)r;
        size_t lim = n < 4096 ? n : 4096;
        memset(p + 8, c, lim - 8);
        p[n - 1] = c;
        unsigned char *old = atomic_exchange(&shared[rnd(&s) % SLOTS].p, p);
        check_free(old);
    }
    return 0;
}
int main(int c, char **v) {
    int t = c > 1 ? atoi(v[1]) : 4;
    if (c > 2)
        iters = atoi(v[2]);
    pthread_t th[256];
    for (int r = 0; r < 3; r++) {
        for (long i = 0; i < t; i++)
            pthread_create(&th[i], 0, work, (void *)(i + 1 + r * 100));
        for (int i = 0; i < t; i++)
            pthread_join(th[i], 0);
    }
    for (int i = 0; i < SLOTS; i++)
        check_free(shared[i].p);
    malloc_trim(0);
    malloc_stats();
    return 0;
}
