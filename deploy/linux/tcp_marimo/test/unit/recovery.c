// SPDX-License-Identifier: MIT OR Apache-2.0
/* Losses, timeouts, and what is undone of them. */
#include "connection.h"

static void test_recovery(void)
{
	struct tcp_sock *tp = make_socket(TCP_ECN_OK);
	u32 sent = 0, delivered, i;

	rounds(tp, 1, never);
	EQUAL(tp->packets_out, 20);
	/* Packet 0 is lost; 1, 2 and 3 are selectively acknowledged. */
	enter_recovery(tp, 3);
	EQUAL(window(tp), 10);
	EQUAL(tp->snd_ssthresh, 10);
	CHECK(tp->snd_cwnd > tcp_packets_in_flight(tp));
	control(tp, 1);
	/* RFC 6937: ceil(3 * 10 / 20) = 2 may leave; the retransmission. */
	EQUAL(tp->snd_cwnd, tcp_packets_in_flight(tp) + 2);
	tp->retrans_out = 1;
	tp->data_segs_out++;
	sent++;
	delivered = 3;
	for (i = 4; i < 20; i++) {
		u32 allowed;

		tp->sacked_out++;
		tp->delivered++;
		delivered++;
		control(tp, 0);
		allowed = tp->snd_cwnd - tcp_packets_in_flight(tp);
		if (tcp_packets_in_flight(tp) > 10)
			EQUAL(allowed, (delivered * 10 + 19) / 20 - sent);
		sent += fill(tp);
		CHECK(sent <= (delivered * 10 + 19) / 20 + 1);
	}
	CHECK(tcp_packets_in_flight(tp) <= 10);
	CHECK(sent >= 9);
	/* The retransmission arrives: all is acknowledged, one growth later. */
	tp->snd_una = tp->high_seq;
	tp->packets_out -= 20;
	tp->sacked_out = tp->lost_out = tp->retrans_out = 0;
	tp->delivered++;
	set_state(tp, TCP_CA_Open);
	control(tp, 0);
	EQUAL(tp->snd_cwnd, 10);
	EQUAL(tp->snd_ssthresh, 10);
	close_socket(tp);
}

static void test_recovery_from_a_timer(void)
{
	struct tcp_sock *tp = make_socket(TCP_ECN_OK);

	/* RACK's timer enters recovery without an acknowledgement: the lost
	 * packet must be allowed out although the pipe is over the target.
	 */
	rounds(tp, 1, never);
	tp->lost_out = 1;
	tp->high_seq = tp->snd_nxt;
	set_state(tp, TCP_CA_Recovery);
	EQUAL(tp->snd_cwnd, tcp_packets_in_flight(tp) + 1);
	close_socket(tp);
}

static void test_loss_repaired_by_a_probe(void)
{
	struct tcp_sock *tp = make_socket(TCP_ECN_OK);

	/* tcp_process_tlp_ack(): CWR for a moment, without a mark. */
	rounds(tp, 1, never);
	tp->snd_una = tp->snd_nxt;
	tp->delivered += tp->packets_out;
	tp->packets_out = 0;
	tp->high_seq = tp->snd_nxt;
	set_state(tp, TCP_CA_CWR);
	set_state(tp, TCP_CA_Open);
	control(tp, 0);
	EQUAL(tp->snd_ssthresh, 20);
	EQUAL(tp->snd_cwnd, 20);
	CHECK(mock_ack.events & MARIMO_TCP_DID_ACK);
	close_socket(tp);

	/* CWR for marks ends beyond what was out then: no loss. */
	tp = make_socket(TCP_ECN_OK);
	fill(tp);
	acknowledge(tp, 1, true);
	EQUAL(tp->icsk.icsk_ca_state, TCP_CA_CWR);
	fill(tp);
	while (tp->icsk.icsk_ca_state == TCP_CA_CWR) {
		acknowledge(tp, 1, false);
		fill(tp);
	}
	CHECK(!(state(tp)->core.flags & MARIMO_LOSS));
	CHECK(window(tp) >= 9);
	close_socket(tp);
}

static void test_two_losses_are_one_reduction(void)
{
	struct tcp_sock *tp = make_socket(TCP_ECN_OK);

	rounds(tp, 1, never);
	enter_recovery(tp, 3);
	control(tp, 1);
	/* Left and entered again within the same window of data. */
	set_state(tp, TCP_CA_Disorder);
	enter_recovery(tp, 5);
	control(tp, 1);
	EQUAL(window(tp), 10);
	close_socket(tp);
}

static void test_timeout(void)
{
	struct tcp_sock *tp = make_socket(TCP_ECN_OK);
	u32 i;

	rounds(tp, 1, never);
	timeout(tp);
	EQUAL(tp->snd_cwnd, 1);
	EQUAL(window(tp), 1);
	EQUAL(tp->snd_ssthresh, 10);
	/* Again: the threshold stays. */
	timeout(tp);
	EQUAL(tp->snd_ssthresh, 10);
	/* Slow start out of it. */
	for (i = 0; i < 20; i++) {
		tp->is_cwnd_limited = true;
		tp->lost_out -= tp->lost_out > 0;
		acknowledge(tp, 1, false);
		CHECK(tp->snd_cwnd <= max(i + 2, 10u) + 1);
	}
	set_state(tp, TCP_CA_Open);
	control(tp, 0);
	CHECK(tp->snd_cwnd >= 10 && tp->snd_cwnd <= 12);
	close_socket(tp);
}

