/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Runs the golden vectors on standard input (oracle/marimo_tcp.py has the
 * format) through marimo_tcp.h.
 */
#include "../marimo_tcp.h"
#include "../../core/test/bare.h"

#define FIELDS 24
#define RESULTS 11

static struct marimo_config config;
static struct marimo_table table;
static struct marimo_tcp state;
static u32 sample[FIELDS];
static u64 expected[RESULTS];

static const char *const names[RESULTS] = {
	"decided", "window", "threshold", "pacing", "events", "core window",
	"core threshold", "rho", "bundle", "latched", "codepoint",
};

static void equals(void)
{
	if (next() != '=' || next() != ' ')
		leave("expected = and decisions");
}

static void compare(u64 found, u64 wanted, const char *what)
{
	if (found == wanted)
		return;
	print("found ");
	print_number((u32)found);
	print(", expected ");
	print_number((u32)wanted);
	print(" in ");
	leave(what);
}

static void read_sample(struct marimo_tcp_sample *in)
{
	int i;

	for (i = 0; i < FIELDS; i++)
		sample[i] = number(sample[i]);
	in->delivered = sample[0];
	in->delivered_ce = sample[1];
	in->una = sample[2];
	in->next = sample[3];
	in->flight = sample[4];
	in->pipe = sample[5];
	in->sent = sample[6];
	in->lost = sample[7];
	in->window = sample[8];
	in->threshold = sample[9];
	in->peak = sample[10];
	in->clamp = sample[11];
	in->mss = sample[12];
	in->srtt = sample[13];
	in->receive_next = sample[14];
	in->idle = sample[15];
	in->timeout = sample[16];
	in->state = (marimo_u8)sample[17];
	in->becomes = (marimo_u8)sample[18];
	in->limited = (marimo_u8)sample[19];
	in->exact = (marimo_u8)sample[20];
	in->restart = (marimo_u8)sample[21];
	in->marks = (marimo_u8)sample[22];
	in->plain = (marimo_u8)sample[23];
}

static void compare_decision(u32 decided, const struct marimo_tcp_decision *out)
{
	u64 found[RESULTS];
	int i;

	found[0] = decided;
	found[1] = decided ? out->window : 0;
	found[2] = decided ? out->threshold : 0;
	found[3] = decided ? out->pacing : 0;
	found[4] = decided ? out->events : 0;
	found[5] = state.core.window;
	found[6] = state.core.threshold;
	found[7] = state.core.rho;
	found[8] = marimo_tcp_min_tso_segs(&state);
	found[9] = (u32)marimo_tcp_latched(&state);
	found[10] = decided ? out->codepoint : 0;
	equals();
	for (i = 0; i < RESULTS; i++) {
		expected[i] = number64(expected[i]);
		compare(found[i], expected[i], names[i]);
	}
}

__attribute__((used)) void run(void)
{
	marimo_u32 *fields[] = {
		&config.increase_below, &config.decrease_above, &config.target,
		&config.min_decrease, &config.max_decrease,
		&config.rho_after_decrease, &config.loss_rho,
		&config.loss_decrease, &config.initial_window,
		&config.min_window, &config.max_window, &config.increase,
		&config.max_increase, &config.min_epoch,
	};
	struct marimo_tcp_decision out;
	struct marimo_tcp_sample in;
	u32 ce, position, waiting, before, found, events = 0;
	unsigned int i;
	int kind;

	for (; (kind = next()) >= 0; line++) {
		i = (unsigned int)next();
		if (i != ' ' && !(kind == 'x' && i == '\n'))
			leave("expected a space");
		switch (kind) {
		case 'c':
			for (i = 0; i < sizeof(fields) / sizeof(*fields); i++)
				*fields[i] = number(0);
			config.beta_shift = (marimo_u8)number(0);
			config.decrease_from = (marimo_u8)number(0);
			config.settle = (marimo_u8)number(0);
			config.slow_start = (marimo_u8)number(0);
			if (!marimo_config_valid(&config))
				leave("this configuration is refused");
			continue;
		case 't':
			for (i = 0; i < MARIMO_KNOTS; i++)
				table.knots[i] = number(0);
			if (marimo_table_fault(&table, &config))
				leave("this table is refused");
			continue;
		case 'n':
			read_sample(&in);
			marimo_tcp_init(&state, &config, &table, &in, &out);
			compare_decision(1, &out);
			break;
		case 'a':
			read_sample(&in);
			marimo_tcp_on_ack(&state, &config, &table, &in, &out);
			compare_decision(1, &out);
			break;
		case 's':
			read_sample(&in);
			found = (u32)marimo_tcp_on_state(&state, &config,
							 &table, &in, &out);
			compare_decision(found, &out);
			break;
		case 'i':
			read_sample(&in);
			found = (u32)marimo_tcp_on_start(&state, &config, &in,
							 &out);
			compare_decision(found, &out);
			break;
		case 'x':
			marimo_tcp_on_timeout(&state);
			break;
		case 'u':
			found = marimo_tcp_on_undo(&state, &config);
			equals();
			compare(found, number(0), "window after undo");
			compare(state.core.window, number(0), "core window");
			compare(state.core.threshold, number(0),
				"core threshold");
			compare(state.core.rho, number(0), "rho");
			break;
		case 'e':
			ce = number(0);
			position = number(0);
			waiting = number(0);
			found = marimo_tcp_echo(&state, ce, position, waiting,
						&before);
			equals();
			compare(found, number(0), "echo");
			compare(before, number(0), "position before");
			break;
		default:
			leave("unknown kind");
		}
		events++;
	}
	if (!events)
		leave("no events");
	print_number(events);
	print(" events agree\n");
	call(SYS_EXIT, 0, 0, 0);
	__builtin_unreachable();
}
