// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The module in user space: its C is compiled into this file, the kernel
 * around it is mock.h. As its functions are static, so are the parts of these
 * tests. A part ends with a list of its tests.
 */
#include "unit/connection.h"

#include "unit/loading.c"
#include "unit/window.c"
#include "unit/recovery.c"
#include "unit/pacing.c"
#include "unit/echo.c"
#include "unit/life.c"
#include "unit/report.c"
#include "unit/table.c"

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: %s MARIMO-F.TABLE\n", argv[0]);
		return 2;
	}
	/* It loads and unloads, while the others want it loaded. */
	run_loading();
	if (mock_init()) {
		printf("FAILED to load: %s", mock_log);
		return 1;
	}
	run_window();
	run_recovery();
	run_pacing();
	run_echo();
	run_life();
	run_report();
	/* Last, as connections have to be gone for its counters. */
	run_table(argv[1]);
	mock_exit();
	mock_grace_period();
	if (mock_failures) {
		printf("%u tests, %u failures\n", tests_run, mock_failures);
		return 1;
	}
	printf("%u tests passed\n", tests_run);
	return 0;
}
