/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* One call of a recording for onramp_tcp.h: here, or in a kernel (onramp_replay.bpf.c). */
#ifndef INCAST_TEST_ONRAMP_REPLAY_BPF_H
#define INCAST_TEST_ONRAMP_REPLAY_BPF_H

#include "../onramp_tcp.h"

/* Where the address of the map's value belongs, in the program: no other number in it. */
#define REPLAY_MAP 0x5245504c41594d50

enum replay_kind {
	REPLAY_BEGIN,
	REPLAY_DEPART,
	REPLAY_ACKNOWLEDGE,
};

/**
 * struct replay_event - a call
 * @kind: enum replay_kind
 * @other: of a departure: when the packet was handed over
 * @result: of a departure: when it is to leave; else pause_until after it
 * @stamps: of an acknowledgement; its time is that of all calls
 * @connection: before it
 * @what: has become of it: enum onramp_reported
 * @delay: that was found
 * @config: of REPLAY_BEGIN
 */
struct replay_event {
	onramp_u64 kind;
	onramp_u64 other;
	onramp_u64 result;
	struct onramp_stamps stamps;
	struct onramp_connection connection;
	onramp_u32 what;
	onramp_u32 delay;
	struct onramp_tcp_config config;
};

/* What is kept from call to call; all of it zero at first. */
struct replay_state {
	struct onramp_path path;
	struct onramp_tcp_config config;
};

/* A call that is not REPLAY_BEGIN. */
static inline void replay_call(struct replay_state *state, struct replay_event *event)
{
	struct onramp_stamps stamps = event->stamps;
	struct onramp_connection connection = event->connection;
	struct onramp_window closed;

	if (event->kind == REPLAY_DEPART) {
		event->result = onramp_path_depart(&state->path, &state->config,
						   stamps.now, event->other);
		return;
	}
	event->what = onramp_path_observe(&state->path, &connection,
					  &state->config, &stamps, &closed);
	if (event->what == ONRAMP_TOLD)
		onramp_path_decide(&state->path, &state->config);
	event->delay = state->path.delay;
	event->result = state->path.rule.pause_until;
}

#endif /* INCAST_TEST_ONRAMP_REPLAY_BPF_H */
