/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A connection, driven as the kernel would, in the kernel's order of calls:
 * its sending side, its receiving side, and a replay of what it traces.
 */
#ifndef MARIMO_UNIT_CONNECTION_H
#define MARIMO_UNIT_CONNECTION_H

#include "harness.h"

#define MSS 1000u

/* The acknowledgements that the receiving side of a socket sent. */
static struct {
	u32 position;
	bool ece;
} sent_acks[4096];
static unsigned int sent_count;

static void record_ack(struct sock *sk, u32 receive_next)
{
	sent_acks[sent_count].position = receive_next;
	sent_acks[sent_count].ece =
		tcp_sk(sk)->ecn_flags & TCP_ECN_DEMAND_CWR;
	CHECK(sent_count < 4095);
	sent_count += sent_count < 4095;
	/* One for what came before leaves the rest pending. */
	tcp_sk(sk)->rcv_wup = tcp_sk(sk)->rcv_nxt;
	if (receive_next == tcp_sk(sk)->rcv_nxt)
		inet_csk(sk)->icsk_ack.pending = 0;
}

#ifdef MARIMO_HAVE_SEND_ACK_FLAGS
void __tcp_send_ack(struct sock *sk, u32 receive_next, u16 flags)
{
	EQUAL(flags, 0);
	record_ack(sk, receive_next);
}
#else
void __tcp_send_ack(struct sock *sk, u32 receive_next)
{
	record_ack(sk, receive_next);
}
#endif

static struct tcp_sock *make_socket(u8 ecn)
{
	struct tcp_sock *tp = calloc(1, sizeof(*tp));
	struct sock *sk = (struct sock *)tp;

	sk->sk_state = TCP_ESTABLISHED;
	sk->sk_pacing_rate = ~0ul;
	sk->sk_max_pacing_rate = ~0ul;
	INET_ECN_xmit(sk);
	sk->sk_family = AF_INET;
	memcpy(&tp->icsk.inet.inet_saddr, "\x0a\x01\x02\x03", 4);
	memcpy(&tp->icsk.inet.inet_daddr, "\x0a\x04\x05\x06", 4);
	/* 4660 and 22136 in host order. */
	tp->icsk.inet.inet_sport = 0x3412;
	tp->icsk.inet.inet_dport = 0x7856;
	tp->icsk.icsk_ca_ops = &marimo;
	tp->icsk.icsk_rto = 50;
	tp->delivered = 1;
	tp->snd_una = tp->snd_nxt = 0u - 20 * MSS;
	tp->rcv_nxt = tp->rcv_wup = 0u - 5 * MSS;
	tp->snd_cwnd = 10;
	tp->snd_ssthresh = TCP_INFINITE_SSTHRESH;
	tp->snd_cwnd_clamp = ~0u;
	tp->mss_cache = MSS;
	tp->srtt_us = 100 << 3;
	tp->lsndtime = tcp_jiffies32;
	tp->ecn_flags = ecn;
	marimo.init(sk);
	return tp;
}

static void close_socket(struct tcp_sock *tp)
{
	if (tp->icsk.icsk_ca_ops->release)
		tp->icsk.icsk_ca_ops->release((struct sock *)tp);
	free(tp);
}

static struct marimo_tcp *state(struct tcp_sock *tp)
{
	return inet_csk_ca((struct sock *)tp);
}

static u32 window(struct tcp_sock *tp)
{
	return state(tp)->core.window >> 16;
}

static void set_state(struct tcp_sock *tp, u8 becomes)
{
	const struct tcp_congestion_ops *ops = tp->icsk.icsk_ca_ops;

	if (ops->set_state)
		ops->set_state((struct sock *)tp, becomes);
	tp->icsk.icsk_ca_state = becomes;
}

static void control(struct tcp_sock *tp, int losses)
{
	struct rate_sample rs = { .losses = losses };
	const struct tcp_congestion_ops *ops = tp->icsk.icsk_ca_ops;

	/* Another's by now. */
	if (!ops->cong_control)
		return;
	EQUAL(mock_readers, 0);
#ifdef MARIMO_HAVE_CONTROL_FLAG
	ops->cong_control((struct sock *)tp, tp->snd_una, 0, &rs);
#else
	ops->cong_control((struct sock *)tp, &rs);
#endif
	EQUAL(mock_readers, 0);
	CHECK(tp->snd_cwnd >= 1);
	CHECK(tp->snd_cwnd <= tp->snd_cwnd_clamp);
}

