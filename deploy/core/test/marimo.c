/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Runs the golden vectors on standard input (oracle/marimo.py has the format)
 * through marimo.h.
 */
#include "../marimo.h"
#include "bare.h"

static struct marimo_config config;
static struct marimo_table table;
static struct marimo state;
static marimo_u32 expected[5];

static void compare(void)
{
	marimo_u32 found[5];
	int i;

	found[0] = state.window;
	found[1] = state.threshold;
	found[2] = state.rho;
	found[3] = state.gain;
	found[4] = state.epochs;
	if (next() != '=' || next() != ' ')
		leave("expected = and decisions");
	for (i = 0; i < 5; i++) {
		expected[i] = number(expected[i]);
		if (found[i] != expected[i]) {
			print("found ");
			print_number(found[i]);
			print(", expected ");
			print_number(expected[i]);
			print(" in ");
			leave(i == 0 ? "window" : i == 1 ? "threshold" :
			      i == 2 ? "rho" : i == 3 ? "gain" : "epochs");
		}
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
	struct marimo_ack ack;
	marimo_u32 position, events = 0;
	unsigned int i;
	int kind;

	for (; (kind = next()) >= 0; line++) {
		if (next() != ' ')
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
			marimo_init(&state, &config, &table);
			break;
		case 'a':
			ack.packets = number(0);
			ack.marked = number(0);
			ack.acked = number(0);
			ack.position = number(0);
			ack.next = number(0);
			ack.limited = number(0);
			marimo_on_ack(&state, &config, &table, &ack);
			break;
		case 'l':
			position = number(0);
			marimo_on_loss(&state, &config, position, number(0));
			break;
		case 'o':
			marimo_on_timeout(&state, &config, number(0));
			break;
		case 'i':
			marimo_on_idle(&state, number(0));
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
