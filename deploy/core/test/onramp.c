/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Runs the golden vectors on standard input (oracle/onramp.py has the format)
 * through onramp.h.
 */
#include "../onramp.h"
#include "bare.h"

static struct onramp_config config;
static struct onramp state;
static u64 expected[7];

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

__attribute__((used)) void run(void)
{
	u64 now, other, time;
	u32 events = 0;
	int kind;

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
			if (!onramp_config_valid(&config))
				leave("this configuration is refused");
			continue;
		case 'n':
			onramp_init(&state);
			break;
		case 'r':
			now = number64(0);
			other = number64(0);
			equals();
			time = number64(0);
			same(onramp_release(&state, &config, now, other), time,
			     "release");
			events++;
			continue;
		case 'l':
			now = number64(0);
			other = number64(0);
			onramp_on_release(&state, &config, now, other);
			break;
		case 'p':
			now = number64(0);
			other = number64(0);
			onramp_on_report(&state, &config, now, other,
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
	print_number(events);
	print(" events agree\n");
	call(SYS_EXIT, 0, 0, 0);
	__builtin_unreachable();
}
