// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Preloaded into user-mode Linux: what it asks its host for as randomness
 * follows from the environment variable RIG_SEED.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

ssize_t getrandom(void *buffer, size_t length, unsigned int flags);

static uint64_t next(void)
{
	static uint64_t state;
	static int seeded;
	uint64_t x;

	if (!seeded) {
		const char *seed = getenv("RIG_SEED");

		if (!seed)
			abort();
		state = strtoull(seed, NULL, 10);
		seeded = 1;
	}
	/* SplitMix64. */
	state += 0x9e3779b97f4a7c15u;
	x = state;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

ssize_t getrandom(void *buffer, size_t length, unsigned int flags)
{
	unsigned char *to = buffer;
	size_t done = 0;

	(void)flags;
	while (done < length) {
		uint64_t word = next();
		size_t part = length - done;

		if (part > sizeof(word))
			part = sizeof(word);
		memcpy(to + done, &word, part);
		done += part;
	}
	return (ssize_t)length;
}