/* The kernel's tcp_ca_event() with CA_EVENT_TX_START. */
static void start(struct tcp_sock *tp)
{
	const struct tcp_congestion_ops *ops = tp->icsk.icsk_ca_ops;

#ifdef MARIMO_HAVE_TX_START
	if (ops->cwnd_event_tx_start)
		ops->cwnd_event_tx_start((struct sock *)tp);
#else
	if (ops->cwnd_event)
		ops->cwnd_event((struct sock *)tp, CA_EVENT_TX_START);
#endif
}

/* New data, as much as the window lets out. */
static u32 fill(struct tcp_sock *tp)
{
	u32 flight = tcp_packets_in_flight(tp), count = 0;

	if (!flight)
		start(tp);
	while (flight + count < tp->snd_cwnd)
		count++;
	/* tcp_ecn_send(), which goes by what was negotiated alone. */
	if (count && (tp->ecn_flags & (TCP_ECN_OK | MOCK_ECN_ACCECN)))
		INET_ECN_xmit((struct sock *)tp);
	tp->snd_nxt += count * MSS;
	tp->packets_out += count;
	tp->data_segs_out += count;
	tp->max_packets_out = tp->packets_out;
	tp->is_cwnd_limited = true;
	tp->lsndtime = tcp_jiffies32;
	return count;
}

/* Any ECE enters CWR, which ends when what was out then is acknowledged. */
static void alert(struct tcp_sock *tp, bool ece)
{
	if (tp->icsk.icsk_ca_state == TCP_CA_CWR &&
	    (s32)(tp->snd_una - tp->high_seq) > 0)
		set_state(tp, TCP_CA_Open);
	if (!ece)
		return;
	tp->prior_ssthresh = 0;
	if (tp->icsk.icsk_ca_state >= TCP_CA_CWR)
		return;
	tp->snd_ssthresh = tp->icsk.icsk_ca_ops->ssthresh((struct sock *)tp);
	tp->high_seq = tp->snd_nxt;
	set_state(tp, TCP_CA_CWR);
}

/* An acknowledgement of the next packets in order. */
static void acknowledge(struct tcp_sock *tp, u32 packets, bool ece)
{
	tp->snd_una += packets * MSS;
	tp->packets_out -= packets;
	tp->delivered += packets;
	tp->delivered_ce += ece ? packets : 0;
	alert(tp, ece);
	control(tp, 0);
}

/* Round trips limited by the window, one acknowledgement per packet. */
static void rounds(struct tcp_sock *tp, u32 count,
		   bool (*mark)(u32 packet))
{
	while (count--) {
		u32 packets, i;

		fill(tp);
		packets = tp->packets_out;
		for (i = 0; i < packets; i++) {
			acknowledge(tp, 1, mark(i));
			fill(tp);
		}
	}
}

static bool never(u32 packet) { (void)packet; return false; }
static bool always(u32 packet) { (void)packet; return true; }
static bool every_second(u32 packet) { return packet & 1; }

/* The head of the window is lost; so many behind it are selectively known. */
static void enter_recovery(struct tcp_sock *tp, u32 sacked)
{
	tp->lost_out = 1;
	tp->sacked_out = sacked;
	tp->delivered += sacked;
	tp->undo_marker = tp->snd_una;
	tp->prior_ssthresh = max(tp->snd_ssthresh, tp->snd_cwnd / 4 * 3);
	tp->snd_ssthresh = tp->icsk.icsk_ca_ops->ssthresh((struct sock *)tp);
	tp->high_seq = tp->snd_nxt;
	set_state(tp, TCP_CA_Recovery);
}

/* The head of a window is lost, sent again and repaired. */
static void lose(struct tcp_sock *tp)
{
	fill(tp);
	enter_recovery(tp, 3);
	control(tp, 1);
	tp->retrans_out = 1;
	tp->data_segs_out++;
	tp->snd_una = tp->high_seq;
	tp->delivered += tp->packets_out - 3;
	tp->packets_out = tp->sacked_out = 0;
	tp->lost_out = tp->retrans_out = 0;
	set_state(tp, TCP_CA_Open);
	control(tp, 0);
}

