/* Proof that the allocator under test is the one serving this process. */
#ifndef FREESTONE_TESTS_SERVING_H
#define FREESTONE_TESTS_SERVING_H

#ifdef __cplusplus
extern "C" {
#endif

/* Fails the program unless malloc, calloc, realloc and free come from libfreestone. */
void require_serving(void);

/* The same for one entry point, where others are somebody else's. */
void require_served(const char *symbol);

#ifdef __cplusplus
}
#endif

#endif
