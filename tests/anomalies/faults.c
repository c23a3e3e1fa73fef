/* Fails or kills at the n-th call that touches the history: FAULT_AT=n, FAULT_HOW=errno or "kill", FAULT_IN=folder. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static long calls = 0;

static int faulty(const char *path) {
    const char *at = getenv("FAULT_AT"), *how = getenv("FAULT_HOW"), *in = getenv("FAULT_IN");
    if (!at || !how || !in || !path || strncmp(path, in, strlen(in))) return 0;
    if (__sync_add_and_fetch(&calls, 1) != atol(at)) return 0;
    if (!strcmp(how, "kill")) raise(SIGKILL);
    errno = atoi(how);
    return 1;
}

static int faulty_fd(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0) return 0;
    path[size] = 0;
    return faulty(path);
}

#define REAL(name) __typeof__(&name) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)
ssize_t write(int fd, const void *data, size_t size) { REAL(write); return faulty_fd(fd) ? -1 : real(fd, data, size); }
ssize_t pwrite(int fd, const void *data, size_t size, off_t at) { REAL(pwrite); return faulty_fd(fd) ? -1 : real(fd, data, size, at); }
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) { REAL(pwrite64); return faulty_fd(fd) ? -1 : real(fd, data, size, at); }
int fsync(int fd) { REAL(fsync); return faulty_fd(fd) ? -1 : real(fd); }
int fdatasync(int fd) { REAL(fdatasync); return faulty_fd(fd) ? -1 : real(fd); }
int ftruncate(int fd, off_t size) { REAL(ftruncate); return faulty_fd(fd) ? -1 : real(fd, size); }
int ftruncate64(int fd, off64_t size) { REAL(ftruncate64); return faulty_fd(fd) ? -1 : real(fd, size); }
int rename(const char *from, const char *to) { REAL(rename); return faulty(to) ? -1 : real(from, to); }
int link(const char *from, const char *to) { REAL(link); return faulty(to) ? -1 : real(from, to); }
int unlink(const char *path) { REAL(unlink); return faulty(path) ? -1 : real(path); }

#define OPEN(name)                                                                                                   \
    int name(const char *path, int flags, ...) {                                                                    \
        REAL(name);                                                                                                  \
        va_list more;                                                                                                \
        va_start(more, flags);                                                                                       \
        mode_t mode = va_arg(more, mode_t);                                                                          \
        va_end(more);                                                                                                \
        return faulty(path) ? -1 : real(path, flags, mode);                                                          \
    }
OPEN(open)
OPEN(open64)
