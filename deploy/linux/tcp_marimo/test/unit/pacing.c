// SPDX-License-Identifier: MIT OR Apache-2.0
/* When it sends: after a pause, paced, in bundles. */
#include "connection.h"

static void test_idle(void)
{
	struct tcp_sock *tp = make_socket(TCP_ECN_OK);
	u32 packets;

	/* ECN is known to work: the loss below is no reason for a test. */
	state(tp)->flags |= MARIMO_TCP_SEEN;
	rounds(tp, 3, never);
	acknowledge(tp, tp->packets_out, false);
	CHECK(tp->snd_cwnd > 80);
	/* One timeout is no pause: the epoch under way goes on. */
	tcp_jiffies32 += tp->icsk.icsk_rto;
	fill(tp);
	CHECK(tp->snd_cwnd > 80);
	acknowledge(tp, tp->packets_out - 1, false);
	acknowledge(tp, 1, false);
	packets = state(tp)->core.epoch_packets;
	CHECK(packets > 0);
	tcp_jiffies32 += tp->icsk.icsk_rto;
	fill(tp);
	EQUAL(state(tp)->core.epoch_packets, packets);
	acknowledge(tp, tp->packets_out - 1, false);
	acknowledge(tp, 1, false);
	/* More than three timeouts: an eighth, and no less than the first. */
	tcp_jiffies32 += 3 * tp->icsk.icsk_rto + 1;
	{
		u32 before = window(tp);

		fill(tp);
		EQUAL(tp->snd_cwnd, before / 8);
		/* Nothing has ended the first slow start. */
		EQUAL(tp->snd_ssthresh, TCP_INFINITE_SSTHRESH);
		CHECK(state(tp)->core.flags & MARIMO_SLOW_START);
	}
	EQUAL(state(tp)->core.epoch_packets, 0);
	acknowledge(tp, tp->packets_out, false);
	tcp_jiffies32 += 1000000;
	fill(tp);
	EQUAL(tp->snd_cwnd, 10);
	acknowledge(tp, tp->packets_out, false);
	/* As the sysctl says. */
	mock_net.ipv4.sysctl_tcp_slow_start_after_idle = 0;
	rounds(tp, 2, never);
	acknowledge(tp, tp->packets_out, false);
	{
		u32 before = tp->snd_cwnd;

		CHECK(before > 10);
		tcp_jiffies32 += 1000000;
		fill(tp);
		EQUAL(tp->snd_cwnd, before);
	}
	mock_net.ipv4.sysctl_tcp_slow_start_after_idle = 1;
	/* Later there is a threshold: up to three quarters, no lower than it. */
	enter_recovery(tp, 3);
	control(tp, 1);
	tp->sacked_out = 0;
	tp->lost_out = 0;
	acknowledge(tp, tp->packets_out, false);
	set_state(tp, TCP_CA_Open);
	rounds(tp, 8, never);
	acknowledge(tp, tp->packets_out, false);
	CHECK(!(state(tp)->core.flags & MARIMO_SLOW_START));
	{
		u32 before = state(tp)->core.window;
		u32 threshold = state(tp)->core.threshold;

		CHECK(before > threshold);
		tcp_jiffies32 += tp->icsk.icsk_rto + 1;
		fill(tp);
		EQUAL(tp->snd_cwnd, before >> 17);
		EQUAL(state(tp)->core.threshold,
		      max(threshold, before - before / 4));
		CHECK(state(tp)->core.flags & MARIMO_SLOW_START);
	}
	close_socket(tp);

	/* Without any slow start the way back is one. */
	{
		struct tcp_sock *steady;
		u8 start = marimo_config.slow_start;
		u32 before;

		marimo_config.slow_start = MARIMO_START_STEADY;
		steady = make_socket(TCP_ECN_OK);
		rounds(steady, 12, never);
		acknowledge(steady, steady->packets_out, false);
		before = state(steady)->core.window;
		CHECK(before > 20 * MARIMO_ONE);
		tcp_jiffies32 += steady->icsk.icsk_rto + 1;
		fill(steady);
		EQUAL(steady->snd_cwnd, before >> 17);
		EQUAL(steady->snd_ssthresh, (before - before / 4) >> 16);
		marimo_config.slow_start = start;
		close_socket(steady);
	}
}

