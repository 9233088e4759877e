// SPDX-License-Identifier: MIT OR Apache-2.0
/* How connections begin and end, and what becomes of those without ECN. */
#include "connection.h"

static void test_fall_back(void)
{
	int fallbacks = atomic_read(&marimo_counters.fallbacks);
	int connections = atomic_read(&marimo_counters.connections);
	struct tcp_sock *tp = make_socket(0);
	struct sock *sk = (struct sock *)tp;
	union tcp_cc_info info;
	int attr = 0;

	CHECK(tp->icsk.icsk_ca_ops == &marimo_reno);
	CHECK(!(tp->icsk.icsk_ca_ops->flags & TCP_CONG_NEEDS_ECN));
	CHECK(tp->icsk.icsk_ca_ops->owner == THIS_MODULE);
	CHECK(!mock_ect(sk));
	EQUAL(atomic_read(&marimo_counters.fallbacks), fallbacks + 1);
	EQUAL(atomic_read(&marimo_counters.connections), connections);
	EQUAL(sk->sk_pacing_status, SK_PACING_NONE);
	memset(&info, 0xff, sizeof(info));
	EQUAL(marimo_get_info(sk, 1 << (INET_DIAG_DCTCPINFO - 1), &attr, &info),
	      sizeof(info.dctcp));
	EQUAL(info.dctcp.dctcp_enabled, 0);
	close_socket(tp);
	EQUAL(atomic_read(&marimo_counters.connections), connections);

	/* A listener: released without ever having been initialised. */
	tp = calloc(1, sizeof(*tp));
	sk = (struct sock *)tp;
	tp->icsk.icsk_ca_ops = &marimo;
	sk->sk_state = TCP_LISTEN;
	close_socket(tp);
	EQUAL(atomic_read(&marimo_counters.connections), connections);

	/* Chosen while connecting, to a peer that turned out to have none. */
	tp = make_socket(TCP_ECN_OK);
	fill(tp);
	tp->ecn_flags = 0;
	acknowledge(tp, 1, false);
	CHECK(tp->icsk.icsk_ca_ops == &marimo_reno);
	CHECK(!mock_ect(tp));
	EQUAL(atomic_read(&marimo_counters.connections), connections);
	close_socket(tp);
	EQUAL(atomic_read(&marimo_counters.connections), connections);
}

static void test_before_and_after_a_connection(void)
{
	struct tcp_sock *tp = calloc(1, sizeof(*tp));
	struct sock *sk = (struct sock *)tp;
	int syns = atomic_read(&marimo_counters.syns);
	unsigned int acks = mock_ack_count;
	bool marked = true;
	u32 i;

	/* A SYN is lost twice, then answered: all of that before init. */
	tp->icsk.icsk_ca_ops = &marimo;
	tp->snd_una = 0u - 5;
	tp->snd_cwnd = 10;
	tp->snd_ssthresh = TCP_INFINITE_SSTHRESH;
	tp->snd_cwnd_clamp = ~0u;
	tp->mss_cache = MSS;
	tp->packets_out = 1;
	sk->sk_state = TCP_SYN_SENT;
	INET_ECN_xmit(sk);
	for (i = 0; i < 2; i++) {
		timeout(tp);
		EQUAL(tp->snd_cwnd, 1);
		/* Not for somebody who drops what is ECT. */
		CHECK(!mock_ect(tp));
		EQUAL(atomic_read(&marimo_counters.syns), syns + i + 1);
	}
	start(tp);
	receive(tp, &marked, 1, 0);
	acknowledge(tp, 1, true);
	EQUAL(tp->snd_cwnd, 1);
	EQUAL(marimo.undo_cwnd(sk), 1);
	EQUAL(mock_ack_count, acks);
	for (i = 0; i < sizeof(tp->icsk.icsk_ca_priv) / 8; i++)
		EQUAL(tp->icsk.icsk_ca_priv[i], 0);
	close_socket(tp);

	/* tcp_disconnect(): the state is cleared, then changes. */
	tp = make_socket(TCP_ECN_OK);
	sk = (struct sock *)tp;
	rounds(tp, 2, always);
	EQUAL(tp->icsk.icsk_ca_state, TCP_CA_CWR);
	acks = mock_ack_count;
	marimo.release(sk);
	memset(tp->icsk.icsk_ca_priv, 0, sizeof(tp->icsk.icsk_ca_priv));
	tp->delivered = tp->delivered_ce = 0;
	set_state(tp, TCP_CA_Open);
	EQUAL(mock_ack_count, acks);
	close_socket(tp);
}

