// SPDX-License-Identifier: MIT OR Apache-2.0
/* The window: growth, marks, what limits it. */
#include "connection.h"

static void test_slow_start_and_growth(void)
{
	struct tcp_sock *tp;
	u32 before;

	mock_ack_hook = replay;
	tp = make_socket(TCP_ECN_OK);
	EQUAL(tp->snd_cwnd, 10);
	rounds(tp, 1, never);
	EQUAL(tp->snd_cwnd, 20);
	EQUAL(tp->snd_ssthresh, TCP_INFINITE_SSTHRESH);
	/* A mark stops it at once, what it takes waits for the epoch's end. */
	rounds(tp, 3, every_second);
	CHECK(tp->snd_cwnd < 45);
	CHECK(tp->snd_ssthresh < TCP_INFINITE_SSTHRESH);
	EQUAL(tp->snd_cwnd, window(tp));
	rounds(tp, 8, never);
	before = tp->snd_cwnd;
	rounds(tp, 20, never);
	CHECK(tp->snd_cwnd >= before + 18 && tp->snd_cwnd <= before + 22);
	CHECK(replay_events > 100);
	mock_ack_hook = NULL;
	close_socket(tp);
}

static void test_ce_on_every_packet(void)
{
	struct tcp_sock *tp = make_socket(TCP_ECN_OK);
	u32 round, epochs, last;

	rounds(tp, 2, never);
	last = tp->snd_cwnd;
	for (round = 0; round < 30; round++) {
		u32 falls = 0, packets, i;

		fill(tp);
		packets = tp->packets_out;
		epochs = state(tp)->core.epochs;
		for (i = 0; i < packets; i++) {
			acknowledge(tp, 1, true);
			falls += tp->snd_cwnd < last;
			CHECK(round < 2 || tp->snd_cwnd <= last);
			last = tp->snd_cwnd;
			fill(tp);
		}
		/* However many marks: one decrease in an epoch. */
		CHECK(falls <= state(tp)->core.epochs - epochs);
		CHECK(state(tp)->core.epochs - epochs <= 3);
	}
	EQUAL(tp->snd_cwnd, 2);
	EQUAL(state(tp)->core.share, MARIMO_ONE);
	EQUAL(tp->snd_ssthresh, 2);
	rounds(tp, 12, never);
	CHECK(tp->snd_cwnd > 5);
	close_socket(tp);
}

static void test_echoes_beyond_packets_are_clamped(void)
{
	struct tcp_sock *tp = make_socket(TCP_ECN_OK);

	fill(tp);
	/* More echoes than packets, and echoes without packets. */
	tp->delivered_ce += 3;
	control(tp, 0);
	EQUAL(state(tp)->core.epoch_marked, 0);
	acknowledge(tp, 2, true);
	EQUAL(state(tp)->core.epoch_packets, 2);
	EQUAL(state(tp)->core.epoch_marked, 2);
	CHECK(state(tp)->core.share <= MARIMO_ONE);
	close_socket(tp);
}

static void test_ect_stripped_on_the_way(void)
{
	struct tcp_sock *tp = make_socket(TCP_ECN_OK);

	/* Negotiated, but never a mark: losses alone hold it back. */
	rounds(tp, 2, never);
	EQUAL(tp->snd_cwnd, 40);
	enter_recovery(tp, 3);
	control(tp, 1);
	EQUAL(window(tp), 20);
	EQUAL(tp->snd_ssthresh, 20);
	close_socket(tp);
}

static void test_application_limited(void)
{
	struct tcp_sock *tp = make_socket(TCP_ECN_OK);
	u32 round, before;

	rounds(tp, 2, every_second);
	rounds(tp, 4, never);
	tp->is_cwnd_limited = false;
	acknowledge(tp, tp->packets_out, false);
	before = tp->snd_cwnd;
	for (round = 0; round < 50; round++) {
		tp->snd_nxt += 2 * MSS;
		tp->packets_out = 2;
		tp->data_segs_out += 2;
		tp->max_packets_out = 2;
		tp->is_cwnd_limited = false;
		acknowledge(tp, 2, false);
	}
	EQUAL(tp->snd_cwnd, before);
	CHECK(state(tp)->core.epochs > 40);
	close_socket(tp);

	/* In slow start twice what was used is enough. */
	tp = make_socket(TCP_ECN_OK);
	tp->snd_nxt += 6 * MSS;
	tp->packets_out = tp->max_packets_out = 6;
	acknowledge(tp, 6, false);
	EQUAL(tp->snd_cwnd, 16);
	tp->snd_nxt += 6 * MSS;
	tp->packets_out = tp->max_packets_out = 6;
	acknowledge(tp, 6, false);
	EQUAL(tp->snd_cwnd, 16);
	close_socket(tp);
}

static void test_clamp(void)
{
	struct tcp_sock *tp = make_socket(TCP_ECN_OK);

	tp->snd_cwnd_clamp = 12;
	rounds(tp, 6, never);
	EQUAL(tp->snd_cwnd, 12);
	CHECK(window(tp) <= 12 + 1);
	close_socket(tp);
}

static void run_window(void)
{
	RUN(test_slow_start_and_growth);
	RUN(test_ce_on_every_packet);
	RUN(test_echoes_beyond_packets_are_clamped);
	RUN(test_ect_stripped_on_the_way);
	RUN(test_application_limited);
	RUN(test_clamp);
}
