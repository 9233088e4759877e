// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * onramp.bpf.c with a log of what one path was told and decided, in the order of
 * its lock. For tests, never shipped: the loader has it instead of onramp.bpf.c
 * if it is built with ONRAMP_PROGRAM=record (../onrampctl/build.rs).
 */
#include "kernel.h"
#include "../onramp_tcp.h"

#define RECORDS 8192

/**
 * struct record - a call about the path
 * @now: its time
 * @other: of a departure: when the packet was handed over
 * @result: of a departure: when it is to leave; else pause_until after it
 * @value: TSval
 * @echo: TSecr
 * @zero: of the connection, before
 * @zeros: of the connection, before
 * @delay: that was found
 * @what: enum onramp_reported, or DEPARTED
 */
struct record {
	u64 now, other, result;
	u32 value, echo, zero, zeros, delay, what;
};
#define DEPARTED 4

/* A map of its own, which is read by its name. Helpers cannot be called under a lock. */
static struct {
	struct onramp_tcp_config config;
	u32 count;
	struct record records[RECORDS];
} recorded SEC(".data.record");

/* Where the next record goes; 0 if there is no more room. */
static ALWAYS_INLINE struct record *next_record(const struct onramp_tcp_config *c)
{
	u32 at = recorded.count;

	if (at >= RECORDS)
		return 0;
	if (at == 0)
		recorded.config = *c;
	return &recorded.records[at];
}

static ALWAYS_INLINE u64 record_depart(struct onramp_path *p,
				       const struct onramp_tcp_config *c, u64 now,
				       u64 queued)
{
	u64 when = onramp_path_depart(p, c, now, queued);
	struct record *r = next_record(c);

	if (r) {
		*r = (struct record){ .now = now, .other = queued,
				      .result = when, .what = DEPARTED };
		recorded.count++;
	}
	return when;
}

static ALWAYS_INLINE enum onramp_reported
record_observe(struct onramp_path *p, struct onramp_connection *n,
	       const struct onramp_tcp_config *c, const struct onramp_stamps *s,
	       struct onramp_window *closed)
{
	struct record *r = next_record(c);
	enum onramp_reported what;

	if (r)
		*r = (struct record){ .now = s->now, .value = s->value,
				      .echo = s->echo, .zero = n->zero,
				      .zeros = n->zeros };
	what = onramp_path_observe(p, n, c, s, closed);
	if (r) {
		r->what = what;
		r->delay = p->delay;
		r->result = p->rule.pause_until;
		/* The one that is told is complete once it is decided about. */
		recorded.count += what != ONRAMP_TOLD;
	}
	return what;
}

static ALWAYS_INLINE void record_decide(struct onramp_path *p,
					const struct onramp_tcp_config *c)
{
	struct record *r = next_record(c);

	onramp_path_decide(p, c);
	if (r) {
		r->result = p->rule.pause_until;
		recorded.count++;
	}
}

#define onramp_path_depart record_depart
#define onramp_path_observe record_observe
#define onramp_path_decide record_decide
#include "onramp.bpf.c"
