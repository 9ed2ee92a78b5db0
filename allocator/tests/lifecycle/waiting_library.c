/* A library whose constructor starts a thread and waits for it, as some that open a device or a runtime do. Whatever that thread calls must
 * not ask the dynamic linker, whose lock is held until the constructor is through. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "expect.h"

int waiting_library_done(void);

static int done;

int waiting_library_done(void) { return done; }

/* As the library has them: the header warns of some, and has others under certain settings only. */
typedef void handler(int);
#define SETTERS(each) each(signal) each(ssignal) each(bsd_signal) each(sysv_signal) each(__sysv_signal) each(sigset)
#define DECLARE(name) extern handler *call_##name(int, handler *) __asm__(#name) __attribute__((weak));
SETTERS(DECLARE)
extern int call_sigignore(int) __asm__("sigignore") __attribute__((weak));

#define CALL(name)                                                                                                 \
    EXPECT(call_##name == NULL || call_##name(SIGUSR1, SIG_DFL) != SIG_ERR || errno == ENOSYS, #name " fails: %d", \
           errno);
static void set_handlers(void) {
    SETTERS(CALL)
    EXPECT(call_sigignore == NULL || call_sigignore(SIGUSR1) == 0, "sigignore fails: %d", errno);
}

static void *in_thread(void *unused) {
    (void)unused;
    EXPECT(setuid(getuid()) == 0, "setuid to what it is already fails");
    EXPECT(prctl(PR_SET_NAME, "waited-for") == 0, "PR_SET_NAME fails");
    EXPECT(syscall(SYS_getpid) == getpid(), "another process");
    set_handlers();
    free(malloc(100));
    return NULL;
}

__attribute__((constructor)) static void wait_for_thread(void) {
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, in_thread, NULL) == 0, "no thread");
    EXPECT(pthread_join(thread, NULL) == 0, "pthread_join failed");
    done = 1;
}
