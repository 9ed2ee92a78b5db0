#define _GNU_SOURCE
#include "sideband.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct ring {
    int descriptor;
    struct perf_event_mmap_page *head; /* the control page; the data follow it */
    size_t size;                       /* of the data, a power of two */
};

static struct census *target;
static struct ring *rings;
static size_t ring_count;

/* The largest record the kernel writes is a mapping with a path of 4 KiB; a buffer that had less room than that when it
 * was read may have lost one without a later record to say so. */
static const size_t largest_record = 8192;

static const size_t kib = 1024;

static int open_dummy(int cpu) {
    struct perf_event_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.size = sizeof attr;
    attr.type = PERF_TYPE_SOFTWARE;
    attr.config = PERF_COUNT_SW_DUMMY;
    attr.sample_type = PERF_SAMPLE_TIME; /* with sample_id_all: every record ends in its time */
    attr.sample_id_all = 1;
    attr.use_clockid = 1;
    attr.clockid = CLOCK_MONOTONIC;
    attr.disabled = 1;
    attr.inherit = 1;
    attr.enable_on_exec = 1;
    attr.exclude_kernel = 1;
    attr.exclude_hv = 1;
    attr.task = 1;
    attr.comm = 1;
    attr.comm_exec = 1;
    attr.mmap = 1;
    attr.mmap2 = 1;
    attr.watermark = 1;
    attr.wakeup_watermark = 64 * 1024;
    return (int)syscall(SYS_perf_event_open, &attr, 0, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/* Every CPU has its own buffer. An ordinary user may lock 512 KiB per CPU (perf_event_mlock_kb), less if somebody else
 * of the same name uses some of it, so the size steps down. */
static bool map_ring(struct ring *ring) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t size = 512 * kib; size >= 64 * kib && size >= page; size /= 2) {
        void *mapped = mmap(NULL, size + page, PROT_READ | PROT_WRITE, MAP_SHARED, ring->descriptor, 0);
        if (mapped != MAP_FAILED) {
            ring->head = mapped;
            ring->size = size;
            return true;
        }
        if (errno != EPERM)
            return false;
    }
    return false;
}

static const char *refusal_of(int error) {
    switch (error) {
    case EACCES:
    case EPERM:
        return "perf events are refused (kernel.perf_event_paranoid, or a sandbox)";
    case ENOSYS:
        return "the kernel has no perf events, or a sandbox hides them";
    case EMFILE:
        return "too few file descriptors for one perf event per CPU";
    default:
        return "perf events cannot be opened here";
    }
}

bool sideband_open(struct census *census, const char **refusal) {
    const long configured = sysconf(_SC_NPROCESSORS_CONF);
    const size_t cpus = configured > 0 ? (size_t)configured : 1;
    target = census;
    rings = calloc(cpus, sizeof *rings);
    if (rings == NULL) {
        *refusal = "no memory for perf's buffers";
        return false;
    }
    for (size_t cpu = 0; cpu < cpus; cpu++) {
        struct ring *ring = &rings[ring_count];
        ring->descriptor = open_dummy((int)cpu);
        if (ring->descriptor < 0 && errno == ENODEV)
            continue; /* the CPU is offline */
        if (ring->descriptor < 0) {
            *refusal = refusal_of(errno);
            return false;
        }
        ring_count++;
        if (!map_ring(ring)) {
            *refusal = "perf's buffers are refused (kernel.perf_event_mlock_kb)";
            return false;
        }
    }
    if (ring_count == 0)
        *refusal = "no CPU is online for perf";
    return ring_count > 0;
}

size_t sideband_poll(struct pollfd *entries, size_t room) {
    const size_t count = ring_count < room ? ring_count : room;
    for (size_t i = 0; i < count; i++)
        entries[i] = (struct pollfd){rings[i].descriptor, POLLIN, 0};
    return count;
}

/* Record bodies after the header, as perf_event_open(2) lays them out; each ends in the time (sample_id_all). */
struct task_body {
    uint32_t pid, parent, thread, parent_thread;
};
struct comm_body {
    uint32_t pid, thread;
    char name[];
};
struct map_body {
    uint32_t pid, thread;
    uint64_t address, length, offset;
    uint32_t major, minor;
    uint64_t inode, generation;
    uint32_t protection, flags;
    char path[];
};

static void take_record(const struct perf_event_header *header) {
    const char *bytes = (const char *)header, *body = bytes + sizeof *header;
    uint64_t at;
    memcpy(&at, bytes + header->size - sizeof at, sizeof at);
    switch (header->type) {
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT: {
        const struct task_body *task = (const void *)body;
        if (task->pid != task->thread)
            return; /* a thread of a process that is counted already */
        const enum census_event_kind kind = header->type == PERF_RECORD_FORK ? CENSUS_FORK : CENSUS_EXIT;
        census_add(target, kind, at, (pid_t)task->pid, (pid_t)task->parent, NULL);
        return;
    }
    case PERF_RECORD_COMM: {
        const struct comm_body *comm = (const void *)body;
        if ((header->misc & PERF_RECORD_MISC_COMM_EXEC) == 0)
            return; /* a process that renamed itself */
        census_add(target, CENSUS_EXEC, at, (pid_t)comm->pid, 0, comm->name);
        return;
    }
    case PERF_RECORD_MMAP2: {
        const struct map_body *map = (const void *)body;
        if (map->path[0] != '/' || map->path[1] == '/')
            return; /* "//anon": code made at run time */
        census_add(target, CENSUS_IMAGE, at, (pid_t)map->pid, 0, map->path);
        return;
    }
    case PERF_RECORD_LOST:
        census_incomplete(target, "the kernel lost side-band records");
        return;
    default:
        return;
    }
}

static void drain(struct ring *ring) {
    const char *data = (const char *)ring->head + sysconf(_SC_PAGESIZE);
    /* Acquire: the records before data_head are complete once it is seen. */
    const uint64_t head = __atomic_load_n(&ring->head->data_head, __ATOMIC_ACQUIRE);
    uint64_t tail = ring->head->data_tail;
    if (head - tail + largest_record > ring->size)
        census_incomplete(target, "a side-band buffer ran full");
    static union {
        struct perf_event_header header;
        char bytes[UINT16_MAX + 1]; /* the size of a record is 16 bits wide */
    } record;
    while (tail < head) {
        const size_t at = (size_t)(tail & (ring->size - 1)), straight = ring->size - at;
        /* Headers are 8-byte aligned and never wrap; bodies do. */
        struct perf_event_header header;
        memcpy(&header, data + at, sizeof header);
        if (header.size < sizeof header + sizeof(uint64_t))
            break;
        const size_t first = header.size < straight ? header.size : straight;
        memcpy(record.bytes, data + at, first);
        memcpy(record.bytes + first, data, header.size - first);
        take_record(&record.header);
        tail += header.size;
    }
    /* Release: the records are copied before the kernel may write over them. */
    __atomic_store_n(&ring->head->data_tail, head, __ATOMIC_RELEASE);
}

void sideband_drain(void) {
    for (size_t i = 0; i < ring_count; i++)
        drain(&rings[i]);
}