static void test_timeout_within_recovery(void)
{
	struct tcp_sock *tp = make_socket(TCP_ECN_OK);

	rounds(tp, 1, never);
	enter_recovery(tp, 3);
	control(tp, 1);
	timeout(tp);
	EQUAL(window(tp), 1);
	EQUAL(tp->snd_ssthresh, 5);
	close_socket(tp);
}

static void test_floor_after_timeout_with_marks(void)
{
	struct tcp_sock *tp = make_socket(TCP_ECN_OK);

	fill(tp);
	timeout(tp);
	acknowledge(tp, 1, true);
	EQUAL(tp->snd_cwnd, 1);
	tp->lost_out = 0;
	set_state(tp, TCP_CA_Open);
	control(tp, 0);
	EQUAL(tp->snd_cwnd, 2);
	close_socket(tp);
}

static void test_reordering_is_undone(void)
{
	struct tcp_sock *tp = make_socket(TCP_ECN_OK);
	u32 rho;

	rounds(tp, 2, never);
	rho = state(tp)->core.rho;
	EQUAL(tp->snd_cwnd, 40);
	enter_recovery(tp, 3);
	control(tp, 1);
	CHECK(state(tp)->core.rho > rho);
	EQUAL(window(tp), 20);
	undo(tp);
	EQUAL(tp->snd_cwnd, 40);
	EQUAL(state(tp)->core.rho, rho);
	EQUAL(mock_ack.events, MARIMO_TCP_DID_UNDO);
	control(tp, 0);
	EQUAL(tp->snd_cwnd, 40);
	EQUAL(tp->snd_ssthresh, TCP_INFINITE_SSTHRESH);
	/* A second undo of the same has nothing to go back to. */
	EQUAL(tp->icsk.icsk_ca_ops->undo_cwnd((struct sock *)tp), 40);

	/* And a timeout that was spurious (F-RTO, Eifel). */
	tp->sacked_out = 0;
	timeout(tp);
	EQUAL(window(tp), 1);
	undo(tp);
	control(tp, 0);
	EQUAL(tp->snd_cwnd, 40);
	close_socket(tp);
}

/* Undone in congestion avoidance, with epochs that were to settle. */
static void test_growth_after_an_undo(void)
{
	u8 settle_before = marimo_config.settle;
	struct tcp_sock *tp;
	u32 before;

	marimo_config.settle = 3;
	marimo_config.slow_start = MARIMO_START_STEADY;
	tp = make_socket(TCP_ECN_OK);
	rounds(tp, 4, never);
	before = state(tp)->core.window;
	CHECK(state(tp)->core.gain > 0);
	enter_recovery(tp, 3);
	control(tp, 1);
	EQUAL(state(tp)->core.settling, 3);
	EQUAL(state(tp)->core.gain, 0);
	undo(tp);
	EQUAL(state(tp)->core.window, before);
	EQUAL(state(tp)->core.settling, 0);
	EQUAL(state(tp)->core.gain, (1 << 24) / (before >> 8));
	tp->sacked_out = 0;
	/* The very next window of data adds its packet. */
	acknowledge(tp, tp->packets_out, false);
	CHECK(state(tp)->core.window > before + MARIMO_ONE / 2);
	close_socket(tp);
	marimo_config.settle = settle_before;
	marimo_config.slow_start = MARIMO_START_EPOCH;
}

static void test_no_undo_of_marks(void)
{
	struct tcp_sock *tp = make_socket(TCP_ECN_OK);
	u32 marked;

	rounds(tp, 3, always);
	marked = tp->snd_cwnd;
	tp->snd_una = tp->high_seq + MSS;
	set_state(tp, TCP_CA_Open);
	enter_recovery(tp, 3);
	control(tp, 1);
	undo(tp);
	control(tp, 0);
	CHECK(tp->snd_cwnd <= marked);
	close_socket(tp);
}

static void test_mtu_change(void)
{
	struct tcp_sock *tp = make_socket(TCP_ECN_OK);

	/* tcp_simple_retransmit(): state Loss without a timeout. */
	rounds(tp, 1, never);
	tp->mss_cache = 500;
	tp->lost_out = 5;
	tp->high_seq = tp->snd_nxt;
	tp->prior_ssthresh = 0;
	set_state(tp, TCP_CA_Loss);
	EQUAL(window(tp), 20);
	EQUAL(tp->snd_cwnd, 20);
	tp->lost_out = 0;
	acknowledge(tp, 5, false);
	CHECK(tp->snd_cwnd >= 20);
	close_socket(tp);
}

static void run_recovery(void)
{
	RUN(test_recovery);
	RUN(test_recovery_from_a_timer);
	RUN(test_loss_repaired_by_a_probe);
	RUN(test_two_losses_are_one_reduction);
	RUN(test_timeout);
	RUN(test_timeout_within_recovery);
	RUN(test_floor_after_timeout_with_marks);
	RUN(test_reordering_is_undone);
	RUN(test_growth_after_an_undo);
	RUN(test_no_undo_of_marks);
	RUN(test_mtu_change);
}
