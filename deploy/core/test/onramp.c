/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Runs the golden vectors on standard input (oracle/onramp.py has the format)
 * through onramp.h; with IN_KERNEL, which names the instructions of
 * onramp.bpf.c, through these in the kernel that runs, and random calls as well.
 */
#include "onramp.bpf.h"
#include "bare.h"
#ifdef IN_KERNEL
#include IN_KERNEL
#include "kernel.h"
#endif

static struct onramp_config config;
static struct onramp state;
static u64 expected[7];

/* One call of the core: here, or in the kernel. */
static u64 core(enum onramp_event_kind kind, u64 now, u64 other, onramp_s64 delay)
{
#ifdef IN_KERNEL
	struct onramp_event event = {
		.kind = kind, .now = now, .other = other, .delay = delay,
		.config = config, .state = state,
	};

	in_kernel(&event, sizeof(event));
	state = event.state;
	return event.result;
#else
	switch (kind) {
	case ONRAMP_EVENT_INIT:
		onramp_init(&state);
		return 0;
	case ONRAMP_EVENT_RELEASE:
		return onramp_release(&state, &config, now, other);
	case ONRAMP_EVENT_ON_RELEASE:
		onramp_on_release(&state, &config, now, other);
		return 0;
	case ONRAMP_EVENT_ON_REPORT:
		onramp_on_report(&state, &config, now, other, delay);
		return 0;
	default:
		return (u64)onramp_config_valid(&config);
	}
#endif
}

/* In two halves, as a 64-bit division would come from outside. */
static void print_hex(u64 value)
{
	char digits[19];
	int i;

	digits[0] = '0';
	digits[1] = 'x';
	for (i = 0; i < 16; i++) {
		digits[17 - i] = "0123456789abcdef"[value & 15];
		value >>= 4;
	}
	digits[18] = 0;
	print(digits);
}

static void same(u64 found, u64 wanted, const char *what)
{
	if (found == wanted)
		return;
	print("found ");
	print_hex(found);
	print(", expected ");
	print_hex(wanted);
	print(" in ");
	leave(what);
}

static void equals(void)
{
	if (next() != '=' || next() != ' ')
		leave("expected = and decisions");
}

static void compare(void)
{
	u64 found[7];
	int i;

	found[0] = state.pause_until;
	found[1] = state.next;
	found[2] = state.outstanding;
	found[3] = state.limit;
	found[4] = state.gap;
	found[5] = state.bound;
	found[6] = (state.flags & ONRAMP_HELD) != 0;
	equals();
	for (i = 0; i < 7; i++) {
		expected[i] = number64(expected[i]);
		same(found[i], expected[i],
		     i == 0 ? "pause" : i == 1 ? "next" :
		     i == 2 ? "outstanding" : i == 3 ? "limit" :
		     i == 4 ? "gap" : i == 5 ? "bound" : "held");
	}
}

#ifdef IN_KERNEL
#define RANDOM 20000

/* A word; of the middle bits of a product, as the lowest repeat early. */
static u64 draw(u64 below)
{
	static u64 seed = 20261128;

	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (seed >> 24) % below;
}

/* A time that is near, far, or none. */
static u64 near(u64 now)
{
	switch (draw(6)) {
	case 0:
		return 0;
	case 1:
		return ONRAMP_FOREVER - draw(3);
	case 2:
		return now + draw(1u << 30) * 8;
	default:
		return now - (now < 1000000 ? 0 : draw(1000000));
	}
}

/* Any call on any state, also on such as no call leaves. */
static void random_calls(void)
{
	unsigned int calls, i;
	u64 now = 1;

	for (calls = 0; calls < RANDOM; calls++) {
		struct onramp_event event = { .kind = draw(5) };
		struct onramp_event here;
		u64 *words = (u64 *)&event.state;

		for (i = 0; i < sizeof(event.state) / 8; i++)
			words[i] = calls % 4 ? near(now) : draw(~(u64)0);
		event.config = config;
		if (calls % 3 == 0) {
			event.config.threshold = (u32)draw(ONRAMP_SPAN_MAX);
			event.config.beta = (u32)draw(ONRAMP_ONE + 1);
			event.config.spread = (u32)draw(ONRAMP_SPAN_MAX);
			event.config.variant = (onramp_u8)draw(3);
			event.config.release = (onramp_u8)draw(4);
		}
		event.now = now;
		event.other = near(now);
		event.delay = (onramp_s64)near(1000) * (draw(2) ? 1 : -1);
		now += draw(1u << 30);
		here = event;
		in_kernel(&event, sizeof(event));
		state = here.state;
		config = here.config;
		switch (here.kind) {
		case ONRAMP_EVENT_INIT:
			onramp_init(&state);
			break;
		case ONRAMP_EVENT_RELEASE:
			here.result = onramp_release(&state, &config, here.now, here.other);
			break;
		case ONRAMP_EVENT_ON_RELEASE:
			onramp_on_release(&state, &config, here.now, here.other);
			break;
		case ONRAMP_EVENT_ON_REPORT:
			onramp_on_report(&state, &config, here.now, here.other, here.delay);
			break;
		default:
			here.result = (u64)onramp_config_valid(&config);
			break;
		}
		here.state = state;
		line = calls;
		for (i = 0; i < sizeof(event) / 8; i++)
			same(((u64 *)&event)[i], ((u64 *)&here)[i], "a random call");
	}
	print_number(calls);
	print(" random calls agree, ");
}
#endif

__attribute__((used)) void run(void)
{
	u64 now, other, time;
	u32 events = 0;
	int kind;

#ifdef IN_KERNEL
	load();
#endif
	for (; (kind = next()) >= 0; line++) {
		if (next() != ' ')
			leave("expected a space");
		switch (kind) {
		case 'c':
			config.threshold = number(0);
			config.max_hold = number(0);
			config.quantum = number(0);
			config.small_quantum = number(0);
			config.beta = number(0);
			config.spread = number(0);
			config.reference = number(0);
			config.gain = number(0);
			config.step = number(0);
			config.variant = (onramp_u8)number(0);
			config.release = (onramp_u8)number(0);
			if (!core(ONRAMP_EVENT_VALID, 0, 0, 0))
				leave("this configuration is refused");
			continue;
		case 'n':
			core(ONRAMP_EVENT_INIT, 0, 0, 0);
			break;
		case 'r':
			now = number64(0);
			other = number64(0);
			equals();
			time = number64(0);
			same(core(ONRAMP_EVENT_RELEASE, now, other, 0), time,
			     "release");
			events++;
			continue;
		case 'l':
			now = number64(0);
			other = number64(0);
			core(ONRAMP_EVENT_ON_RELEASE, now, other, 0);
			break;
		case 'p':
			now = number64(0);
			other = number64(0);
			core(ONRAMP_EVENT_ON_REPORT, now, other,
			     (onramp_s64)number64(0));
			break;
		default:
			leave("unknown kind");
		}
		compare();
		events++;
	}
	if (!events)
		leave("no events");
#ifdef IN_KERNEL
	random_calls();
#endif
	print_number(events);
	print(" events agree\n");
	call(SYS_EXIT, 0, 0, 0);
	__builtin_unreachable();
}
