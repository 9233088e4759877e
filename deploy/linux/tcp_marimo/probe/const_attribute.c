// SPDX-License-Identifier: MIT OR Apache-2.0
/* Whether a module's attributes are const to their functions (Linux 6.16). */
#include <linux/module.h>

static ssize_t show(const struct module_attribute *attribute,
		    struct module_kobject *kobject, char *page)
{
	return 0;
}

struct module_attribute probe = { .show = show };
