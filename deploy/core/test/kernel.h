/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Loads a program of BPF that is instructions alone (`program`, made by
 * section.py) into the kernel that runs, and runs it once for each call, by
 * bpf(2). For x86-64.
 */
#ifndef INCAST_TEST_KERNEL_H
#define INCAST_TEST_KERNEL_H

#define SYS_BPF 321
#define BPF_PROG_LOAD 5
#define BPF_PROG_TEST_RUN 10
#define BPF_PROG_TYPE_SYSCALL 31
#define BPF_F_SLEEPABLE 16

/* Beginnings of union bpf_attr. */
struct load_attributes {
	u32 type, count;
	u64 instructions, license;
	u32 log_level, log_size;
	u64 log;
	u32 kernel_version, flags;
};
struct run_attributes {
	u32 program, result;
	u32 data_size_in, data_size_out;
	u64 data_in, data_out;
	u32 repeat, duration;
	u32 context_size_in, context_size_out;
	u64 context_in, context_out;
};

static char verifier[1 << 16];
static long loaded;

static void load(void)
{
	struct load_attributes attributes = {
		.type = BPF_PROG_TYPE_SYSCALL,
		.count = sizeof(program) / 8,
		.instructions = (u64)program,
		.license = (u64) "Dual MIT/GPL",
		.flags = BPF_F_SLEEPABLE,
	};

	loaded = call(SYS_BPF, BPF_PROG_LOAD, (long)&attributes, sizeof(attributes));
	if (loaded >= 0)
		return;
	/* Again, to know why: a log that is too short makes it fail, too. */
	attributes.log_level = 1;
	attributes.log_size = sizeof(verifier);
	attributes.log = (u64)verifier;
	call(SYS_BPF, BPF_PROG_LOAD, (long)&attributes, sizeof(attributes));
	verifier[sizeof(verifier) - 1] = 0;
	print(verifier);
	leave("this kernel refuses the program");
}

static void in_kernel(void *context, u32 size)
{
	struct run_attributes attributes = {
		.program = (u32)loaded,
		.context_size_in = size,
		.context_in = (u64)context,
	};

	if (call(SYS_BPF, BPF_PROG_TEST_RUN, (long)&attributes, sizeof(attributes)))
		leave("this kernel does not run the program");
}

#endif /* INCAST_TEST_KERNEL_H */
