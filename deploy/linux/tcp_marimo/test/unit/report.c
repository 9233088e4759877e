// SPDX-License-Identifier: MIT OR Apache-2.0
/* What is said of a connection: to ss, about its peer, in traces. */
#include "connection.h"

static void test_info(void)
{
	struct tcp_sock *tp = make_socket(TCP_ECN_OK);
	struct sock *sk = (struct sock *)tp;
	union tcp_cc_info info;
	bool marked = true;
	int attr = 0;

	fill(tp);
	acknowledge(tp, 1, false);
	acknowledge(tp, 1, true);
	receive(tp, &marked, 1, 0);
	EQUAL(marimo_get_info(sk, 0, &attr, &info), 0);
	EQUAL(attr, 0);
	memset(&info, 0xff, sizeof(info));
	EQUAL(marimo_get_info(sk, 1 << (INET_DIAG_VEGASINFO - 1), &attr, &info),
	      sizeof(struct tcp_dctcp_info));
	EQUAL(attr, INET_DIAG_DCTCPINFO);
	EQUAL(info.dctcp.dctcp_enabled, 1);
	EQUAL(info.dctcp.dctcp_ce_state, 1);
	EQUAL(info.dctcp.dctcp_alpha, state(tp)->core.rho * 1024 / 65536);
	EQUAL(info.dctcp.dctcp_ab_tot, 2 * MSS);
	EQUAL(info.dctcp.dctcp_ab_ecn, MSS);
	state(tp)->peer = MARIMO_TCP_PEER_LATCHES;
	marimo_get_info(sk, 1 << (INET_DIAG_VEGASINFO - 1), &attr, &info);
	EQUAL(info.dctcp.dctcp_ce_state, 3);
	close_socket(tp);
}

/*
 * A flow over a peer that echoes exactly, or until CWR arrives as RFC 3168
 * says, and CE by chance.
 */
static u32 judged(struct tcp_sock *tp, bool latching, u32 share, u32 burst,
		  u32 packets)
{
	bool echoing = false, cwr = false, ce = false;
	u32 cwr_at = 0, entered = tp->high_seq, marks = 0;

	while (packets--) {
		/* Bursts of so many packets on average, marked or not. */
		if (draw(burst) == 0)
			ce = draw(100) < share;
		fill(tp);
		marks += ce;
		if (!latching) {
			echoing = ce;
		} else {
			/* The segment with CWR is the first sent after it. */
			if (cwr && tp->snd_una == cwr_at) {
				echoing = false;
				cwr = false;
			}
			echoing = echoing || ce;
		}
		acknowledge(tp, 1, echoing);
		/* Entered, perhaps in the same moment as it was left. */
		if (tp->icsk.icsk_ca_state == TCP_CA_CWR &&
		    tp->high_seq != entered) {
			entered = tp->high_seq;
			cwr_at = cwr ? cwr_at : entered;
			cwr = true;
		}
	}
	return marks;
}

static void test_latching_peers(void)
{
	int latched = atomic_read(&marimo_counters.latched);
	u32 share, burst, found = 0;

	for (share = 1; share <= 10; share++) {
		struct tcp_sock *tp = make_socket(TCP_ECN_OK);
		u32 marks = judged(tp, true, share, 1, 20000);

		found += marimo_tcp_latched(state(tp));
		CHECK(tp->delivered_ce > marks);
		close_socket(tp);
	}
	EQUAL(found, 10);
	for (share = 1; share < 100; share += 7) {
		for (burst = 1; burst < 200; burst *= 3) {
			struct tcp_sock *tp = make_socket(TCP_ECN_OK);
			u32 marks = judged(tp, false, share, burst, 20000);

			EQUAL(tp->delivered_ce, marks);
			close_socket(tp);
		}
	}
	/* None of those echoed exactly was ever suspected. */
	EQUAL(atomic_read(&marimo_counters.latched), latched + 10);
}

