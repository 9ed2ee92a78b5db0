/* Each thread stops at the entry and at the exit of each call. A refused one is given a number at its entry that the
 * kernel does not know, and its result at its exit. */
#include "traced.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "expect.h"
#include "syscall_info.h"

#if defined(__x86_64__) || defined(__aarch64__)

enum {
    THREADS_MOST = 256,
    RANGES_MOST = 256,
    STOP_CALL = SIGTRAP | 0x80,
};

static struct {
    pid_t id;
    bool keeper, refused, starts;
    bool announced, held; /* by who has started it; it may stop before that is told, and waits for it */
    long result; /* of the call that is refused */
} threads[THREADS_MOST];

/* Executable mappings of the program. */
static struct {
    uint64_t start, end;
    bool ours;
} ranges[RANGES_MOST];
static size_t range_count;

static size_t thread_row(pid_t id) {
    size_t empty = THREADS_MOST;
    for (size_t t = 0; t < THREADS_MOST; t++) {
        if (threads[t].id == id) {
            return t;
        }
        if (threads[t].id == 0 && empty == THREADS_MOST) {
            empty = t;
        }
    }
    EXPECT(empty < THREADS_MOST, "more than %d threads are traced", THREADS_MOST);
    memset(&threads[empty], 0, sizeof threads[empty]);
    threads[empty].id = id;
    return empty;
}

static void read_ranges(pid_t id, const char *library) {
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/%d/maps", id);
    FILE *maps = fopen(path, "r");
    EXPECT(maps != NULL, "%s cannot be opened", path);
    range_count = 0;
    while (fgets(line, sizeof line, maps) != NULL) {
        unsigned long start, end;
        char rights[5];
        if (sscanf(line, "%lx-%lx %4s", &start, &end, rights) != 3 || rights[2] != 'x') {
            continue;
        }
        EXPECT(range_count < RANGES_MOST, "more than %d mappings with code", RANGES_MOST);
        ranges[range_count].start = start;
        ranges[range_count].end = end;
        ranges[range_count++].ours = strstr(line, library) != NULL;
    }
    fclose(maps);
}

static bool is_ours(pid_t id, uint64_t instruction, const char *library) {
    for (int attempt = 0; attempt < 2; attempt++) {
        for (size_t r = 0; r < range_count; r++) {
            if (instruction >= ranges[r].start && instruction < ranges[r].end) {
                return ranges[r].ours;
            }
        }
        read_ranges(id, library);
    }
    return false;
}

#ifdef __x86_64__

static void set_number(pid_t id, long number) {
    (void)ptrace(PTRACE_POKEUSER, id, offsetof(struct user, regs.orig_rax), number);
}

static void set_result(pid_t id, long result) {
    (void)ptrace(PTRACE_POKEUSER, id, offsetof(struct user, regs.rax), result);
}

#else

static void set_number(pid_t id, long number) {
    int word = (int)number;
    struct iovec whole = {&word, sizeof word};
    (void)ptrace(PTRACE_SETREGSET, id, 0x404 /* NT_ARM_SYSTEM_CALL */, &whole);
}

static void set_result(pid_t id, long result) {
    struct user_regs_struct registers;
    struct iovec whole = {&registers, sizeof registers};
    if (ptrace(PTRACE_GETREGSET, id, NT_PRSTATUS, &whole) == 0) {
        registers.regs[0] = (unsigned long long)result;
        (void)ptrace(PTRACE_SETREGSET, id, NT_PRSTATUS, &whole);
    }
}

#endif

static void stopped_at_call(struct trace *trace, size_t row) {
    pid_t id = threads[row].id;
    struct syscall_info info;
    if (ptrace(PTRACE_GET_SYSCALL_INFO, id, sizeof info, &info) <= 0) {
        return; /* it was killed meanwhile */
    }
    if (info.stop == STOP_EXIT) {
        if (threads[row].refused) {
            set_result(id, threads[row].result);
        }
        threads[row].refused = threads[row].starts = false;
        return;
    }
    if (info.stop != STOP_ENTRY) {
        return;
    }
    if ((long)info.number == TRACED_SAY) {
        trace->hear(trace, (long)info.arguments[0]);
        threads[row].refused = true;
        threads[row].result = 0;
        set_number(id, -1);
        return;
    }
    if (!is_ours(id, info.instruction, trace->library)) {
        return;
    }
    struct traced_call call = {.number = (long)info.number, .thread = id, .keeper = threads[row].keeper};
    memcpy(call.arguments, info.arguments, sizeof call.arguments);
    threads[row].starts = call.number == SYS_clone;
    int error = trace->decide(trace, &call);
    if (error != 0) {
        threads[row].refused = true;
        threads[row].result = -error;
        set_number(id, -1);
    }
}

