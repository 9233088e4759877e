// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The module in user space: its C is compiled into this file, the kernel
 * around it is mock.h. A connection is driven as the kernel would, in the
 * kernel's order of calls.
 */
#include "mock.h"
#include "tcp_marimo.c"

#define MSS 1000u
#define EQUAL(found, expected) do { \
	long long _f = (long long)(found), _e = (long long)(expected); \
	if (_f != _e) { \
		char _text[256]; \
		snprintf(_text, sizeof(_text), #found " is %lld, not " \
			 #expected ", %lld", _f, _e); \
		mock_fail(__FILE__, __LINE__, _text); \
	} \
} while (0)

static unsigned int seed = 1;

static u32 draw(u32 below)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % below;
}

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

/* A connection. */

static struct tcp_sock *make_socket(u8 ecn)
{
	struct tcp_sock *tp = calloc(1, sizeof(*tp));
	struct sock *sk = (struct sock *)tp;

	sk->sk_state = TCP_ESTABLISHED;
	sk->sk_pacing_rate = ~0ul;
	sk->sk_max_pacing_rate = ~0ul;
	sk->mock_ect = true;
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

/* New data, as much as the window lets out. */
static u32 fill(struct tcp_sock *tp)
{
	u32 flight = tcp_packets_in_flight(tp), count = 0;

	if (!flight)
		tp->icsk.icsk_ca_ops->cwnd_event((struct sock *)tp,
						 CA_EVENT_TX_START);
	while (flight + count < tp->snd_cwnd)
		count++;
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
	if (mock_ack.events & (MARIMO_TCP_DID_RESTART | MARIMO_TCP_DID_UNDO)) {
		/* These two are not the core's: the replay ends. */
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

/* Tests. */

static void test_private_size(void)
{
	CHECK(sizeof(struct marimo_tcp) <= ICSK_CA_PRIV_SIZE);
	EQUAL(marimo.flags, TCP_CONG_NEEDS_ECN);
	CHECK(!marimo.cong_avoid);
}

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

static void test_idle(void)
{
	struct tcp_sock *tp = make_socket(TCP_ECN_OK);
	u32 packets;

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
	CHECK(!sk->mock_ect);
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
	CHECK(!((struct sock *)tp)->mock_ect);
	EQUAL(atomic_read(&marimo_counters.connections), connections);
	close_socket(tp);
	EQUAL(atomic_read(&marimo_counters.connections), connections);
}

static void test_before_and_after_a_connection(void)
{
	struct tcp_sock *tp = calloc(1, sizeof(*tp));
	struct sock *sk = (struct sock *)tp;
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
	for (i = 0; i < 2; i++) {
		timeout(tp);
		EQUAL(tp->snd_cwnd, 1);
	}
	marimo.cwnd_event(sk, CA_EVENT_TX_START);
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
			acknowledge(tp, 1 + draw(2), draw(10) < i / 40);
	}
	CHECK(replay_known);
	CHECK(replay_events > 1000);
	mock_ack_hook = NULL;
	close_socket(tp);
}

/* The table. */

static char *file_of(const struct marimo_table *table, char *text)
{
	char *at = text + sprintf(text, "# a comment\n\nmarimo-f 1\n");
	u32 i;

	for (i = 0; i < MARIMO_KNOTS; i++)
		at += sprintf(at, "%u\n", table->knots[i]);
	at += sprintf(at, "checksum %08x\n", marimo_table_checksum(table));
	return at;
}

static struct marimo_table linear_table(void)
{
	struct marimo_table table;
	u32 i;

	for (i = 0; i < MARIMO_KNOTS; i++)
		table.knots[i] = 39322 + 39321 * i / 64;
	return table;
}

static ssize_t store(const char *text, size_t length)
{
	/* The text need not end with a zero: a copy of its exact size. */
	char *copy = malloc(length ? length : 1);
	ssize_t result;

	memcpy(copy, text, length);
	result = marimo_table_attribute.store(NULL, NULL, copy, length);
	free(copy);
	EQUAL(mock_locks, 0);
	return result;
}

static void expect_refusal(const char *text, size_t length, const char *reason)
{
	struct marimo_table before = marimo_f->table;
	char page[PAGE_SIZE];

	EQUAL(store(text, length), -EINVAL);
	marimo_table_error_attribute.show(NULL, NULL, page);
	if (!strstr(page, reason)) {
		printf("found \"%s\", expected \"%s\"\n", page, reason);
		mock_fail(__FILE__, __LINE__, "the reason is said");
	}
	CHECK(!memcmp(&before, &marimo_f->table, sizeof(before)));
}

static void test_bundled_table(const char *path)
{
	char text[8192], page[PAGE_SIZE], knots[PAGE_SIZE];
	struct marimo_table before = marimo_f->table;
	FILE *file = fopen(path, "r");
	size_t length;

	if (!file) {
		mock_fail(path, 0, "can be opened");
		return;
	}
	length = fread(text, 1, sizeof(text), file);
	fclose(file);
	CHECK(length < PAGE_SIZE);
	/* What incast calibrate wrote is what the module starts with. */
	EQUAL(store(text, length), length);
	CHECK(!memcmp(&before, &marimo_f->table, sizeof(before)));
	marimo_table_error_attribute.show(NULL, NULL, page);
	EQUAL(strcmp(page, "\n"), 0);
	/* Reading gives the same form, without the comments. */
	marimo_table_attribute.show(NULL, NULL, page);
	text[length] = 0;
	strcpy(knots, strstr(text, "marimo-f 1\n"));
	EQUAL(strcmp(page, knots), 0);
	EQUAL(store(page, strlen(page)), strlen(page));
	mock_grace_period();
}

static void test_table_is_used(void)
{
	struct marimo_table table = linear_table(), before = marimo_f->table;
	struct tcp_sock *tp;
	char text[PAGE_SIZE];
	u32 i;

	EQUAL(store(text, file_of(&table, text) - text),
	      file_of(&table, text) - text);
	tp = make_socket(TCP_ECN_OK);
	EQUAL(state(tp)->core.rho, 39322);
	/* f(1) = 1.2 in the first epoch, twice in a row. */
	for (i = 0; i < 10; i++)
		rounds(tp, 1, never);
	/* Even with half of everything marked this f stays in its band. */
	for (i = 0; i < MARIMO_KNOTS; i++)
		table.knots[i] = i < 64 ? 40000 : 70000;
	EQUAL(store(text, file_of(&table, text) - text),
	      file_of(&table, text) - text);
	mock_grace_period();
	rounds(tp, 1, every_second);
	for (i = 0; i < 10; i++) {
		rounds(tp, 1, every_second);
		CHECK(state(tp)->core.rho < 58982);
	}
	CHECK(state(tp)->core.rho >= 39322 && state(tp)->core.rho <= 40000);
	/* While this one says that the path is overloaded. */
	for (i = 0; i < MARIMO_KNOTS; i++)
		table.knots[i] = i < 8 ? 40000 : 500000;
	EQUAL(store(text, file_of(&table, text) - text),
	      file_of(&table, text) - text);
	mock_grace_period();
	rounds(tp, 30, every_second);
	EQUAL(tp->snd_cwnd, 2);
	close_socket(tp);
	EQUAL(store(text, file_of(&before, text) - text),
	      file_of(&before, text) - text);
	mock_grace_period();
}

static void test_bad_tables(void)
{
	struct marimo_table table = linear_table();
	char text[PAGE_SIZE], broken[2 * PAGE_SIZE];
	size_t length = file_of(&table, text) - text, cut;
	int refused = atomic_read(&marimo_counters.refused);
	char *place;

	expect_refusal("", 0, "line 0: expected \"marimo-f 1\"");
	expect_refusal("# only a comment", 16, "line 1: expected");
	/* Cut anywhere but after the checksum. */
	for (cut = 0; cut < length - 1; cut++)
		expect_refusal(text, cut, "line ");
	EQUAL(store(text, length - 1), length - 1);
	EQUAL(store(text, length), length);
	/* Too much. */
	memcpy(broken, text, length);
	memcpy(broken + length, "1\n", 2);
	expect_refusal(broken, length + 2, "the end after the checksum");
	EQUAL(store(broken, length), length);
	/* Another format. */
	memcpy(broken, text, length);
	place = strstr(text, "marimo-f 1") - text + broken;
	place[9] = '2';
	expect_refusal(broken, length, "line 3: expected \"marimo-f 1\"");
	/* One digit of a knot: another table. */
	memcpy(broken, text, length);
	place = memchr(broken + 25, '6', length - 25);
	*place = '7';
	expect_refusal(broken, length, "checksum");
	/* One digit of the checksum. */
	memcpy(broken, text, length);
	broken[length - 2] = broken[length - 2] == '0' ? '1' : '0';
	expect_refusal(broken, length, "expected \"checksum ");
	/* No number, a signed one, one beyond 32 bits, an overlong line. */
	memcpy(broken, "marimo-f 1\nx\n", 13);
	expect_refusal(broken, 13, "line 2: expected a load");
	memcpy(broken, "marimo-f 1\n+5\n", 14);
	expect_refusal(broken, 14, "line 2: expected a load");
	memcpy(broken, "marimo-f 1\n-5\n", 14);
	expect_refusal(broken, 14, "line 2: expected a load");
	memcpy(broken, "marimo-f 1\n4294967296\n", 22);
	expect_refusal(broken, 22, "line 2: expected a load");
	memcpy(broken, "marimo-f 1\n5 6\n", 15);
	expect_refusal(broken, 15, "line 2: expected a load");
	memcpy(broken, "marimo-f 1\n5\0" "6\n", 15);
	expect_refusal(broken, 15, "line 2: expected a load");
	memcpy(broken, "marimo-f 1\n", 11);
	memset(broken + 11, '1', PAGE_SIZE);
	expect_refusal(broken, 11 + PAGE_SIZE, "line 2: expected a load");
	memset(broken, 'a', PAGE_SIZE);
	expect_refusal(broken, PAGE_SIZE, "line 1: expected");
	/* Sound text, unsound f. */
	table.knots[7] = 100;
	expect_refusal(text, file_of(&table, text) - text,
		       "line 11: f(7/64) = 100");
	table = linear_table();
	table.knots[0] = table.knots[1] = 58982;
	table.knots[0] = 58982;
	expect_refusal(text, file_of(&table, text) - text, "line ");
	table = linear_table();
	table.knots[64] = 8 * MARIMO_ONE + 1;
	expect_refusal(text, file_of(&table, text) - text,
		       "line 68: f(64/64) = 524289");
	memset(&table, 0, sizeof(table));
	expect_refusal(text, file_of(&table, text) - text, "f(64/64) = 0");
	CHECK(strstr(mock_log, "table refused, the old one stays"));
	CHECK(atomic_read(&marimo_counters.refused) > refused + 300);
	/* No memory: an error, and the old table stays. */
	table = linear_table();
	mock_fail_allocations = 1;
	EQUAL(store(text, file_of(&table, text) - text), -ENOMEM);
	mock_fail_allocations = 0;
	mock_grace_period();
}

/* Anything at all may be written to the attribute. */
static void test_random_tables(void)
{
	struct marimo_table table = linear_table(), before;
	char text[PAGE_SIZE];
	size_t length = file_of(&table, text) - text;
	u32 i, accepted = 0;

	EQUAL(store(text, length), length);
	before = marimo_f->table;
	for (i = 0; i < 20000; i++) {
		char broken[PAGE_SIZE];
		u32 changes = 1 + draw(4);

		memcpy(broken, text, length);
		while (changes--)
			broken[draw(length)] = draw(256);
		accepted += store(broken, length) > 0;
		CHECK(!memcmp(&before, &marimo_f->table, sizeof(before)));
		mock_grace_period();
	}
	/* Only the comment may change. */
	CHECK(accepted < 2000);
}

static void test_churn(void)
{
	struct tcp_sock *sockets[1000] = { NULL };
	struct marimo_table table = linear_table();
	int connections = atomic_read(&marimo_counters.connections);
	char text[PAGE_SIZE];
	u32 step, born = 0;

	for (step = 0; step < 60000; step++) {
		u32 at = draw(1000);
		struct tcp_sock *tp = sockets[at];

		if (step % 500 == 499) {
			table.knots[draw(64)] += 1;
			if (marimo_table_fault(&table, &marimo_config))
				table = linear_table();
			CHECK(store(text, file_of(&table, text) - text) > 0);
			if (step % 2000 == 1999)
				mock_grace_period();
		}
		if (!tp) {
			sockets[at] = make_socket(draw(10) ? TCP_ECN_OK : 0);
			born++;
			continue;
		}
		if (tp->icsk.icsk_ca_ops != &marimo || draw(20) == 0) {
			close_socket(tp);
			sockets[at] = NULL;
			continue;
		}
		fill(tp);
		switch (draw(8)) {
		case 0:
			enter_recovery(tp, min(tp->packets_out - 1, 3u));
			control(tp, 1);
			tp->delivered += tp->packets_out - tp->sacked_out;
			tp->snd_una = tp->snd_nxt;
			tp->packets_out = tp->sacked_out = tp->lost_out = 0;
			set_state(tp, TCP_CA_Open);
			control(tp, 0);
			break;
		case 1:
			timeout(tp);
			tp->lost_out = 0;
			acknowledge(tp, tp->packets_out, false);
			set_state(tp, TCP_CA_Open);
			control(tp, 0);
			break;
		case 2:
			tcp_jiffies32 += draw(200);
			break;
		default:
			acknowledge(tp, 1 + draw(tp->packets_out), draw(2));
		}
		CHECK(tp->snd_cwnd >= 2 || tp->icsk.icsk_ca_state ==
		      TCP_CA_Loss || tp->icsk.icsk_ca_state ==
		      TCP_CA_Recovery);
		CHECK(state(tp)->core.rho <= MARIMO_LOAD_MAX);
	}
	CHECK(born > 1000);
	for (step = 0; step < 1000; step++)
		if (sockets[step])
			close_socket(sockets[step]);
	EQUAL(atomic_read(&marimo_counters.connections), connections);
	mock_grace_period();
}

static void test_counters(void)
{
	char page[PAGE_SIZE];

	marimo_counters_attribute.show(NULL, NULL, page);
	CHECK(!strncmp(page, "connections 0\nfallbacks ", 24));
	CHECK(strstr(page, "\nlatched "));
}

/* Loading. */

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
	/* The defaults are the simulator's (sender/marimo.rs). */
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

#define RUN(test, ...) do { \
	unsigned int _before = mock_failures; \
	test(__VA_ARGS__); \
	count++; \
	EQUAL(mock_readers, 0); \
	if (mock_failures > _before) \
		printf("FAILED %s\n", #test); \
} while (0)

int main(int argc, char **argv)
{
	unsigned int count = 0;

	if (argc != 2) {
		fprintf(stderr, "usage: %s MARIMO-F.TABLE\n", argv[0]);
		return 2;
	}
	RUN(test_parameters);
	if (mock_init()) {
		printf("FAILED to load: %s", mock_log);
		return 1;
	}
	RUN(test_private_size);
	RUN(test_slow_start_and_growth);
	RUN(test_ce_on_every_packet);
	RUN(test_echoes_beyond_packets_are_clamped);
	RUN(test_ect_stripped_on_the_way);
	RUN(test_application_limited);
	RUN(test_clamp);
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
	RUN(test_idle);
	RUN(test_pacing);
	RUN(test_tso);
	RUN(test_echo_is_exact);
	RUN(test_echo_waits_without_a_change);
	RUN(test_echo_survives_cwr);
#ifdef MARIMO_HAVE_ECN_MODE
	RUN(test_accecn);
#endif
	RUN(test_fall_back);
	RUN(test_before_and_after_a_connection);
	RUN(test_initial_window_of_the_route);
	RUN(test_info);
	RUN(test_latching_peers);
	RUN(test_traces);
	RUN(test_addresses);
	RUN(test_replay_of_a_rough_run);
	RUN(test_bundled_table, argv[1]);
	RUN(test_table_is_used);
	RUN(test_bad_tables);
	RUN(test_random_tables);
	RUN(test_churn);
	RUN(test_counters);
	mock_exit();
	mock_grace_period();
	if (mock_failures) {
		printf("%u tests, %u failures\n", count, mock_failures);
		return 1;
	}
	printf("%u tests passed\n", count);
	return 0;
}
