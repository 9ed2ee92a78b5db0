/* 600 threads have worked in many sizes, so that their caches are full, and sleep.
 *
 *   sleepers instructions     a thread that works takes at most twice the instructions it takes beside one sleeper: what threads
 *                             may keep goes by those that work, not by those that exist
 *   sleepers memory           what the sleepers' work has left resident, some seconds later
 *
 * Instructions are counted by stepping through them, with all other threads stopped. Stepping is slow, up to half a millisecond
 * each on some virtual machines: every size has one turn, and who looks round by the clock would come ten thousand times too
 * often. */
#include "hazard.h"

#include <dirent.h>
#include <sched.h>
#include <sys/ptrace.h>

enum { SLEEPERS = 600, CLASSES = 20, OF_A_CLASS = 64, BYTES_OF_A_CLASS = 16384, MOST_MIB = 32, REST_MS = 5000 };
enum { HELD = 64, SIZES = 5, WARM_TURNS = 200, TURNS = SIZES, TIMES = 2, A_PAIR_MOST = 1000 };

static struct {
    _Atomic int counts;
} *shared;
static size_t sleepers;
static pthread_barrier_t born, begun, asleep;
static pthread_mutex_t in_turn = PTHREAD_MUTEX_INITIALIZER;

/* One class after the other, twice, as many blocks as a cache may like to keep. */
static void fill_caches(void) {
    for (size_t i = 0, size = 16; i < 2 * CLASSES; i++, size = i == CLASSES ? 16 : size + size / 3 + 8) {
        void *held[OF_A_CLASS];
        size_t count = BYTES_OF_A_CLASS / size < OF_A_CLASS ? BYTES_OF_A_CLASS / size + 1 : OF_A_CLASS;
        for (size_t b = 0; b < count; b++) {
            held[b] = malloc(size);
            EXPECT(held[b] != NULL, "malloc failed");
            memset(held[b], 1, size);
        }
        for (size_t b = 0; b < count; b++) {
            free(held[b]);
        }
    }
}

static void *work_and_sleep(void *unused) {
    char *volatile stack = (char[8192]){1};
    (void)stack;
    pthread_barrier_wait(&born);
    pthread_barrier_wait(&begun);
    pthread_mutex_lock(&in_turn); /* what they use at once would be another hazard */
    fill_caches();
    pthread_mutex_unlock(&in_turn);
    pthread_barrier_wait(&asleep);
    for (;;) {
        pause();
    }
    return unused;
}

/* Returns what was resident when all were born and none had worked. */
static size_t put_to_sleep(void) {
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    pthread_attr_setdetachstate(&small, PTHREAD_CREATE_DETACHED);
    pthread_barrier_init(&born, NULL, (unsigned)sleepers + 1);
    pthread_barrier_init(&begun, NULL, (unsigned)sleepers + 1);
    pthread_barrier_init(&asleep, NULL, (unsigned)sleepers + 1);
    for (size_t t = 0; t < sleepers; t++) {
        pthread_t thread;
        EXPECT(pthread_create(&thread, &small, work_and_sleep, NULL) == 0, "no thread");
    }
    pthread_barrier_wait(&born);
    size_t before = resident_kib();
    pthread_barrier_wait(&begun);
    pthread_barrier_wait(&asleep);
    return before;
}

static void work(size_t turns) {
    static const size_t sizes[SIZES] = {24, 64, 200, 500, 1000};
    void *held[HELD];
    for (size_t turn = 0; turn < turns; turn++) {
        for (size_t i = 0; i < HELD; i++) {
            held[i] = malloc(sizes[turn % SIZES]);
        }
        for (size_t i = 0; i < HELD; i++) {
            free(held[i]);
        }
    }
}

/* Who steps and who is stepped through take turns: on one CPU, without waking each other up on another. */
static void stay_on(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    (void)sched_setaffinity(0, sizeof set, &set);
}

