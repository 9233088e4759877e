/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* One event for onramp.h in a kernel: what onramp.bpf.c is called with. */
#ifndef INCAST_TEST_ONRAMP_BPF_H
#define INCAST_TEST_ONRAMP_BPF_H

#include "../onramp.h"

enum onramp_event_kind {
	ONRAMP_EVENT_INIT,
	ONRAMP_EVENT_RELEASE,
	ONRAMP_EVENT_ON_RELEASE,
	ONRAMP_EVENT_ON_REPORT,
	ONRAMP_EVENT_VALID,
};

/**
 * struct onramp_event - a call
 * @kind: enum onramp_event_kind
 * @now: its first time
 * @other: its second: when a packet was handed over, or left
 * @delay: of a report
 * @result: what it returned
 * @config: the configuration
 * @state: before and after
 */
struct onramp_event {
	onramp_u64 kind;
	onramp_u64 now;
	onramp_u64 other;
	onramp_s64 delay;
	onramp_u64 result;
	struct onramp_config config;
	onramp_u32 unused;
	struct onramp state;
};

#endif /* INCAST_TEST_ONRAMP_BPF_H */
