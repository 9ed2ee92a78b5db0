/* The control group's limit, as many systems tell it: files that are planted in the kernel's place. */
#include "control_group.h"

#include <stdio.h>
#include <string.h>

#include "expect.h"

/* -- the files of one system -------------------------------------------------------------------------------------- */

struct file {
    const char *name, *text;
};

enum { FILES_MOST = 12 };

static const struct file *files;
static size_t files_open, piece, read_so_far, opened;
static const char *current;

long __wrap_os_open(const char *name);
long __wrap_os_open(const char *name) {
    opened++;
    for (size_t i = 0; i < FILES_MOST && files[i].name != NULL; i++) {
        if (strcmp(files[i].name, name) == 0) {
            EXPECT(files_open == 0, "%s is opened beside another", name);
            files_open++;
            current = files[i].text;
            read_so_far = 0;
            return 5;
        }
    }
    return -2;
}

long __wrap_os_read(long file, char *text, size_t bytes);
long __wrap_os_read(long file, char *text, size_t bytes) {
    EXPECT(file == 5 && files_open == 1, "file %ld is read", file);
    size_t left = strlen(current) - read_so_far, size = bytes < left ? bytes : left;
    size = size < piece ? size : piece;
    memcpy(text, current + read_so_far, size);
    read_so_far += size;
    return (long)size;
}

void __wrap_os_close(long file);
void __wrap_os_close(long file) {
    EXPECT(file == 5 && files_open == 1, "file %ld is closed", file);
    files_open--;
}

#define GROUPS "/proc/self/cgroup"
#define MOUNTS "/proc/self/mountinfo"
#define MIB ((size_t)1 << 20)

static char long_mounts[20000];

