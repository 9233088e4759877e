// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * onramp.h as a program of a kernel: one call of it for each BPF_PROG_TEST_RUN.
 * Without maps, so that it is instructions alone, which a test without a
 * library can load.
 */
#include "onramp.bpf.h"

#define WORDS(type) (sizeof(type) / 8)

/* The verifier takes the context in words at places that it knows. */
#define COPY(to, from, type)                                                   \
	do {                                                                   \
		_Pragma("unroll") for (unsigned int i = 0; i < WORDS(type); i++) \
			((onramp_u64 *)(to))[i] = ((const onramp_u64 *)(from))[i]; \
	} while (0)

__attribute__((section("syscall"), used)) int replay(struct onramp_event *event)
{
	struct {
		struct onramp_config config;
		onramp_u32 unused;
	} shared __attribute__((aligned(8)));
	struct onramp o __attribute__((aligned(8)));
	onramp_u64 now = event->now, other = event->other, result = 0;

	COPY(&shared, &event->config, shared);
	COPY(&o, &event->state, o);
	switch (event->kind) {
	case ONRAMP_EVENT_INIT:
		onramp_init(&o);
		break;
	case ONRAMP_EVENT_RELEASE:
		result = onramp_release(&o, &shared.config, now, other);
		break;
	case ONRAMP_EVENT_ON_RELEASE:
		onramp_on_release(&o, &shared.config, now, other);
		break;
	case ONRAMP_EVENT_ON_REPORT:
		onramp_on_report(&o, &shared.config, now, other, event->delay);
		break;
	default:
		result = (onramp_u64)onramp_config_valid(&shared.config);
		break;
	}
	COPY(&event->state, &o, o);
	event->result = result;
	return 0;
}

__attribute__((section("license"), used)) char terms[] = "Dual MIT/GPL";
