/* In a control group of 192 MiB, 150 MiB are allocated and freed, in one size, then in another by another thread, then as a
 * mapping of the program's own, after a rest: memory that lies free is used again or has gone back before the kernel kills. */
#include "hazard.h"

enum { MIB = 150, BLOCKS_MOST = MIB << 10, REST_MS = 3000 };

static void *block[BLOCKS_MOST];

static void *fill_and_free(void *size_of_all) {
    size_t size = (uintptr_t)size_of_all, blocks = ((size_t)MIB << 20) / size;
    for (size_t i = 0; i < blocks; i++) {
        block[i] = malloc(size);
        EXPECT(block[i] != NULL, "malloc(%zu) failed", size);
        memset(block[i], 1, size);
    }
    for (size_t i = 0; i < blocks; i++) {
        free(block[i]);
    }
    return NULL;
}

static void enter_group(void) {
    char path[512];
    const char *folder = getenv("HAZARD_CGROUP");
    EXPECT(folder != NULL, "no control group");
    snprintf(path, sizeof path, "%s/cgroup.procs", folder);
    int file = open(path, O_WRONLY | O_CLOEXEC);
    EXPECT(file >= 0 && write(file, "0", 1) == 1, "the group cannot be entered");
    close(file);
}

static void live(void) {
    enter_group();
    fill_and_free((void *)(uintptr_t)1024);
    static const size_t sizes[] = {65536, 3000, 1 << 20, 200};
    for (size_t i = 0; i < 4; i++) {
        size_t size = sizes[i] * BLOCKS_MOST < (size_t)MIB << 20 ? 2000 : sizes[i];
        pthread_t thread;
        EXPECT(pthread_create(&thread, NULL, fill_and_free, (void *)(uintptr_t)size) == 0, "no thread");
        pthread_join(thread, NULL);
    }
    tasks_sleep(REST_MS);
    char *own = mmap(NULL, (size_t)MIB << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(own != MAP_FAILED, "no mapping");
    memset(own, 1, (size_t)MIB << 20);
}

int main(void) {
    require_serving();
    int status = in_process(live);
    EXPECT(!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL, "killed by the kernel while its memory lay free");
    EXPECT(status == 0, "it ended with status %#x", (unsigned)status);
    printf("lives on\n");
    return 0;
}
