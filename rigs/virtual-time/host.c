// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Preloaded into user-mode Linux, between it and its host:
 *
 * - What it asks for as randomness follows from the environment variable
 *   RIG_SEED, if there is one.
 * - Linux 6.1 has room for 2,696 bytes of its processes' extended registers,
 *   and hosts refuse to set a part of what their CPU has (with AMX that is
 *   more than 11,000 bytes). What is beyond its room is left as it is when a
 *   program starts; programs in the rig use none of it.
 * - Its processes are processes of the host that it traces. Should it be
 *   killed, they must not go on without it.
 */
#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

ssize_t getrandom(void *buffer, size_t length, unsigned int flags);

static uint64_t next(uint64_t *state)
{
	uint64_t x;

	/* SplitMix64. */
	*state += 0x9e3779b97f4a7c15u;
	x = *state;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

ssize_t getrandom(void *buffer, size_t length, unsigned int flags)
{
	static uint64_t state;
	static int seeded;
	unsigned char *to = buffer;
	size_t done = 0;

	if (!seeded) {
		const char *seed = getenv("RIG_SEED");

		seeded = seed ? 1 : -1;
		state = seed ? strtoull(seed, NULL, 10) : 0;
	}
	if (seeded < 0)
		return syscall(SYS_getrandom, buffer, length, flags);
	while (done < length) {
		uint64_t word = next(&state);
		size_t part = length - done;

		if (part > sizeof(word))
			part = sizeof(word);
		memcpy(to + done, &word, part);
		done += part;
	}
	return (ssize_t)length;
}

/* PTRACE_OLDSETOPTIONS of asm/ptrace-abi.h. */
#define OLDSETOPTIONS 21

/* Components of the extended state that lie within 2,696 bytes, by number. */
#define XSTATE_WITHIN 0x3ffu
#define XSTATE_BV 512

static long extended(int request, pid_t pid, struct iovec *theirs)
{
	static _Alignas(64) unsigned char all[1 << 16];
	static size_t size;
	struct iovec ours = { all, sizeof(all) };
	uint64_t components;
	size_t part;

	if (request == PTRACE_GETREGSET || !size) {
		if (syscall(SYS_ptrace, PTRACE_GETREGSET, pid, NT_X86_XSTATE,
			    &ours) < 0)
			return -1;
		size = ours.iov_len;
	}
	part = theirs->iov_len < size ? theirs->iov_len : size;
	if (request == PTRACE_GETREGSET) {
		memcpy(theirs->iov_base, all, part);
		theirs->iov_len = part;
		return 0;
	}
	memcpy(all, theirs->iov_base, part);
	memset(all + part, 0, size - part);
	if (part < size && part >= XSTATE_BV + sizeof(components)) {
		memcpy(&components, all + XSTATE_BV, sizeof(components));
		components &= XSTATE_WITHIN;
		memcpy(all + XSTATE_BV, &components, sizeof(components));
	}
	ours.iov_len = size;
	return syscall(SYS_ptrace, request, pid, NT_X86_XSTATE, &ours);
}

long ptrace(enum __ptrace_request request, ...)
{
	long result, word;
	va_list rest;
	void *data;
	long address;
	pid_t pid;

	va_start(rest, request);
	pid = va_arg(rest, pid_t);
	address = va_arg(rest, long);
	data = va_arg(rest, void *);
	va_end(rest);
	if ((request == PTRACE_GETREGSET || request == PTRACE_SETREGSET) &&
	    address == NT_X86_XSTATE)
		return extended(request, pid, data);
	if (request == PTRACE_SETOPTIONS || (int)request == OLDSETOPTIONS)
		data = (void *)((unsigned long)data | PTRACE_O_EXITKILL);
	/* The system call stores what these return. */
	if (request == PTRACE_PEEKTEXT || request == PTRACE_PEEKDATA ||
	    request == PTRACE_PEEKUSER) {
		result = syscall(SYS_ptrace, request, pid, address, &word);
		if (result < 0)
			return -1;
		errno = 0;
		return word;
	}
	return syscall(SYS_ptrace, request, pid, address, data);
}
