/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Runs the recording on standard input through onramp_tcp.h; with IN_KERNEL,
 * which names the instructions of onramp_replay.bpf.c, through these in the
 * kernel that runs. The first call that ends otherwise is an error. A line is
 *
 *	# anything
 *	c CONFIG                             fields of struct onramp_config, without
 *	                                     reserved ones; threshold, floor, drift
 *	d NOW QUEUED = WHEN                  a packet was handed over
 *	a NOW TSVAL TSECR ZERO ZEROS = WHAT DELAY PAUSE_UNTIL
 *	                                     an acknowledgement came; the connection
 *	                                     before it, enum onramp_reported after it
 */
#include "onramp_replay.bpf.h"
#include "../../core/test/bare.h"
#ifdef IN_KERNEL
#include IN_KERNEL
#include "../../core/test/kernel.h"
#endif

static struct replay_event event;

#ifdef IN_KERNEL
#define BPF_MAP_CREATE 0
#define BPF_MAP_TYPE_ARRAY 2
#define BPF_PSEUDO_MAP_VALUE 2
#define REGISTER_SOURCE 12 /* bits of an instruction below it */
#define IMMEDIATE 32

/* A map for the path, and its address where the program has REPLAY_MAP. */
static void load_with_map(void)
{
	struct {
		u32 type, key_size, value_size, entries;
	} attributes = { BPF_MAP_TYPE_ARRAY, 4, sizeof(struct replay_state), 1 };
	long map = call(SYS_BPF, BPF_MAP_CREATE, (long)&attributes, sizeof(attributes));
	const u64 low = (u64)(u32)REPLAY_MAP << IMMEDIATE;
	const u64 high = (u64)REPLAY_MAP >> 32 << IMMEDIATE;
	u32 i, found = 0;

	if (map < 0)
		leave("this kernel makes no map");
	for (i = 0; i + 1 < sizeof(program) / 8; i++) {
		if (program[i] >> IMMEDIATE != low >> IMMEDIATE || program[i + 1] != high)
			continue;
		program[i] = (program[i] & 0xfff) |
			     (u64)BPF_PSEUDO_MAP_VALUE << REGISTER_SOURCE |
			     (u64)map << IMMEDIATE;
		program[i + 1] = 0;
		found++;
	}
	if (found == 0)
		leave("the program has no place for a map");
	load();
}
#else
static struct replay_state state;
#endif

/* One call: here, or in the kernel. */
static void replay(enum replay_kind kind)
{
	event.kind = kind;
#ifdef IN_KERNEL
	in_kernel(&event, sizeof(event));
#else
	if (kind == REPLAY_BEGIN)
		state.config = event.config;
	else
		replay_call(&state, &event);
#endif
}

static void equals(void)
{
	if (next() != '=' || next() != ' ')
		leave("expected = and what was decided");
}

static void same(u64 found, u64 wanted, const char *what)
{
	if (found != wanted)
		leave(what);
}

static void begin(void)
{
	struct onramp_tcp_config *c = &event.config;

	c->rule.threshold = number(0);
	c->rule.max_hold = number(0);
	c->rule.quantum = number(0);
	c->rule.small_quantum = number(0);
	c->rule.beta = number(0);
	c->rule.spread = number(0);
	c->rule.reference = number(0);
	c->rule.gain = number(0);
	c->rule.step = number(0);
	c->rule.variant = (onramp_u8)number(0);
	c->rule.release = (onramp_u8)number(0);
	c->threshold = number(0);
	c->floor = number(0);
	c->drift = number(0);
	if (!onramp_tcp_config_valid(c))
		leave("this configuration is refused");
	replay(REPLAY_BEGIN);
}

static void depart(void)
{
	u64 when;

	event.stamps.now = number64(0);
	event.other = number64(0);
	equals();
	when = number64(0);
	replay(REPLAY_DEPART);
	same(event.result, when, "the packet leaves at another time");
}

static void acknowledge(void)
{
	u32 what, delay;
	u64 pause_until;

	event.stamps.now = number64(0);
	event.stamps.value = number(0);
	event.stamps.echo = number(0);
	event.connection.zero = number(0);
	event.connection.zeros = number(0);
	equals();
	what = number(0);
	delay = number(0);
	pause_until = number64(0);
	replay(REPLAY_ACKNOWLEDGE);
	same(event.what, what, "something else has become of it");
	same(event.delay, delay, "the delay is another one");
	same(event.result, pause_until, "the pause ends at another time");
}

static void skip_line(void)
{
	int c;

	do
		c = next();
	while (c >= 0 && c != '\n');
}

__attribute__((used)) void run(void)
{
	u32 departures = 0, acknowledgements = 0;
	int kind;

#ifdef IN_KERNEL
	load_with_map();
#endif
	for (; (kind = next()) >= 0; line++) {
		if (next() != ' ')
			leave("expected a space");
		if (kind == '#') {
			skip_line();
		} else if (kind == 'c') {
			begin();
		} else if (kind == 'd') {
			depart();
			departures++;
		} else if (kind == 'a') {
			acknowledge();
			acknowledgements++;
		} else {
			leave("unknown kind");
		}
	}
	if (!acknowledgements)
		leave("no acknowledgements");
	print_number(acknowledgements);
	print(" recorded acknowledgements and ");
	print_number(departures);
	print(" departures agree\n");
	call(SYS_EXIT, 0, 0, 0);
	__builtin_unreachable();
}
