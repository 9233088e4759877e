// SPDX-License-Identifier: MIT OR Apache-2.0
/* The receiving side: CE is echoed exactly. */
#include "connection.h"

static void test_echo_is_exact(void)
{
	struct tcp_sock *tp = make_socket(TCP_ECN_OK);
	bool ce[200];
	u32 round, i, at, share, echoes = 0;

	for (round = 0; round < 300; round++) {
		u32 before = tp->rcv_nxt;

		share = draw(101);
		for (i = 0; i < 200; i++)
			ce[i] = draw(100) < share;
		sent_count = 0;
		receive(tp, ce, 200, round % 3 ? draw(40) : 0);
		/* Each packet is covered by an echo of what it carried. */
		for (i = 0, at = 0; i < sent_count; i++) {
			u32 to = sent_acks[i].position;

			for (; before + at * MSS != to; at++) {
				if (at == 200) {
					CHECK(!"acknowledged past the end");
					break;
				}
				if (sent_acks[i].ece != ce[at])
					EQUAL(sent_acks[i].ece, ce[at]);
				echoes++;
			}
		}
		EQUAL(at, 200);
	}
	EQUAL(echoes, 300 * 200);
	close_socket(tp);
}

static void test_echo_waits_without_a_change(void)
{
	struct tcp_sock *tp = make_socket(TCP_ECN_OK);
	bool marked[10] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 };

	sent_count = 0;
	receive(tp, marked, 10, 0);
	/* The first change at once, then every second packet. */
	EQUAL(sent_count, 1 + 4 + 1);
	close_socket(tp);
}

static void test_echo_survives_cwr(void)
{
	struct tcp_sock *tp = make_socket(TCP_ECN_OK);
	bool marked[2] = { 1, 1 };

	/* The kernel drops the demand when CWR arrives; CE goes on. */
	receive(tp, marked, 1, 0);
	tp->ecn_flags &= ~TCP_ECN_DEMAND_CWR;
	receive(tp, marked, 1, 0);
	CHECK(tp->ecn_flags & TCP_ECN_DEMAND_CWR);
	close_socket(tp);
}

#ifdef MARIMO_HAVE_ECN_MODE
static void test_accecn(void)
{
	struct tcp_sock *tp = make_socket(MOCK_ECN_ACCECN);
	bool marked[4] = { 1, 1, 0, 1 };

	CHECK(tp->icsk.icsk_ca_ops == &marimo);
	sent_count = 0;
	receive(tp, marked, 4, 0);
	CHECK(!(tp->ecn_flags & TCP_ECN_DEMAND_CWR));
	EQUAL(sent_count, 2);
	EQUAL(state(tp)->flags & MARIMO_TCP_CE, 0);
	close_socket(tp);
}
#endif

static void run_echo(void)
{
	RUN(test_echo_is_exact);
	RUN(test_echo_waits_without_a_change);
	RUN(test_echo_survives_cwr);
#ifdef MARIMO_HAVE_ECN_MODE
	RUN(test_accecn);
#endif
}