static void test_initial_window_of_the_route(void)
{
	struct tcp_sock *tp = make_socket(TCP_ECN_OK);
	struct sock *sk = (struct sock *)tp;

	tp->snd_cwnd = 32;
	marimo_tcp_release(sk);
	marimo.init(sk);
	EQUAL(window(tp), 32);
	/* Changed to in the middle of a connection. */
	tp->snd_cwnd = 50;
	tp->snd_ssthresh = 40;
	marimo_tcp_release(sk);
	marimo.init(sk);
	EQUAL(window(tp), 50);
	CHECK(!(state(tp)->core.flags & MARIMO_SLOW_START));
	CHECK(state(tp)->core.gain > 0);
	EQUAL(marimo.ssthresh(sk), 40);
	/* Larger than can be counted. */
	tp->snd_cwnd = 1u << 20;
	marimo_tcp_release(sk);
	marimo.init(sk);
	EQUAL(window(tp), 65535);
	close_socket(tp);
}

/* Its SYN was sent again, and the kernel then asks for no ECN. */
static void test_fall_back_by_a_lost_syn(void)
{
	int lost = atomic_read(&marimo_counters.fallbacks_syn);
	struct tcp_sock *tp = make_socket(TCP_ECN_OK);

	marimo_tcp_release((struct sock *)tp);
	tp->ecn_flags = 0;
	tp->total_retrans = 1;
	marimo.init((struct sock *)tp);
	CHECK(tp->icsk.icsk_ca_ops == &marimo_reno);
	EQUAL(atomic_read(&marimo_counters.fallbacks_syn), lost + 1);
	/* A listener's connection counts SYN-ACKs that it sent again. */
	tp->icsk.icsk_ca_ops = &marimo;
	((struct sock *)tp)->sk_state = TCP_SYN_RECV;
	marimo.init((struct sock *)tp);
	EQUAL(atomic_read(&marimo_counters.fallbacks_syn), lost + 1);
	((struct sock *)tp)->sk_state = TCP_ESTABLISHED;
	/* In the middle of a connection it says nothing of the SYN. */
	tp->icsk.icsk_ca_ops = &marimo;
	tp->data_segs_out = 7;
	marimo.init((struct sock *)tp);
	CHECK(tp->icsk.icsk_ca_ops == &marimo_reno);
	EQUAL(atomic_read(&marimo_counters.fallbacks_syn), lost + 1);
	close_socket(tp);
}

#if MARIMO_CAN_MARK
/* A loss before any mark: what is sent next carries CE, which is echoed. */
static void test_ecn_is_tested_after_a_loss(void)
{
	int failed = atomic_read(&marimo_counters.fallbacks_echo);
	int family;

	for (family = AF_INET; family <= AF_INET6; family += AF_INET6 - AF_INET) {
		struct tcp_sock *tp = make_socket(TCP_ECN_OK);
		struct sock *sk = (struct sock *)tp;
		u32 count;

		sk->sk_family = family;
		rounds(tp, 2, never);
		EQUAL(mock_ect(tp), 2);
		lose(tp);
		EQUAL(mock_ect(tp), 3);
		/* Nor does another congestion control inherit it. */
		marimo.release(sk);
		EQUAL(mock_ect(tp), 2);
		atomic_inc(&marimo_counters.connections);
		marimo_set_codepoint(sk, MARIMO_TCP_SEND_CE);
		if (family == AF_INET6)
			EQUAL(mock_ipv6.tclass & 3, 3);
		for (count = fill(tp); count; count--) {
			acknowledge(tp, 1, true);
			EQUAL(mock_ect(tp), 2);
		}
		EQUAL(mock_ipv6.tclass & 3, family == AF_INET6 ? 2 : 0);
		CHECK(tp->icsk.icsk_ca_ops == &marimo);
		/* Its echo was no load. */
		rounds(tp, 2, never);
		EQUAL(state(tp)->core.share, 0);
		lose(tp);
		rounds(tp, 1, never);
		CHECK(tp->icsk.icsk_ca_ops == &marimo);
		EQUAL(mock_ect(tp), 2);
		close_socket(tp);
	}
	EQUAL(atomic_read(&marimo_counters.fallbacks_echo), failed);
}
#endif

