/* Loaded before the C library into a recorder: what its file system and its clocks give.

GPUWATCH_FAULTS names a file of five 64-bit numbers, which the test changes while the program runs:
    0  nanoseconds that CLOCK_REALTIME is ahead
    1  nanoseconds that CLOCK_BOOTTIME is ahead
    2  an error number for every write to a file of a session; 0: none
    3  writes to a file of a session that still go through before the process stops itself
       (SIGSTOP), counted down; negative: never
    4  nanoseconds that CLOCK_MONOTONIC is ahead
*/
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *switches;

__attribute__((constructor)) static void open_switches(void) {
    const char *path = getenv("GPUWATCH_FAULTS");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0) return;
    void *found = mmap(NULL, 5 * sizeof(int64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (found != MAP_FAILED) switches = found;
}

static int of_session(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return strstr(path, ".gpuwatch") != NULL;
}

/* Whether a write fails; the process may have stood still on the way. */
static int fails(int fd) {
    if (!switches || (!switches[2] && switches[3] < 0) || !of_session(fd)) return 0;
    if (switches[3] >= 0 && switches[3]-- == 0) raise(SIGSTOP);
    if (switches[2]) errno = (int)switches[2];
    return switches[2] != 0;
}

int clock_gettime(clockid_t which, struct timespec *now) {
    static int (*next)(clockid_t, struct timespec *);
    if (!next) next = dlsym(RTLD_NEXT, "clock_gettime");
    int code = next(which, now);
    if (code || !switches) return code;
    int64_t ahead = which == CLOCK_REALTIME    ? switches[0]
                    : which == CLOCK_BOOTTIME  ? switches[1]
                    : which == CLOCK_MONOTONIC ? switches[4]
                                               : 0;
    int64_t all = now->tv_sec * 1000000000LL + now->tv_nsec + ahead;
    now->tv_sec = all / 1000000000LL;
    now->tv_nsec = all % 1000000000LL;
    return 0;
}

#define WRITER(name, type, ...)                                   \
    static type (*next)();                                        \
    if (!next) next = (type(*)())dlsym(RTLD_NEXT, name);          \
    return fails(fd) ? -1 : next(__VA_ARGS__)

ssize_t pwrite64(int fd, const void *data, size_t length, off64_t at) {
    WRITER("pwrite64", ssize_t, fd, data, length, at);
}
ssize_t pwrite(int fd, const void *data, size_t length, off_t at) {
    WRITER("pwrite", ssize_t, fd, data, length, at);
}
ssize_t write(int fd, const void *data, size_t length) {
    WRITER("write", ssize_t, fd, data, length);
}
int ftruncate64(int fd, off64_t length) { WRITER("ftruncate64", int, fd, length); }
int ftruncate(int fd, off_t length) { WRITER("ftruncate", int, fd, length); }
int fsync(int fd) { WRITER("fsync", int, fd); }
int fdatasync(int fd) { WRITER("fdatasync", int, fd); }
