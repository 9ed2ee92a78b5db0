/* A library whose constructor starts a thread and waits for it, as some that open a device or a runtime do. Whatever that thread calls must
 * not ask the dynamic linker, whose lock is held until the constructor is through. */
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "expect.h"

int waiting_library_done(void);

static int done;

int waiting_library_done(void) { return done; }

static void *in_thread(void *unused) {
    (void)unused;
    EXPECT(setuid(getuid()) == 0, "setuid to what it is already fails");
    EXPECT(prctl(PR_SET_NAME, "waited-for") == 0, "PR_SET_NAME fails");
    EXPECT(syscall(SYS_getpid) == getpid(), "another process");
    free(malloc(100));
    return NULL;
}

__attribute__((constructor)) static void wait_for_thread(void) {
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, in_thread, NULL) == 0, "no thread");
    EXPECT(pthread_join(thread, NULL) == 0, "pthread_join failed");
    done = 1;
}
