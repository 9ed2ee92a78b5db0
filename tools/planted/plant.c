/* libfreestone with a known fault planted in it: malloc and free do PLANT_TURNS turns of nothing in every PLANT_EVERY-th call,
 * and PLANT_KIB KiB are resident from the start. The sound library is built from this file too, with neither, so that two
 * libraries differ in the fault alone. The real malloc and free are renamed as this is linked (campaign.py). */
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

enum { PLANT_EVERY = 512 };

#define PUBLIC __attribute__((visibility("default")))

void *planted_malloc(size_t size);
void planted_free(void *block);

/* Tells two builds of the same fault apart by their build-ids. */
PUBLIC const char freestone_planted[] = PLANT_NAME;

static void work(void) {
    static __thread unsigned calls __attribute__((tls_model("initial-exec")));
    if (++calls % PLANT_EVERY == 0) {
        unsigned turns = PLANT_TURNS;
        __asm__ volatile("" : "+r"(turns)); /* so that no turns are the same code: else the counter would go with the loop */
        for (; turns > 0; turns--) {
            __asm__ volatile("nop");
        }
    }
}

PUBLIC void *malloc(size_t size) {
    work();
    return planted_malloc(size);
}

PUBLIC void free(void *block) {
    work();
    planted_free(block);
}

__attribute__((constructor)) static void take_memory(void) {
    size_t bytes = (size_t)PLANT_KIB * 1024;
    if (bytes > 0) {
        void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory != MAP_FAILED) {
            (void)madvise(memory, bytes, MADV_NOHUGEPAGE);
            memset(memory, 1, bytes);
        }
    }
}