static void test_traces(void)
{
	struct tcp_sock *tp = make_socket(TCP_ECN_OK);
	unsigned int acks = mock_ack_count, epochs = mock_epoch_count;

	EQUAL(mock_ack.events, MARIMO_TCP_DID_INIT);
	fill(tp);
	acknowledge(tp, 3, true);
	EQUAL(mock_ack_count, acks + 1);
	CHECK(mock_ack.events & MARIMO_TCP_DID_ACK);
	EQUAL(mock_ack.packets, 3);
	EQUAL(mock_ack.marked, 3);
	EQUAL(mock_ack.acked, 3);
	EQUAL(mock_ack.position, tp->snd_una);
	EQUAL(mock_ack.next, tp->snd_nxt);
	EQUAL(mock_ack.limited, 1);
	EQUAL(mock_ack.cwnd, tp->snd_cwnd);
	EQUAL(mock_ack.window, state(tp)->core.window);
	EQUAL(mock_ack.sport, 0x1234);
	EQUAL(mock_ack.dport, 0x5678);
	CHECK(mock_ack.skaddr == tp);
	rounds(tp, 4, every_second);
	CHECK(mock_epoch_count - epochs >= 3);
	EQUAL(mock_epoch.epochs, state(tp)->core.epochs);
	EQUAL(mock_epoch.share, state(tp)->core.share);
	EQUAL(mock_epoch.rho, state(tp)->core.rho);
	CHECK(!memcmp(mock_epoch.saddr, mock_ack.saddr, MARIMO_ADDRESS_SIZE));
	CHECK(!memcmp(mock_epoch.daddr, mock_ack.daddr, MARIMO_ADDRESS_SIZE));
	close_socket(tp);
}

static void test_addresses(void)
{
	struct tcp_sock *tp = make_socket(TCP_ECN_OK);
	struct sock *sk = (struct sock *)tp;
	struct sockaddr_in four;
	struct sockaddr_in6 six;

	memcpy(&four, mock_ack.saddr, sizeof(four));
	EQUAL(four.sin_family, AF_INET);
	CHECK(!memcmp(&four.sin_addr, "\x0a\x01\x02\x03", 4));
	memcpy(&four, mock_ack.daddr, sizeof(four));
	EQUAL(four.sin_family, AF_INET);
	CHECK(!memcmp(&four.sin_addr, "\x0a\x04\x05\x06", 4));
	sk->sk_family = AF_INET6;
	memset(&sk->sk_v6_rcv_saddr, 0x11, sizeof(sk->sk_v6_rcv_saddr));
	memset(&sk->sk_v6_daddr, 0x22, sizeof(sk->sk_v6_daddr));
	fill(tp);
	acknowledge(tp, 1, false);
	memcpy(&six, mock_ack.saddr, sizeof(six));
	EQUAL(six.sin6_family, AF_INET6);
	CHECK(!memcmp(&six.sin6_addr, &sk->sk_v6_rcv_saddr, 16));
	memcpy(&six, mock_ack.daddr, sizeof(six));
	CHECK(!memcmp(&six.sin6_addr, &sk->sk_v6_daddr, 16));
	close_socket(tp);
}

static void test_replay_of_a_rough_run(void)
{
	struct tcp_sock *tp;
	u32 i;

	mock_ack_hook = replay;
	replay_events = 0;
	tp = make_socket(TCP_ECN_OK);
	for (i = 0; i < 400; i++) {
		if (draw(20) == 0 && tp->packets_out > 5 &&
		    tp->icsk.icsk_ca_state <= TCP_CA_CWR) {
			enter_recovery(tp, 3);
			control(tp, 1);
			tp->delivered += tp->packets_out - 3;
			tp->snd_una = tp->snd_nxt;
			tp->packets_out = tp->sacked_out = tp->lost_out = 0;
			set_state(tp, TCP_CA_Open);
			control(tp, 0);
		} else if (draw(40) == 0) {
			timeout(tp);
			tp->lost_out = 0;
			acknowledge(tp, tp->packets_out, false);
			set_state(tp, TCP_CA_Open);
		}
		fill(tp);
		while (tp->packets_out > 2)
			/* The test of ECN is echoed. */
			acknowledge(tp, 1 + draw(2), draw(10) < i / 40 ||
				    (state(tp)->flags & MARIMO_TCP_DOUBT));
	}
	CHECK(replay_known);
	CHECK(replay_events > 1000);
	mock_ack_hook = NULL;
	close_socket(tp);
}

static void run_report(void)
{
	RUN(test_info);
	RUN(test_latching_peers);
	RUN(test_traces);
	RUN(test_addresses);
	RUN(test_replay_of_a_rough_run);
}
