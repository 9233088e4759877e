/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What every part of the unit tests needs: the module's own C on top of the
 * mocked kernel, checks, and how a test is run.
 */
#ifndef MARIMO_UNIT_HARNESS_H
#define MARIMO_UNIT_HARNESS_H

#include "mock.h"
#include "tcp_marimo.c"

#define EQUAL(found, expected) do { \
	long long _f = (long long)(found), _e = (long long)(expected); \
	if (_f != _e) { \
		char _text[256]; \
		snprintf(_text, sizeof(_text), #found " is %lld, not " \
			 #expected ", %lld", _f, _e); \
		mock_fail(__FILE__, __LINE__, _text); \
	} \
} while (0)

static unsigned int tests_run;

#define RUN(test, ...) do { \
	unsigned int _before = mock_failures; \
	test(__VA_ARGS__); \
	tests_run++; \
	EQUAL(mock_readers, 0); \
	if (mock_failures > _before) \
		printf("FAILED %s\n", #test); \
} while (0)

static unsigned int seed = 1;

static u32 draw(u32 below)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % below;
}

#endif