static const struct {
    const char *name;
    struct file files[FILES_MOST];
    size_t limit;
} systems[] = {
    {"no /proc", {{NULL, NULL}}, CONTROL_GROUP_UNKNOWN},
    {"systemd, a service of version 2: the least of itself and those above",
     {{GROUPS, "0::/system.slice/web.service\n"},
      {MOUNTS, "22 27 0:21 / /proc rw,nosuid - proc proc rw\n"
               "28 23 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 "
               "rw,nsdelegate,memory_recursiveprot\n"},
      {"/sys/fs/cgroup/system.slice/web.service/memory.max", "1073741824\n"},
      {"/sys/fs/cgroup/system.slice/web.service/memory.high", "max\n"},
      {"/sys/fs/cgroup/system.slice/memory.max", "536870912\n"},
      {"/sys/fs/cgroup/system.slice/memory.high", "max\n"}},
     512 * MIB},
    {"systemd, MemoryHigh alone",
     {{GROUPS, "0::/system.slice/web.service\n"},
      {MOUNTS, "28 23 0:26 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw\n"},
      {"/sys/fs/cgroup/system.slice/web.service/memory.max", "max\n"},
      {"/sys/fs/cgroup/system.slice/web.service/memory.high", "314572800\n"}},
     300 * MIB},
    {"a desktop without a limit",
     {{GROUPS,
       "0::/user.slice/user-1000.slice/user@1000.service/app.slice/app-org.gnome.Terminal.slice/vte-spawn-1.scope\n"},
      {MOUNTS, "28 23 0:26 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw\n"},
      {"/sys/fs/cgroup/user.slice/memory.max", "max\n"}},
     CONTROL_GROUP_NONE},
    {"docker, version 2, a namespace of its own",
     {{GROUPS, "0::/\n"},
      {MOUNTS, "751 744 0:26 / /sys/fs/cgroup ro,nosuid,nodev,noexec,relatime - cgroup2 cgroup rw,nsdelegate\n"},
      {"/sys/fs/cgroup/memory.max", "268435456\n"},
      {"/sys/fs/cgroup/memory.high", "max\n"}},
     256 * MIB},
    {"docker, version 2, --cgroupns=host",
     {{GROUPS, "0::/system.slice/docker-4f1c.scope\n"},
      {MOUNTS, "751 744 0:26 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw,nsdelegate\n"},
      {"/sys/fs/cgroup/system.slice/docker-4f1c.scope/memory.max", "268435456\n"}},
     256 * MIB},
    {"docker, version 1: the mount begins with the container's group",
     {{GROUPS,
       "12:cpu,cpuacct:/docker/4f1c\n11:hugetlb:/docker/4f1c\n10:memory:/docker/4f1c\n1:name=systemd:/docker/4f1c\n"},
      {MOUNTS, "740 739 0:30 /docker/4f1c /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n"
               "744 739 0:34 /docker/4f1c /sys/fs/cgroup/memory ro,nosuid,nodev master:17 - cgroup cgroup rw,memory\n"},
      {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "134217728\n"},
      {"/sys/fs/cgroup/cpu,cpuacct/memory.limit_in_bytes", "1\n"}},
     128 * MIB},
    {"version 1, nested, the least is above, and another has none",
     {{GROUPS, "4:memory:/a/b/c\n"},
      {MOUNTS, "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"},
      {"/sys/fs/cgroup/memory/a/b/c/memory.limit_in_bytes", "9223372036854771712\n"},
      {"/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "104857600\n"},
      {"/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "209715200\n"},
      {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"}},
     100 * MIB},
    {"hybrid: memory in version 1, and version 2 beside it",
     {{GROUPS, "9:name=systemd:/\n4:memory:/jobs/7\n0::/\n"},
      {MOUNTS, "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
               "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"},
      {"/sys/fs/cgroup/memory/jobs/7/memory.limit_in_bytes", "52428800\n"}},
     50 * MIB},
    {"podman without root: a group deep below a user's",
     {{GROUPS, "0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-9a.scope/container\n"},
      {MOUNTS, "600 590 0:26 /user.slice/user-1000.slice /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n"},
      {"/sys/fs/cgroup/user@1000.service/user.slice/libpod-9a.scope/container/memory.max", "max\n"},
      {"/sys/fs/cgroup/user@1000.service/user.slice/libpod-9a.scope/memory.max", "73400320\n"}},
     70 * MIB},
    {"Kubernetes: requests and limits at several levels",
     {{GROUPS, "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice/cri-containerd-2.scope\n"},
      {MOUNTS, "28 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"},
      {"/sys/fs/cgroup/kubepods.slice/memory.max", "8589934592\n"},
      {"/sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice/memory.max",
       "419430400\n"},
      {"/sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice/cri-containerd-2.scope/"
       "memory.max",
       "524288000\n"}},
     400 * MIB},
    {"names with spaces, backslashes and colons, in the kernel's escapes",
     {{GROUPS, "0::/my group/a:b\n"},
      {MOUNTS, "28 23 0:26 / /mnt/control\\040groups\\134x rw - cgroup2 cgroup2 rw\n"},
      {"/mnt/control groups\\x/my group/a:b/memory.max", "10485760\n"}},
     10 * MIB},
    {"the mount's root has a space too",
     {{GROUPS, "0::/my group/b\n"},
      {MOUNTS, "28 23 0:26 /my\\040group /g rw a:1 b:2 c:3 - cgroup2 cgroup2 rw\n"},
      {"/g/b/memory.max", "11534336\n"}},
     11 * MIB},
    {"the group lies outside of the namespace",
     {{GROUPS, "0::/../other\n"},
      {MOUNTS, "28 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"},
      {"/sys/fs/cgroup/memory.max", "1\n"}},
     CONTROL_GROUP_UNKNOWN},
    {"a group whose name begins with two dots",
     {{GROUPS, "0::/..x\n"},
      {MOUNTS, "28 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"},
      {"/sys/fs/cgroup/..x/memory.max", "5242880\n"}},
     5 * MIB},
    {"the first mount shows other groups, and its root is but the beginning of a name",
     {{GROUPS, "0::/ab\n"},
      {MOUNTS, "28 23 0:26 /a /one rw - cgroup2 cgroup2 rw\n29 23 0:26 /ab /two rw - cgroup2 cgroup2 rw\n"},
      {"/one/memory.max", "1\n"},
      {"/oneb/memory.max", "1\n"},
      {"/two/memory.max", "12582912\n"}},
     12 * MIB},
    {"the group was removed",
     {{GROUPS, "0::/gone (deleted)\n"}, {MOUNTS, "28 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"}},
     CONTROL_GROUP_NONE},
    {"no groups are mounted, as in a chroot",
     {{GROUPS, "0::/\n"}, {MOUNTS, "22 27 0:21 / /proc rw - proc proc rw\n"}},
     CONTROL_GROUP_UNKNOWN},
    {"a controller whose name only begins so",
     {{GROUPS, "4:memoryless,notmemory:/\n"},
      {MOUNTS, "35 31 0:32 / /m rw - cgroup cgroup rw,memory\n"},
      {"/m/memory.limit_in_bytes", "1\n"}},
     CONTROL_GROUP_NONE},
    {"a line that is too long stands before it",
     {{GROUPS, "0::/\n"}, {MOUNTS, long_mounts}, {"/sys/fs/cgroup/memory.max", "13631488\n"}},
     13 * MIB},
    {"lines that say nothing",
     {{GROUPS, "\n:\n::\n0:\n0::\n0::x\nmemory\n4:memory\n4:memory:\n"},
      {MOUNTS, "\n \n- cgroup2\n1 2 3 4 5 6 - \n1 2 3 4 5 6 - cgroup2\n1 2 3 / /x rw - cgroup2 cgroup2 rw\n"},
      {"/x/memory.max", "1\n"}},
     CONTROL_GROUP_NONE},
};

static void every_system(void) {
    memset(long_mounts, 'x', 15000);
    memcpy(long_mounts, "27 1 0:50 / / rw - overlay overlay rw,lowerdir=", 47);
    /* what is left of a long line is none of its own */
    static const char trap[] = " 1 2 0:1 / /trap rw - cgroup2 cgroup2 rw\n";
    memcpy(long_mounts + 15000, trap, sizeof trap - 1);
    static const char last[] = "28 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
    memcpy(long_mounts + 15000 + sizeof trap - 1, last, sizeof last);
    static const size_t pieces[] = {1, 7, 100, 4096, 100000};
    for (size_t i = 0; i < sizeof systems / sizeof *systems; i++) {
        for (size_t p = 0; p < sizeof pieces / sizeof *pieces; p++) {
            files = systems[i].files;
            piece = pieces[p];
            opened = 0;
            size_t limit = control_group_limit();
            EXPECT(limit == systems[i].limit, "%s, read by %zu bytes: %zu", systems[i].name, piece, limit);
            EXPECT(files_open == 0, "%s: a file stays open", systems[i].name);
            EXPECT(opened <= 3 + 2 * 7 + 1, "%s: %zu files are opened", systems[i].name, opened);
        }
    }
}

/* No number of levels, and no length of a name, makes it read for ever or write where it must not. */
static void deep(void) {
    static char groups[8000], name[8100];
    for (size_t levels = 1; levels < 3000; levels += 7) {
        size_t at = (size_t)snprintf(groups, sizeof groups, "0::");
        for (size_t i = 0; i < levels && at + 4 < sizeof groups; i++) {
            at += (size_t)snprintf(groups + at, sizeof groups - at, "/d");
        }
        snprintf(name, sizeof name, "/g%s/memory.max", groups + 3);
        strcat(groups, "\n");
        const struct file deep_files[FILES_MOST] = {
            {GROUPS, groups}, {MOUNTS, "1 2 3 / /g rw - cgroup2 cgroup2 rw\n"}, {name, "4194304\n"}};
        files = deep_files;
        piece = 4096;
        opened = 0;
        size_t limit = control_group_limit();
        bool fits = strlen(groups) - 4 + 2 < 1024;
        EXPECT(limit == (fits ? 4 * MIB : CONTROL_GROUP_NONE), "%zu levels: %zu", levels, limit);
        EXPECT(opened <= 3 + 2 * 64, "%zu levels: %zu files are opened", levels, opened);
    }
}

static void numbers(void) {
    static const struct {
        const char *text;
        size_t number;
    } cases[] = {{"1\n", 1},
                 {"0\n", 1},
                 {"max\n", CONTROL_GROUP_NONE},
                 {"", CONTROL_GROUP_NONE},
                 {"-1\n", CONTROL_GROUP_NONE},
                 {"4096", 4096},
                 {"9223372036854771712\n", CONTROL_GROUP_NONE},
                 {"18446744073709551615\n", CONTROL_GROUP_NONE},
                 {"99999999999999999999999999\n", CONTROL_GROUP_NONE}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        EXPECT(control_group_number(cases[i].text) == cases[i].number, "'%s' is %zu", cases[i].text,
               control_group_number(cases[i].text));
    }
}

int main(void) {
    every_system();
    deep();
    numbers();
    return 0;
}
