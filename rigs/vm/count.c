// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Plugin for QEMU's software emulation: how often each instruction of the
 * guest's kernel was executed. The counters are incremented by the translated
 * code itself, one per instruction, so that a block that an exception leaves
 * half-way counts only what ran. Exact with one virtual processor.
 *
 * Argument out=FILE: a line "address count" per instruction executed at least
 * once, in hexadecimal and decimal, in no order.
 *
 * Debian's qemu-system-x86 has plugins built in but ships no header: what is
 * used of the interface (version 1) is declared here.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

/* The half of the address space in which kernel and modules are linked. */
#define KERNEL_FROM 0xffffffff80000000ull
#define SLOTS (1u << 21)

struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_info;
typedef uint64_t qemu_plugin_id_t;

enum { QEMU_PLUGIN_INLINE_ADD_U64 = 0 };

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb,
						 size_t index);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
void qemu_plugin_register_vcpu_tb_trans_cb(
	qemu_plugin_id_t id,
	void (*callback)(qemu_plugin_id_t id, struct qemu_plugin_tb *tb));
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *insn,
						int operation, void *counter,
						uint64_t immediate);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id,
				    void (*callback)(qemu_plugin_id_t id,
						     void *data),
				    void *data);

EXPORT int qemu_plugin_version = 1;

/* Open addressing; translated code holds pointers, so nothing ever moves. */
static struct slot {
	uint64_t address;
	uint64_t count;
} slots[SLOTS];

static unsigned int used;
static char *out;

static struct slot *find(uint64_t address)
{
	uint64_t i = (address * 0x9e3779b97f4a7c15ull) >> 43;

	while (slots[i].address && slots[i].address != address)
		i = (i + 1) % SLOTS;
	if (!slots[i].address) {
		if (++used > SLOTS / 2) {
			fprintf(stderr, "count: more than %u instructions\n",
				SLOTS / 2);
			exit(1);
		}
		slots[i].address = address;
	}
	return &slots[i];
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t n = qemu_plugin_tb_n_insns(tb);
	size_t i;

	(void)id;
	for (i = 0; i < n; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint64_t address = qemu_plugin_insn_vaddr(insn);

		if (address >= KERNEL_FROM)
			qemu_plugin_register_vcpu_insn_exec_inline(
				insn, QEMU_PLUGIN_INLINE_ADD_U64,
				&find(address)->count, 1);
	}
}

static void ended(qemu_plugin_id_t id, void *data)
{
	FILE *file = fopen(out, "w");
	size_t i;

	(void)id;
	(void)data;
	if (!file) {
		perror(out);
		return;
	}
	for (i = 0; i < SLOTS; i++)
		if (slots[i].count)
			fprintf(file, "%llx %llu\n",
				(unsigned long long)slots[i].address,
				(unsigned long long)slots[i].count);
	if (fclose(file))
		perror(out);
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id,
			       const struct qemu_info *info, int argc,
			       char **argv)
{
	int i;

	(void)info;
	for (i = 0; i < argc; i++)
		if (!strncmp(argv[i], "out=", 4))
			out = strdup(argv[i] + 4);
	if (!out) {
		fprintf(stderr, "count: needs out=FILE\n");
		return -1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	qemu_plugin_register_atexit_cb(id, ended, NULL);
	return 0;
}
