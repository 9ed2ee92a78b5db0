/* A thread that works is served as quickly among 600 that sleep as beside one. Two processes, one of each kind, take turns, so
 * that noise of the machine meets both, and the best turn of each counts. */
#include "hazard.h"

enum { SLEEPERS = 600, HELD = 64, TURNS = 20000, TIMES = 2, ROUNDS = 7 };

struct worker {
    size_t sleepers;
    int orders, answers;
    double best;
};

static pthread_barrier_t asleep;

static void *sleep_on(void *unused) {
    free(unseen(malloc(100)));
    pthread_barrier_wait(&asleep);
    for (;;) {
        pause();
    }
    return unused;
}

static double nanoseconds_a_call(void) {
    static const size_t sizes[] = {24, 64, 200, 500, 1000};
    void *held[HELD];
    uint64_t start = nanoseconds();
    for (size_t turn = 0; turn < TURNS; turn++) {
        for (size_t i = 0; i < HELD; i++) {
            held[i] = malloc(sizes[turn % 5]);
        }
        for (size_t i = 0; i < HELD; i++) {
            free(held[i]);
        }
    }
    return (double)(nanoseconds() - start) / (TURNS * (double)HELD);
}

static void answer_orders(size_t sleepers, int orders, int answers) {
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    pthread_attr_setdetachstate(&small, PTHREAD_CREATE_DETACHED);
    pthread_barrier_init(&asleep, NULL, (unsigned)sleepers + 1);
    for (size_t t = 0; t < sleepers; t++) {
        pthread_t thread;
        EXPECT(pthread_create(&thread, &small, sleep_on, NULL) == 0, "no thread");
    }
    pthread_barrier_wait(&asleep);
    char order;
    while (read(orders, &order, 1) == 1) {
        double taken = nanoseconds_a_call();
        EXPECT(write(answers, &taken, sizeof taken) == sizeof taken, "nobody takes an answer");
    }
    _exit(0);
}

static void start_worker(struct worker *worker) {
    int orders[2], answers[2];
    EXPECT(pipe(orders) == 0 && pipe(answers) == 0, "no pipe");
    pid_t process = fork();
    EXPECT(process >= 0, "fork failed");
    if (process == 0) {
        close(orders[1]);
        close(answers[0]);
        answer_orders(worker->sleepers, orders[0], answers[1]);
    }
    close(orders[0]);
    close(answers[1]);
    worker->orders = orders[1];
    worker->answers = answers[0];
}

static void take_turn(struct worker *worker) {
    double taken;
    EXPECT(write(worker->orders, "w", 1) == 1 && read(worker->answers, &taken, sizeof taken) == sizeof taken,
           "the process with %zu sleepers has ended", worker->sleepers);
    worker->best = worker->best == 0 || taken < worker->best ? taken : worker->best;
}

int main(void) {
    require_serving();
    (void)signal(SIGPIPE, SIG_IGN);
    /* Never the only thread: allocators know a shorter way for that. */
    struct worker beside_one = {.sleepers = 1}, among_all = {.sleepers = SLEEPERS};
    start_worker(&beside_one);
    start_worker(&among_all);
    for (int round = 0; round < ROUNDS; round++) {
        take_turn(&beside_one);
        take_turn(&among_all);
    }
    double one = beside_one.best, all = among_all.best;
    EXPECT(all <= TIMES * one, "%.1f ns among %d sleepers, %.1f beside one", all, SLEEPERS, one);
    printf("%.2f times the time among %d sleepers\n", all / one, SLEEPERS);
    return 0;
}