enum { HOLD = -1 };

/* What `row`'s thread has just started may go on. */
static void announce(size_t row, bool cloned) {
    unsigned long started = 0;
    (void)ptrace(PTRACE_GETEVENTMSG, threads[row].id, 0, &started);
    size_t new = thread_row((pid_t)started);
    threads[new].keeper = cloned && threads[row].starts;
    threads[new].announced = true;
    if (threads[new].held) {
        threads[new].held = false;
        (void)ptrace(PTRACE_SYSCALL, (pid_t)started, 0, 0);
    }
}

/* Returns the signal that the thread is to be given, or HOLD. */
static int stopped(struct trace *trace, pid_t id, int status) {
    size_t row = thread_row(id);
    int signal = WSTOPSIG(status);
    if (!threads[row].announced) {
        threads[row].held = true;
        return HOLD;
    }
    if (signal == STOP_CALL) {
        stopped_at_call(trace, row);
        return 0;
    }
    switch (status >> 16) {
    case 0:
        /* A new thread or process begins with a stop that is nobody's signal. */
        return signal == SIGSTOP ? 0 : signal;
    case PTRACE_EVENT_CLONE:
    case PTRACE_EVENT_FORK:
    case PTRACE_EVENT_VFORK:
        announce(row, status >> 16 == PTRACE_EVENT_CLONE);
        return 0;
    case PTRACE_EVENT_EXEC:
        range_count = 0;
        return 0;
    default:
        return 0;
    }
}

int traced_run(struct trace *trace, char **command) {
    memset(threads, 0, sizeof threads);
    range_count = 0;
    pid_t program = fork();
    EXPECT(program >= 0, "fork failed");
    if (program == 0) {
        if (ptrace(PTRACE_TRACEME, 0, 0, 0) != 0) {
            _exit(EXPECT_SKIPPED);
        }
        raise(SIGSTOP);
        execv(command[0], command);
        _exit(127);
    }
    int status = 0;
    EXPECT(waitpid(program, &status, 0) == program, "waitpid failed");
    if (!WIFSTOPPED(status)) {
        expect_skip("ptrace is not allowed here");
    }
    long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                   PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
    EXPECT(ptrace(PTRACE_SETOPTIONS, program, 0, options) == 0, "ptrace options: errno %d", errno);
    threads[thread_row(program)].announced = true;
    int signal = 0;
    pid_t id = program;
    for (;;) {
        if (signal != HOLD) {
            (void)ptrace(PTRACE_SYSCALL, id, 0, signal);
        }
        id = waitpid(-1, &status, __WALL);
        if (id < 0 && errno == EINTR) {
            signal = HOLD;
            continue;
        }
        EXPECT(id > 0, "the program was lost, errno %d", errno);
        signal = 0;
        if (WIFSTOPPED(status)) {
            signal = stopped(trace, id, status);
            continue;
        }
        if (id == program) {
            return status;
        }
        threads[thread_row(id)].id = 0;
    }
}

bool traced_text(const struct traced_call *call, uint64_t address, char *text, size_t size) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/mem", call->thread);
    int memory = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = memory < 0 ? -1 : pread(memory, text, size - 1, (off_t)address);
    if (memory >= 0) {
        close(memory);
    }
    text[length < 0 ? 0 : length] = '\0';
    return length > 0;
}

#else

int traced_run(struct trace *trace, char **command) {
    (void)trace;
    (void)command;
    expect_skip("calls are traced on x86-64 and aarch64 only");
}

bool traced_text(const struct traced_call *call, uint64_t address, char *text, size_t size) {
    (void)call;
    (void)address;
    (void)text;
    (void)size;
    return false;
}

#endif