static void work_counted(int cpu) {
    put_to_sleep();
    tasks_sleep(1000); /* they sleep indeed, and whoever looks for what they keep has looked */
    work(WARM_TURNS);
    EXPECT(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0, "nothing can be traced here");
    stay_on(cpu);
    raise(SIGSTOP);
    shared->counts = 1;
    work(TURNS);
    shared->counts = 0;
    _exit(0);
}

/* The other threads of a process, the allocator's own among them, stay where they are until it ends. */
static void stop_others(pid_t process) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", process);
    DIR *folder = opendir(path);
    EXPECT(folder != NULL, "%s cannot be opened", path);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        pid_t task = (pid_t)strtol(entry->d_name, NULL, 10);
        if (task != 0 && task != process && ptrace(PTRACE_SEIZE, task, NULL, NULL) == 0) {
            EXPECT(ptrace(PTRACE_INTERRUPT, task, NULL, NULL) == 0 && waitpid(task, NULL, __WALL) == task,
                   "a thread cannot be stopped");
        }
    }
    closedir(folder);
}

/* Of a call of malloc with its free. */
static double instructions(size_t beside, double most) {
    sleepers = beside;
    int cpu = sched_getcpu();
    pid_t process = fork();
    EXPECT(process >= 0, "fork failed");
    if (process == 0) {
        work_counted(cpu);
    }
    int status = 0;
    EXPECT(waitpid(process, &status, __WALL) == process && WIFSTOPPED(status), "it ended with status %#x",
           (unsigned)status);
    stop_others(process);
    size_t steps = 0;
    cpu_set_t before;
    EXPECT(sched_getaffinity(0, sizeof before, &before) == 0, "no CPUs");
    stay_on(cpu);
    for (bool begun = false; !begun || shared->counts != 0; begun = begun || shared->counts != 0) {
        EXPECT(ptrace(PTRACE_SINGLESTEP, process, NULL, NULL) == 0 && waitpid(process, &status, __WALL) == process &&
                   WIFSTOPPED(status),
               "it ended with status %#x", (unsigned)status);
        steps += begun;
        if ((double)steps > most * TURNS * HELD) {
            kill(process, SIGKILL);
            EXPECT(beside == 1, "more than %.0f instructions a pair of calls among %zu sleepers", most, beside);
            expect_skip("it cannot be stepped through: restartable sequences begin anew for ever");
        }
    }
    (void)sched_setaffinity(0, sizeof before, &before);
    kill(process, SIGKILL);
    while (waitpid(-1, NULL, __WALL) >
           0) { /* each thread that was stopped has to be asked after, or the process never ends */
    }
    return (double)steps / (TURNS * (double)HELD);
}

static void judge_memory(void) {
    sleepers = SLEEPERS;
    size_t before = put_to_sleep(), most = before + MOST_MIB * 1024;
    size_t left = resident_kib();
    for (long end = tasks_clock() + REST_MS; left > most && tasks_clock() < end; left = resident_kib()) {
        tasks_sleep(50);
    }
    EXPECT(left <= most, "%zu KiB for each of %d sleepers, %d s after their work", (left - before) / SLEEPERS, SLEEPERS,
           REST_MS / 1000);
    printf("%zu KiB for each of %d sleepers\n", left > before ? (left - before) / SLEEPERS : 0, SLEEPERS);
}

int main(int count, char **arguments) {
    require_serving();
    EXPECT(count == 2, "usage: sleepers instructions|memory");
    if (strcmp(arguments[1], "memory") == 0) {
        judge_memory();
        return 0;
    }
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    EXPECT(shared != MAP_FAILED, "no mapping");
    /* Never the only thread: allocators know a shorter way for that. */
    double one = instructions(1, A_PAIR_MOST), all = instructions(SLEEPERS, 1.25 * TIMES * one);
    EXPECT(all <= TIMES * one, "%.0f instructions a pair of calls among %d sleepers, %.0f beside one", all, SLEEPERS,
           one);
    printf("%.0f instructions a pair of calls among %d sleepers, %.0f beside one\n", all, SLEEPERS, one);
    return 0;
}