static void test_pacing(void)
{
	struct tcp_sock *tp = make_socket(TCP_ECN_OK);
	struct sock *sk = (struct sock *)tp;
	u64 exact;

	EQUAL(sk->sk_pacing_status, SK_PACING_NEEDED);
	/* Twice ten packets of 1000 bytes in 100 us. */
	exact = 2ull * 10 * MSS * 1000000 / 100;
	CHECK(sk->sk_pacing_rate <= exact);
	CHECK(sk->sk_pacing_rate >= exact - exact / 8192);
	rounds(tp, 2, every_second);
	rounds(tp, 2, never);
	exact = 5ull * max(tp->snd_cwnd, tcp_packets_in_flight(tp)) * MSS *
		10000 / 4;
	CHECK(sk->sk_pacing_rate <= exact);
	CHECK(sk->sk_pacing_rate >= exact - exact / 8192);
	/* SO_MAX_PACING_RATE, a route without a measured round trip. */
	sk->sk_max_pacing_rate = 5000;
	control(tp, 0);
	acknowledge(tp, 1, false);
	EQUAL(sk->sk_pacing_rate, 5000);
	tp->srtt_us = 0;
	sk->sk_max_pacing_rate = ~0ul;
	acknowledge(tp, 1, false);
	EQUAL(sk->sk_pacing_rate, 5000);
	close_socket(tp);

	/* A socket that fq paces already stays with it. */
	tp = make_socket(TCP_ECN_OK);
	((struct sock *)tp)->sk_pacing_status = SK_PACING_FQ;
	marimo_tcp_release((struct sock *)tp);
	marimo.init((struct sock *)tp);
	EQUAL(((struct sock *)tp)->sk_pacing_status, SK_PACING_FQ);
	close_socket(tp);

	pacing = false;
	tp = make_socket(TCP_ECN_OK);
	sk = (struct sock *)tp;
	EQUAL(sk->sk_pacing_status, SK_PACING_NONE);
	/* Nor by fq, at whatever rate was left by another algorithm. */
	sk->sk_pacing_rate = 1000;
	sk->sk_pacing_status = SK_PACING_FQ;
	rounds(tp, 2, every_second);
	EQUAL(sk->sk_pacing_rate, ~0ul);
	sk->sk_max_pacing_rate = 5000;
	rounds(tp, 1, never);
	EQUAL(sk->sk_pacing_rate, 5000);
	pacing = true;
	close_socket(tp);
}

static void test_tso(void)
{
	struct tcp_sock *tp = make_socket(TCP_ECN_OK);

	EQUAL(marimo.min_tso_segs((struct sock *)tp), 2);
	state(tp)->core.window = 4 * MARIMO_ONE;
	EQUAL(marimo.min_tso_segs((struct sock *)tp), 1);
	close_socket(tp);
}

/* As tcp_mtup_probe_success(): fewer packets, no more bytes. */
static void test_a_probe_of_the_mtu(void)
{
	struct tcp_sock *tp = make_socket(TCP_ECN_OK);
	u32 bytes, after;

	tp->mss_cache = 1024;
	rounds(tp, 2, never);
	bytes = tp->snd_cwnd * tp->mss_cache;
	tp->snd_cwnd = tp->snd_cwnd * 1024 / 8948;
	tp->mss_cache = 8948;
	acknowledge(tp, 1, false);
	after = tp->snd_cwnd * tp->mss_cache;
	/* One acknowledgement in slow start adds a packet. */
	CHECK(after <= bytes + 8948);
	CHECK(after > bytes - 2 * 8948);
	/* Back to small ones: as many packets. */
	bytes = tp->snd_cwnd;
	tp->mss_cache = 1024;
	acknowledge(tp, 1, false);
	CHECK(tp->snd_cwnd >= bytes && tp->snd_cwnd <= bytes + 1);
	close_socket(tp);
}

static void run_pacing(void)
{
	RUN(test_idle);
	RUN(test_a_probe_of_the_mtu);
	RUN(test_pacing);
	RUN(test_tso);
}
