/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Runs the golden vectors on standard input (oracle/marimo.py has the format)
 * through marimo.h, without a C library: on x86-64 and on 32-bit RISC-V, whose
 * user-mode emulator provides the three system calls.
 */
#include "../marimo.h"

#if defined(__x86_64__)
#define SYS_READ 0
#define SYS_WRITE 1
#define SYS_EXIT 60
static long call(long number, long a, long b, long c)
{
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c)
			 : "rcx", "r11", "memory");
	return result;
}
__asm__(".globl _start\n_start:\n\txor %ebp, %ebp\n\tand $-16, %rsp\n\tcall run\n");
#elif defined(__riscv)
#define SYS_READ 63
#define SYS_WRITE 64
#define SYS_EXIT 93
static long call(long number, long a, long b, long c)
{
	register long a7 __asm__("a7") = number;
	register long a0 __asm__("a0") = a;
	register long a1 __asm__("a1") = b;
	register long a2 __asm__("a2") = c;

	__asm__ volatile("ecall" : "+r"(a0) : "r"(a7), "r"(a1), "r"(a2) : "memory");
	return a0;
}
/* Linker relaxation addresses data relative to gp. */
__asm__(".globl _start\n_start:\n\t.option push\n\t.option norelax\n"
	"\tla gp, __global_pointer$\n\t.option pop\n"
	"\tandi sp, sp, -16\n\tcall run\n");
#else
#error "no system calls known for this machine"
#endif

static char buffer[4096];
static long filled, used;
static marimo_u32 line = 1;

static void print(const char *text)
{
	long length = 0;

	while (text[length])
		length++;
	call(SYS_WRITE, 1, (long)text, length);
}

static void print_number(marimo_u32 number)
{
	char digits[11];
	int at = 10;

	digits[at] = 0;
	do {
		digits[--at] = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	print(digits + at);
}

static void leave(const char *message)
{
	print("line ");
	print_number(line);
	print(": ");
	print(message);
	print("\n");
	call(SYS_EXIT, 1, 0, 0);
	__builtin_unreachable();
}

/* The next character, or -1. */
static int next(void)
{
	if (used == filled) {
		filled = call(SYS_READ, 0, (long)buffer, sizeof(buffer));
		used = 0;
		if (filled <= 0) {
			filled = 0;
			return -1;
		}
	}
	return (unsigned char)buffer[used++];
}

/* A whole number after one space, or `otherwise` for a dot; eats what follows. */
static marimo_u32 number(marimo_u32 otherwise)
{
	marimo_u32 value = 0;
	int digits = 0;
	int c = next();

	if (c == '.') {
		next();
		return otherwise;
	}
	while (c >= '0' && c <= '9') {
		value = value * 10 + (marimo_u32)(c - '0');
		digits++;
		c = next();
	}
	if (!digits || (c != ' ' && c != '\n'))
		leave("expected a number");
	return value;
}

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
