/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What a test of the cores needs where there is no C library: the three system
 * calls, text out, whole numbers in. On x86-64 and on 32-bit RISC-V, whose
 * user-mode emulator provides the calls. Execution begins at run().
 */
#ifndef INCAST_TEST_BARE_H
#define INCAST_TEST_BARE_H

typedef __UINT32_TYPE__ u32;
typedef __UINT64_TYPE__ u64;

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
static u32 line = 1;

static void print(const char *text)
{
	long length = 0;

	while (text[length])
		length++;
	call(SYS_WRITE, 1, (long)text, length);
}

static void print_number(u32 number)
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

/* A whole number, or `otherwise` for a dot; eats what follows. */
static u64 number64(u64 otherwise)
{
	u64 value = 0;
	int digits = 0, negative = 0;
	int c = next();

	if (c == '.') {
		next();
		return otherwise;
	}
	if (c == '-') {
		negative = 1;
		c = next();
	}
	while (c >= '0' && c <= '9') {
		value = value * 10 + (u64)(c - '0');
		digits++;
		c = next();
	}
	if (!digits || (c != ' ' && c != '\n'))
		leave("expected a number");
	return negative ? 0 - value : value;
}

static u32 number(u32 otherwise)
{
	return (u32)number64(otherwise);
}

#endif /* INCAST_TEST_BARE_H */
