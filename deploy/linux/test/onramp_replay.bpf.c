// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * onramp_tcp.h as a program of a kernel: one call of it for each
 * BPF_PROG_TEST_RUN. The path is in a map, as in onramp.bpf.c: REPLAY_MAP stands
 * for the address of its value, which the loader writes into the instruction, so
 * that this is instructions alone.
 */
#include "onramp_replay.bpf.h"

#define TEXT(number) #number
#define LITERAL(number) TEXT(number)

__attribute__((section("syscall"), used)) int replay(struct replay_event *event)
{
	struct replay_state *state;

	__asm__("%0 = " LITERAL(REPLAY_MAP) " ll" : "=r"(state));
	if (event->kind == REPLAY_BEGIN)
		state->config = event->config;
	else
		replay_call(state, event);
	return 0;
}

__attribute__((section("license"), used)) char terms[] = "Dual MIT/GPL";
