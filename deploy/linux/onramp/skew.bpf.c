// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * onramp.bpf.c with a clock of the peers that is wrong: what is read of their
 * stamps is moved, and no clock is touched. For tests, never shipped: the loader
 * has it instead of onramp.bpf.c if it is built with ONRAMP_PROGRAM=skew
 * (../onrampctl/build.rs).
 */
#include "kernel.h"
#include "../onramp_tcp.h"

/*
 * A map of its own, which is written by its name: nanoseconds, and a rate in Q30
 * since the boot.
 */
static volatile struct {
	s64 offset;
	s64 rate;
} skew SEC(".data.skew") = { .offset = 0 };

static ALWAYS_INLINE enum onramp_reported
skewed_observe(struct onramp_path *p, struct onramp_connection *n,
	       const struct onramp_tcp_config *c, const struct onramp_stamps *s,
	       struct onramp_window *closed)
{
	struct onramp_stamps moved = *s;

	moved.value += onramp_micro(skew.offset + onramp_moved(s->now, skew.rate));
	return onramp_path_observe(p, n, c, &moved, closed);
}

#define onramp_path_observe skewed_observe
#include "onramp.bpf.c"
