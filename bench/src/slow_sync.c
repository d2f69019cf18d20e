/* Put before libc's fsync and fdatasync: counts the calls, and makes each take longer by the microseconds in
 * SYNC_DELAY_US, as on a slower disk. The count stands in the file SYNC_COUNT_FILE, as eight bytes. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_uint_least64_t calls;
static int count_file = -1;
static useconds_t delay_us;

__attribute__((constructor)) static void prepare(void) {
    const char *path = getenv("SYNC_COUNT_FILE");
    const char *delay = getenv("SYNC_DELAY_US");
    if (path) count_file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (delay) delay_us = (useconds_t)strtoul(delay, NULL, 10);
}

static void count(void) {
    uint64_t now = atomic_fetch_add(&calls, 1) + 1;
    if (count_file >= 0 && pwrite(count_file, &now, sizeof now, 0) != sizeof now) abort();
    if (delay_us) usleep(delay_us);
}

int fdatasync(int fd) {
    count();
    return (int)syscall(SYS_fdatasync, fd);
}

int fsync(int fd) {
    count();
    return (int)syscall(SYS_fsync, fd);
}
