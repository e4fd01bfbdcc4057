/* Preloaded into the server: remembers the one journal block that is written but not synced yet, so
 * that a test can take it away after a kill as a power cut would, and fails chosen syncs with EIO.
 *
 * MAINSPRING_SHIM_NOTE  a file of 4096 bytes: pending u64, offset u64, length u64, syncs u64, path
 * MAINSPRING_SHIM_EIO   the how many-th sync of a journal block fails; 0 or unset for none
 *
 * The note is cleared after a sync returned and before its caller hears of it: whatever is noted
 * was never acknowledged. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct note {
    uint64_t pending, offset, length, syncs;
    char path[1024];
};

static struct note *note;
static uint64_t fails_at;
static int pending_fd = -1;
static ssize_t (*real_pwrite)(int, const void *, size_t, off64_t);
static int (*real_fdatasync)(int);

__attribute__((constructor)) static void start(void) {
    real_pwrite = dlsym(RTLD_NEXT, "pwrite64");
    real_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
    const char *path = getenv("MAINSPRING_SHIM_NOTE");
    const char *nth = getenv("MAINSPRING_SHIM_EIO");
    fails_at = nth ? strtoull(nth, NULL, 10) : 0;
    int fd = path ? open(path, O_RDWR) : -1;
    if (fd >= 0) {
        void *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (map != MAP_FAILED) note = map;
        close(fd);
    }
}

static int is_block(const void *bytes, size_t count) {
    return count >= 32 && (!memcmp(bytes, "OPEN", 4) || !memcmp(bytes, "FRMS", 4) ||
                           !memcmp(bytes, "SEAL", 4));
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t offset) {
    if (note && is_block(bytes, count)) {
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t length = readlink(link, note->path, sizeof note->path - 1);
        note->path[length < 0 ? 0 : length] = 0;
        note->offset = (uint64_t)offset;
        note->length = count;
        __atomic_store_n(&note->pending, 1, __ATOMIC_SEQ_CST);
        pending_fd = fd;
    }
    return real_pwrite(fd, bytes, count, offset);
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t offset) {
    return pwrite64(fd, bytes, count, offset);
}

int fdatasync(int fd) {
    if (!note || fd != pending_fd) return real_fdatasync(fd);
    uint64_t nth = ++note->syncs;
    if (fails_at && nth == fails_at) {
        errno = EIO;
        return -1;
    }
    int done = real_fdatasync(fd);
    if (!done) __atomic_store_n(&note->pending, 0, __ATOMIC_SEQ_CST);
    return done;
}