static void timeout(struct tcp_sock *tp)
{
	struct sock *sk = (struct sock *)tp;
	const struct tcp_congestion_ops *ops = tp->icsk.icsk_ca_ops;

	tp->lost_out = tp->packets_out - tp->sacked_out;
	tp->retrans_out = 0;
	if (tp->icsk.icsk_ca_state <= TCP_CA_Disorder) {
		tp->prior_ssthresh = max(tp->snd_ssthresh,
					 tp->snd_cwnd / 4 * 3);
		tp->snd_ssthresh = ops->ssthresh(sk);
		ops->cwnd_event(sk, CA_EVENT_LOSS);
		tp->undo_marker = tp->snd_una;
	}
	tp->snd_cwnd = tcp_packets_in_flight(tp) + 1;
	set_state(tp, TCP_CA_Loss);
	tp->high_seq = tp->snd_nxt;
}

static void undo(struct tcp_sock *tp)
{
	struct sock *sk = (struct sock *)tp;

	tp->lost_out = 0;
	if (tp->prior_ssthresh) {
		tp->snd_cwnd = tp->icsk.icsk_ca_ops->undo_cwnd(sk);
		tp->snd_ssthresh = max(tp->snd_ssthresh, tp->prior_ssthresh);
	}
	tp->undo_marker = 0;
	set_state(tp, TCP_CA_Open);
}

/*
 * The receiving side: segments arrive, of which every second one is
 * acknowledged by the kernel's timer unless something asks for more; while a
 * task holds the socket, for so many segments in a row, none is.
 */
static void receive(struct tcp_sock *tp, const bool *ce, u32 count, u32 held)
{
	struct inet_connection_sock *icsk = &tp->icsk;
	struct sock *sk = (struct sock *)tp;
	u32 i, waiting = 0, acks;

	for (i = 0; i < count; i++) {
		tp->rcv_nxt += MSS;
		acks = sent_count;
		if (tcp_sk(sk)->icsk.icsk_ca_ops->cwnd_event)
			icsk->icsk_ca_ops->cwnd_event(sk, ce[i] ?
						      CA_EVENT_ECN_IS_CE :
						      CA_EVENT_ECN_NO_CE);
		if (sent_count > acks)
			waiting = 0;
		waiting++;
		if (waiting < 2 && !(icsk->icsk_ack.pending & ICSK_ACK_NOW)) {
			icsk->icsk_ack.pending |= ICSK_ACK_TIMER;
		} else if (!held || i % held == 0) {
			record_ack(sk, tp->rcv_nxt);
			waiting = 0;
		}
	}
	if (waiting)
		record_ack(sk, tp->rcv_nxt);
}

/* What is replayed: the traced inputs, through a core of its own. */
static struct marimo replayed;
static bool replay_known;
static unsigned int replay_events;

static void replay(void)
{
	const struct marimo_table *table = &marimo_f->table;
	struct marimo_ack ack = {
		mock_ack.packets, mock_ack.marked, mock_ack.acked,
		mock_ack.position, mock_ack.next, mock_ack.limited,
	};

	if (mock_ack.events & MARIMO_TCP_DID_INIT) {
		marimo_init(&replayed, &marimo_config, table);
		replayed.window = mock_ack.window;
		replay_known = true;
	}
	if (!replay_known)
		return;
	if (mock_ack.events & MARIMO_TCP_DID_ACK)
		marimo_on_ack(&replayed, &marimo_config, table, &ack);
	if (mock_ack.events & MARIMO_TCP_DID_LOSS)
		marimo_on_loss(&replayed, &marimo_config, ack.position,
			       ack.next);
	if (mock_ack.events & MARIMO_TCP_DID_TIMEOUT)
		marimo_on_timeout(&replayed, &marimo_config, ack.next);
	if (mock_ack.events & MARIMO_TCP_DID_IDLE)
		marimo_on_idle(&replayed, ack.next);
	if (mock_ack.events & (MARIMO_TCP_DID_RESTART | MARIMO_TCP_DID_UNDO |
			      MARIMO_TCP_DID_RESIZE)) {
		/* These are not the core's: the replay ends. */
		replay_known = false;
		return;
	}
	EQUAL(replayed.window, mock_ack.window);
	EQUAL(replayed.threshold, mock_ack.threshold);
	EQUAL(replayed.rho, mock_ack.rho);
	EQUAL(replayed.gain, mock_ack.gain);
	EQUAL(replayed.epochs, mock_ack.epochs);
	replay_events++;
}

#endif
