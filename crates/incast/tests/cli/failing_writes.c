/*
 * Loaded before libc: one call that writes below $FAIL_BELOW fails as $FAIL_AS
 * says, the one with the number $FAIL_AT, from 1. With $FAIL_COUNT the number
 * of calls is written to that file when the process ends. With $FAIL_LINKS no
 * file can have a second name, as on two file systems.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static atomic_long calls;

static int is_below(const char *path)
{
	const char *below = getenv("FAIL_BELOW");

	return below && path && strncmp(path, below, strlen(below)) == 0;
}

static int is_below_fd(int fd)
{
	char link[64], path[4096];
	ssize_t length;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, path, sizeof(path) - 1);
	if (length < 0)
		return 0;
	path[length] = 0;
	return is_below(path);
}

/* Counts a call. How it fails, or NULL. */
static const char *failure(void)
{
	const char *at = getenv("FAIL_AT"), *as = getenv("FAIL_AS");
	long call = atomic_fetch_add(&calls, 1) + 1;

	if (!at || !as || call != atol(at))
		return NULL;
	if (strcmp(as, "kill") == 0)
		raise(SIGKILL);
	while (strcmp(as, "hang") == 0)
		sleep(1000);
	return as;
}

static int set_errno(const char *as)
{
	errno = strcmp(as, "ENOSPC") == 0 ? ENOSPC : strcmp(as, "EINTR") == 0 ? EINTR : EIO;
	return -1;
}

#define REAL(result, name, ...) \
	static result (*real)(__VA_ARGS__); \
	if (!real) \
		real = (result (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

ssize_t write(int fd, const void *bytes, size_t count)
{
	const char *as;

	REAL(ssize_t, "write", int, const void *, size_t);
	if (!is_below_fd(fd) || !(as = failure()))
		return real(fd, bytes, count);
	if (strcmp(as, "short") == 0)
		return real(fd, bytes, count > 1 ? count / 2 : count);
	return set_errno(as);
}

int fsync(int fd)
{
	const char *as;

	REAL(int, "fsync", int);
	if (!is_below_fd(fd) || !(as = failure()) || strcmp(as, "short") == 0)
		return real(fd);
	return set_errno(as);
}

int rename(const char *from, const char *to)
{
	const char *as;

	REAL(int, "rename", const char *, const char *);
	if (!is_below(to) || !(as = failure()) || strcmp(as, "short") == 0)
		return real(from, to);
	return set_errno(as);
}

int mkdir(const char *path, mode_t mode)
{
	const char *as;

	REAL(int, "mkdir", const char *, mode_t);
	if (!is_below(path) || !(as = failure()) || strcmp(as, "short") == 0)
		return real(path, mode);
	return set_errno(as);
}

int linkat(int from_folder, const char *from, int to_folder, const char *to,
	   int flags)
{
	const char *as;

	REAL(int, "linkat", int, const char *, int, const char *, int);
	if (is_below(to) && getenv("FAIL_LINKS")) {
		errno = EXDEV;
		return -1;
	}
	if (!is_below(to) || !(as = failure()) || strcmp(as, "short") == 0)
		return real(from_folder, from, to_folder, to, flags);
	return set_errno(as);
}

ssize_t copy_file_range(int from, off64_t *from_at, int to, off64_t *to_at,
			size_t count, unsigned int flags)
{
	const char *as;

	REAL(ssize_t, "copy_file_range", int, off64_t *, int, off64_t *, size_t,
	     unsigned int);
	if (!is_below_fd(to) || !(as = failure()))
		return real(from, from_at, to, to_at, count, flags);
	if (strcmp(as, "short") == 0)
		return real(from, from_at, to, to_at, count > 1 ? 1 : count,
			    flags);
	return set_errno(as);
}

int open64(const char *path, int flags, ...)
{
	const char *as;
	va_list rest;
	mode_t mode;

	REAL(int, "open64", const char *, int, ...);
	va_start(rest, flags);
	mode = (flags & O_CREAT) ? va_arg(rest, mode_t) : 0;
	va_end(rest);
	if (!(flags & O_CREAT) || !is_below(path) || !(as = failure()) || strcmp(as, "short") == 0)
		return real(path, flags, mode);
	return set_errno(as);
}

__attribute__((destructor)) static void at_end(void)
{
	const char *file = getenv("FAIL_COUNT");
	FILE *out = file ? fopen(file, "w") : NULL;

	if (out) {
		fprintf(out, "%ld\n", (long)calls);
		fclose(out);
	}
}