/* No mark is ever echoed: two tests, or eight losses. */
static void test_ecn_that_fails(void)
{
	int connections = atomic_read(&marimo_counters.connections);
	int failed = atomic_read(&marimo_counters.fallbacks_echo);
	struct tcp_sock *tp = make_socket(TCP_ECN_OK);
	u32 losses;

	rounds(tp, 2, never);
	for (losses = 0; losses < (MARIMO_CAN_MARK ? 1 : MARIMO_TCP_LOSSES); losses++) {
		CHECK(tp->icsk.icsk_ca_ops == &marimo);
		lose(tp);
	}
	if (MARIMO_CAN_MARK) {
		/* One echo may be lost. */
		rounds(tp, 1, never);
		CHECK(tp->icsk.icsk_ca_ops == &marimo);
		rounds(tp, 3, never);
	}
	CHECK(tp->icsk.icsk_ca_ops == &marimo_reno);
	EQUAL(atomic_read(&marimo_counters.fallbacks_echo), failed + 1);
	EQUAL(atomic_read(&marimo_counters.connections), connections);
	/* What it sends then is not ECN-capable. */
	acknowledge(tp, tp->packets_out, false);
	fill(tp);
	EQUAL(mock_ect(tp), 0);
	close_socket(tp);
	EQUAL(atomic_read(&marimo_counters.connections), connections);
}

/* Of timeouts in a row two have ECT: what is sent again then is without. */
static void test_an_outage_says_little_of_ecn(void)
{
	struct tcp_sock *tp = make_socket(TCP_ECN_OK);
	u32 i;

	rounds(tp, 1, never);
	for (i = 0; i < 6; i++)
		timeout(tp);
	CHECK(tp->icsk.icsk_ca_ops == &marimo);
	EQUAL(state(tp)->core.ect_timeouts, 2);
	EQUAL(state(tp)->run_bits, MARIMO_CAN_MARK ? 0 : 1);
	/* It is over. */
	tp->lost_out = 0;
	acknowledge(tp, tp->packets_out, false);
	set_state(tp, TCP_CA_Open);
	rounds(tp, 1, never);
	EQUAL(state(tp)->core.ect_timeouts, 0);
	for (i = 0; i < 2; i++)
		timeout(tp);
	CHECK(tp->icsk.icsk_ca_ops == &marimo);
	close_socket(tp);
}

/* The handshake came through with ECT, data does not. */
static void test_data_with_ect_is_dropped(void)
{
	int failed = atomic_read(&marimo_counters.fallbacks_ect);
	int echo = atomic_read(&marimo_counters.fallbacks_echo);
	struct tcp_sock *tp = make_socket(TCP_ECN_OK);
	struct sock *sk = (struct sock *)tp;

	sk->sk_family = AF_INET6;
	fill(tp);
	timeout(tp);
	EQUAL(mock_ect(tp), 2);
	timeout(tp);
	/* What is sent again has none, and arrives. */
	EQUAL(mock_ect(tp), 0);
	EQUAL(mock_ipv6.tclass & 3, 0);
	acknowledge(tp, 4, false);
	EQUAL(mock_ect(tp), 0);
	tp->lost_out = 0;
	acknowledge(tp, tp->packets_out, false);
	set_state(tp, TCP_CA_Open);
	control(tp, 0);
	EQUAL(mock_ect(tp), 2);
	EQUAL(mock_ipv6.tclass & 3, 2);
	fill(tp);
	CHECK(tp->icsk.icsk_ca_ops == &marimo);
	timeout(tp);
	CHECK(tp->icsk.icsk_ca_ops == &marimo_reno);
	EQUAL(atomic_read(&marimo_counters.fallbacks_ect), failed + 1);
	EQUAL(atomic_read(&marimo_counters.fallbacks_echo), echo);
	tp->lost_out = 0;
	acknowledge(tp, tp->packets_out, false);
	set_state(tp, TCP_CA_Open);
	fill(tp);
	EQUAL(mock_ect(tp), 0);
	close_socket(tp);
}

static void test_the_kernel_tells_of_starts(void)
{
	struct tcp_sock *tp;

	atomic_set(&marimo_counters.starts, 0);
	tp = make_socket(TCP_ECN_OK);
	EQUAL(atomic_read(&marimo_counters.starts), 0);
	fill(tp);
	EQUAL(atomic_read(&marimo_counters.starts), 1);
	close_socket(tp);
}

static void run_life(void)
{
	RUN(test_fall_back);
	RUN(test_before_and_after_a_connection);
	RUN(test_initial_window_of_the_route);
	RUN(test_fall_back_by_a_lost_syn);
#if MARIMO_CAN_MARK
	RUN(test_ecn_is_tested_after_a_loss);
#endif
	RUN(test_ecn_that_fails);
	RUN(test_an_outage_says_little_of_ecn);
	RUN(test_data_with_ect_is_dropped);
	RUN(test_the_kernel_tells_of_starts);
}
