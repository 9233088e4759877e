// SPDX-License-Identifier: MIT OR Apache-2.0
/* Loading: parameters and their defaults, what is refused, what a failure leaves. */
#include "connection.h"

static void expect_load(int expected, const char *reason)
{
	mock_log[0] = 0;
	EQUAL(mock_init(), expected);
	if (reason)
		CHECK(strstr(mock_log, reason));
	if (!expected) {
		CHECK(mock_registered == &marimo);
		mock_exit();
		mock_grace_period();
	}
	CHECK(!mock_registered);
	EQUAL(mock_module.mkobj.kobj.files, 0);
	EQUAL(mock_locks, 0);
}

static void test_parameters(void)
{
	expect_load(0, NULL);
	/* The defaults are the simulator's (window/marimo.rs). */
	EQUAL(marimo_config.increase_below, 58982);
	EQUAL(marimo_config.decrease_above, 65536);
	EQUAL(marimo_config.target, 62259);
	EQUAL(marimo_config.max_decrease, 32768);
	EQUAL(marimo_config.rho_after_decrease, MARIMO_ONE);
	EQUAL(marimo_config.loss_rho, 78643);
	EQUAL(marimo_config.loss_decrease, 32768);
	EQUAL(marimo_config.initial_window, 10 * MARIMO_ONE);
	EQUAL(marimo_config.min_window, 2 * MARIMO_ONE);
	EQUAL(marimo_config.increase, MARIMO_ONE);
	EQUAL(marimo_config.max_increase, MARIMO_ONE);
	EQUAL(marimo_config.min_epoch, 2);
	EQUAL(marimo_config.beta_shift, 1);
	EQUAL(marimo_config.decrease_from, MARIMO_FROM_MEMORY);
	EQUAL(marimo_config.settle, 0);
	EQUAL(marimo_config.slow_start, MARIMO_START_EPOCH);
	rule = "settling";
	expect_load(0, NULL);
	EQUAL(marimo_config.decrease_from, MARIMO_FROM_EPOCH);
	EQUAL(marimo_config.settle, 1);
	EQUAL(marimo_config.slow_start, MARIMO_START_MARK);
	EQUAL(marimo_config.max_increase,
	      MARIMO_TCP_SETTLING_INCREASE * MARIMO_ONE);
	increase = 8;
	expect_load(0, NULL);
	EQUAL(marimo_config.max_increase, 8 * MARIMO_ONE);
	increase = 1;
	max_increase = 2;
	expect_load(0, NULL);
	EQUAL(marimo_config.max_increase, 2 * MARIMO_ONE);
	max_increase = 0;
	decrease_from = "memory";
	slow_start = "off";
	settle = 3;
	expect_load(0, NULL);
	EQUAL(marimo_config.decrease_from, MARIMO_FROM_MEMORY);
	EQUAL(marimo_config.settle, 3);
	EQUAL(marimo_config.slow_start, MARIMO_START_STEADY);
	rule = "papre";
	expect_load(-EINVAL, "rule: found \"papre\"");
	rule = "paper";
	decrease_from = "x";
	expect_load(-EINVAL, "decrease_from");
	decrease_from = "";
	slow_start = "y";
	expect_load(-EINVAL, "slow_start");
	slow_start = "";
	settle = -1;
#define BAD(parameter, value) do { \
	__typeof__(parameter) _before = parameter; \
	parameter = value; \
	expect_load(-EINVAL, ""); \
	parameter = _before; \
} while (0)
	BAD(increase_below, 1001);
	BAD(increase_below, 0u - 1);
	BAD(decrease_above, 8001);
	BAD(target, 50);
	BAD(max_decrease, 1000);
	BAD(loss_load, 8001);
	BAD(loss_decrease, 1000);
	BAD(settle, -7);
	CHECK(strstr(mock_log, "settle: found -7, allowed are 0 to 255"));
	BAD(settle, 256);
	BAD(settle, 1000);
	BAD(beta_shift, 9);
	BAD(beta_shift, 256);
	BAD(min_window, 11);
	BAD(min_window, 0);
	BAD(initial_window, 65536);
	BAD(increase, 0);
	BAD(increase, 256);
	BAD(max_increase, 256);
	BAD(min_epoch, 0);
	BAD(min_epoch, 32768);
	/* A configuration that the calibrated table does not cross. */
	BAD(increase_below, 600);
	BAD(decrease_above, 1400);
	mock_fail_allocations = 1;
	expect_load(-ENOMEM, NULL);
	mock_fail_allocations = 0;
	mock_fail_files = 1;
	expect_load(-ENOMEM, NULL);
	mock_fail_files = 0;
	mock_fail_registration = 1;
	expect_load(-EINVAL, NULL);
	mock_fail_registration = 0;
	CHECK(!(marimo.flags & TCP_CONG_NON_RESTRICTED));
}

static void test_newer_kernel(void)
{
	int tried = mock_kernel;

	mock_kernel = KERNEL_VERSION(7, 4, 0);
	expect_load(-EOPNOTSUPP, "newer than 7.3");
	any_kernel = true;
	expect_load(0, NULL);
	any_kernel = false;
	mock_kernel = tried;
	expect_load(0, NULL);
}

static void test_private_size(void)
{
	CHECK(sizeof(struct marimo_tcp) <= ICSK_CA_PRIV_SIZE);
	EQUAL(marimo.flags, TCP_CONG_NEEDS_ECN);
	CHECK(!marimo.cong_avoid);
}

static void run_loading(void)
{
	RUN(test_parameters);
	RUN(test_newer_kernel);
	RUN(test_private_size);
}
