// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Reads one byte beyond an allocation: a kernel that claims to check its
 * memory must say so.
 */
#include <linux/module.h>
#include <linux/slab.h>

static int __init probe_init(void)
{
	volatile char *bytes = kmalloc(24, GFP_KERNEL);

	if (!bytes)
		return -ENOMEM;
	pr_info("read %d\n", bytes[24] == 1);
	kfree((void *)bytes);
	return 0;
}

module_init(probe_init);
MODULE_DESCRIPTION("Reads one byte beyond an allocation");
MODULE_LICENSE("Dual MIT/GPL");
