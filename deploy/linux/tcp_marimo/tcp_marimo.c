// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Marimo as a congestion control of Linux. What is decided is decided in
 * marimo.h and marimo_tcp.h; this file copies numbers of a socket in and out,
 * and holds what connections share: configuration, the table f, counters.
 *
 * It is a cong_control, as in CWR, which any ECE enters, the kernel calls
 * nothing else that could move the window. See README.md.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/inet_diag.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/sysfs.h>
#include <linux/version.h>
#include <net/inet_ecn.h>
#include <net/tcp.h>
#ifdef MARIMO_HAVE_ECN_HEADER
#include <net/tcp_ecn.h>
#endif

#include "marimo_f.h"
#include "marimo_tcp.h"

#define CREATE_TRACE_POINTS
#include "tcp_marimo_trace.h"

/* Parameters. Loads and shares are in thousandths, windows in packets. */

static char *rule = "paper";
module_param(rule, charp, 0444);
MODULE_PARM_DESC(rule, "paper or settling: sets decrease_from, settle, slow_start and max_increase unless they are given");

static char *decrease_from = "";
module_param(decrease_from, charp, 0444);
MODULE_PARM_DESC(decrease_from, "memory or epoch: what a decrease is computed from");

static char *slow_start = "";
module_param(slow_start, charp, 0444);
MODULE_PARM_DESC(slow_start, "off, epoch or first-mark: how a connection starts");

static int settle = -1;
module_param(settle, int, 0444);
MODULE_PARM_DESC(settle, "epochs after a decrease that are not acted on, 0 to 255, -1: by rule");

static unsigned int max_increase;
module_param(max_increase, uint, 0444);
MODULE_PARM_DESC(max_increase, "growth doubles per epoch up to this many packets, 0: by rule");

static unsigned int increase = 1;
module_param(increase, uint, 0444);
MODULE_PARM_DESC(increase, "packets added per round trip");

static unsigned int increase_below = 900;
module_param(increase_below, uint, 0444);
MODULE_PARM_DESC(increase_below, "load under which windows grow, in thousandths");

static unsigned int decrease_above = 1000;
module_param(decrease_above, uint, 0444);
MODULE_PARM_DESC(decrease_above, "load over which windows shrink, in thousandths");

static unsigned int target = 950;
module_param(target, uint, 0444);
MODULE_PARM_DESC(target, "load that a decrease aims at, in thousandths");

static unsigned int max_decrease = 500;
module_param(max_decrease, uint, 0444);
MODULE_PARM_DESC(max_decrease, "largest share of the window that a decrease takes, in thousandths");

static unsigned int loss_load = 1200;
module_param(loss_load, uint, 0444);
MODULE_PARM_DESC(loss_load, "load that a loss stands for at least, in thousandths");

static unsigned int loss_decrease = 500;
module_param(loss_decrease, uint, 0444);
MODULE_PARM_DESC(loss_decrease, "share of the window that a loss takes, in thousandths");

static unsigned int beta_shift = 1;
module_param(beta_shift, uint, 0444);
MODULE_PARM_DESC(beta_shift, "weight of the newest epoch as 1 / 2^n, 0 to 8");

static bool forget = true;
module_param(forget, bool, 0444);
MODULE_PARM_DESC(forget, "after a decrease the load is at most 1");

static unsigned int initial_window = 10;
module_param(initial_window, uint, 0444);
MODULE_PARM_DESC(initial_window, "packets to which idle connections go back; new ones start with the initcwnd of the route");

static unsigned int min_window = 2;
module_param(min_window, uint, 0444);
MODULE_PARM_DESC(min_window, "least window in packets but after a timeout");

static unsigned int min_epoch = 2;
module_param(min_epoch, uint, 0444);
MODULE_PARM_DESC(min_epoch, "packets that an epoch has at least");

static bool pacing = true;
module_param(pacing, bool, 0444);
MODULE_PARM_DESC(pacing, "pace connections, by fq or by the kernel; N: neither does");

static bool any_kernel;
module_param(any_kernel, bool, 0444);
MODULE_PARM_DESC(any_kernel, "load into a kernel newer than those that this was tried on");

/*
 * The newest series that this was built for and read against. A hook that is
 * new compiles when it is left out, and takes a rule away in silence: Linux 7.1
 * moved CA_EVENT_TX_START to one of its own.
 */
#define MARIMO_NEWEST_MAJOR 7
#define MARIMO_NEWEST_MINOR 3

/**
 * struct marimo_f - the table f in use
 * @table: its knots
 * @rcu: frees it once no acknowledgement reads it any more
 */
struct marimo_f {
	struct marimo_table table;
	struct rcu_head rcu;
};

/**
 * struct marimo_counters - what happened since the module was loaded
 * @connections: connections that run Marimo now
 * @fallbacks: connections without ECN, left to Reno
 * @fallbacks_syn: of these, as their SYN was sent again, which asks for none
 * @fallbacks_echo: of these, as marks were not echoed
 * @fallbacks_ect: of these, as what was sent with ECT was not acknowledged
 * @syns: SYNs that were sent again, without ECT
 * @latched: how often a peer came to seem to echo as RFC 3168 says
 * @tables: tables accepted
 * @refused: tables refused
 * @starts: 1 once the kernel has told of a start after a pause
 */
struct marimo_counters {
	atomic_t connections;
	atomic_t fallbacks;
	atomic_t fallbacks_syn;
	atomic_t fallbacks_echo;
	atomic_t fallbacks_ect;
	atomic_t syns;
	atomic_t latched;
	atomic_t tables;
	atomic_t refused;
	atomic_t starts;
};

static struct marimo_config marimo_config __read_mostly;
static struct marimo_f __rcu *marimo_f;
static struct marimo_counters marimo_counters;

/* Serialises writers of the table, and of the message about the last one. */
static DEFINE_MUTEX(marimo_table_lock);
static char marimo_table_message[128];

static struct tcp_congestion_ops marimo_reno;

#ifndef MARIMO_HAVE_CWND_HELPERS
static inline u32 tcp_snd_cwnd(const struct tcp_sock *tp)
{
	return tp->snd_cwnd;
}

static inline void tcp_snd_cwnd_set(struct tcp_sock *tp, u32 window)
{
	tp->snd_cwnd = window;
}
#endif

/*
 * Whether CE that a socket is given is sent. Newer kernels set ECT(0) with each
 * segment of data, whatever was set before.
 */
#ifdef MARIMO_HAVE_ECN_XMIT_CLEARS
#define MARIMO_CAN_MARK 0
#else
#define MARIMO_CAN_MARK 1
#endif

/* By which operation this kernel tells of a start after a pause. */
#ifdef MARIMO_HAVE_TX_START
#define MARIMO_START_HOOK "cwnd_event_tx_start"
#else
#define MARIMO_START_HOOK "cwnd_event"
#endif

static bool marimo_has_ecn(const struct tcp_sock *tp)
{
#ifdef MARIMO_HAVE_ECN_MODE
	return tcp_ecn_mode_any(tp);
#else
	return tp->ecn_flags & TCP_ECN_OK;
#endif
}

static bool marimo_has_accecn(const struct tcp_sock *tp)
{
#ifdef MARIMO_HAVE_ECN_MODE
	return tcp_ecn_mode_accecn(tp);
#else
	return false;
#endif
}

static void marimo_send_ack(struct sock *sk, u32 receive_next)
{
#ifdef MARIMO_HAVE_SEND_ACK_FLAGS
	__tcp_send_ack(sk, receive_next, 0);
#else
	__tcp_send_ack(sk, receive_next);
#endif
}

/* The socket as it is now. */
static void marimo_sample(const struct sock *sk, struct marimo_tcp_sample *in)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	in->delivered = tp->delivered;
	in->delivered_ce = tp->delivered_ce;
	in->una = tp->snd_una;
	in->next = tp->snd_nxt;
	in->flight = tp->packets_out;
	in->pipe = tcp_packets_in_flight(tp);
	in->sent = tp->data_segs_out;
	in->lost = 0;
	in->window = tcp_snd_cwnd(tp);
	in->threshold = tp->snd_ssthresh;
	in->peak = tp->max_packets_out;
	in->clamp = tp->snd_cwnd_clamp;
	in->mss = tp->mss_cache;
	in->srtt = tp->srtt_us;
	in->receive_next = tp->rcv_nxt;
	in->idle = 0;
	in->timeout = 0;
	in->state = inet_csk(sk)->icsk_ca_state;
	in->becomes = in->state;
	in->limited = tp->is_cwnd_limited;
	in->exact = marimo_has_accecn(tp);
	in->restart = 0;
	in->marks = MARIMO_CAN_MARK;
	/* With AccECN the kernel sets ECT anew with that, too. */
	in->plain = !in->exact;
}

/* What is sent from now on: CE, ECT(0), or neither. */
static void marimo_set_codepoint(struct sock *sk, u32 codepoint)
{
	static const u8 field[] = {
		[MARIMO_TCP_SEND_ECT] = INET_ECN_ECT_0,
		[MARIMO_TCP_SEND_CE] = INET_ECN_CE,
		[MARIMO_TCP_SEND_NOT_ECT] = INET_ECN_NOT_ECT,
	};

	if ((inet_sk(sk)->tos & INET_ECN_MASK) == field[codepoint])
		return;
	INET_ECN_dontxmit(sk);
	if (codepoint == MARIMO_TCP_SEND_NOT_ECT)
		return;
	INET_ECN_xmit(sk);
	if (codepoint == MARIMO_TCP_SEND_ECT)
		return;
	inet_sk(sk)->tos |= INET_ECN_CE;
#if IS_ENABLED(CONFIG_IPV6)
	if (inet6_sk(sk))
		inet6_sk(sk)->tclass |= INET_ECN_CE;
#endif
}

/* Without pacing fq goes by no more than SO_MAX_PACING_RATE. */
static void marimo_set_pacing(struct sock *sk, u64 rate)
{
	unsigned long most = READ_ONCE(sk->sk_max_pacing_rate);

	if (!pacing)
		rate = most;
	if (rate)
		WRITE_ONCE(sk->sk_pacing_rate, min_t(u64, rate, most));
}

static void marimo_trace(struct sock *sk, const struct marimo_tcp *m,
			 const struct marimo_tcp_sample *in,
			 const struct marimo_tcp_decision *out)
{
	if (out->events & MARIMO_TCP_DID_SUSPECT)
		atomic_inc(&marimo_counters.latched);
	if (trace_ack_enabled() && out->events)
		trace_ack(sk, m, in, out);
	if (trace_epoch_enabled() && (out->events & MARIMO_TCP_DID_EPOCH))
		trace_epoch(sk, m, out);
}

static void marimo_apply(struct sock *sk, const struct marimo_tcp_decision *out)
{
	struct tcp_sock *tp = tcp_sk(sk);

	tcp_snd_cwnd_set(tp, out->window);
	tp->snd_ssthresh = out->threshold;
	marimo_set_pacing(sk, out->pacing);
	marimo_set_codepoint(sk, out->codepoint);
}

/*
 * Without ECN there is no load to see: the connection becomes Reno's, and what
 * it sends is no longer ECN-capable.
 */
static void marimo_fall_back(struct sock *sk)
{
	WRITE_ONCE(inet_csk(sk)->icsk_ca_ops, &marimo_reno);
	INET_ECN_dontxmit(sk);
	atomic_inc(&marimo_counters.fallbacks);
}

/*
 * ECN was negotiated, but marks are not echoed. The kernel sets ECT by what was
 * negotiated, whatever the congestion control is; with this it also ends the
 * echo of the marks that arrive here.
 */
static void marimo_forget_ecn(struct sock *sk)
{
#ifdef MARIMO_HAVE_ECN_MODE
	tcp_ecn_mode_set(tcp_sk(sk), TCP_ECN_DISABLED);
#else
	tcp_sk(sk)->ecn_flags &= ~TCP_ECN_OK;
#endif
}

/* Whether this end opened the connection, and had to send its SYN again. */
static bool marimo_lost_syn(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return sk->sk_state == TCP_ESTABLISHED && tp->total_retrans &&
	       !tp->data_segs_out &&
	       READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_ecn_fallback);
}

static void marimo_tcp_start(struct sock *sk)
{
	struct marimo_tcp *m = inet_csk_ca(sk);
	struct marimo_tcp_decision out;
	struct marimo_tcp_sample in;

	if (!marimo_has_ecn(tcp_sk(sk)) &&
	    sk->sk_state != TCP_LISTEN && sk->sk_state != TCP_CLOSE) {
		if (marimo_lost_syn(sk))
			atomic_inc(&marimo_counters.fallbacks_syn);
		marimo_fall_back(sk);
		return;
	}
	marimo_sample(sk, &in);
	rcu_read_lock();
	marimo_tcp_init(m, &marimo_config, &rcu_dereference(marimo_f)->table,
			&in, &out);
	rcu_read_unlock();
	atomic_inc(&marimo_counters.connections);
	if (pacing)
		cmpxchg(&sk->sk_pacing_status, SK_PACING_NONE,
			SK_PACING_NEEDED);
	marimo_set_pacing(sk, out.pacing);
	marimo_trace(sk, m, &in, &out);
}

static void marimo_tcp_release(struct sock *sk)
{
	/* Called as well for sockets that never connected: listeners. */
	if (!marimo_tcp_begun(inet_csk_ca(sk)))
		return;
	atomic_dec(&marimo_counters.connections);
	/* The next congestion control would go on with what a test set. */
	marimo_set_codepoint(sk, MARIMO_TCP_SEND_ECT);
}

/* Leaves a connection whose ECN has failed. */
static void marimo_check_ecn(struct sock *sk,
			     const struct marimo_tcp_decision *out)
{
	if (likely(!(out->events & MARIMO_TCP_DID_FAIL)))
		return;
	if (out->events & MARIMO_TCP_DID_FAIL_ECT)
		atomic_inc(&marimo_counters.fallbacks_ect);
	else
		atomic_inc(&marimo_counters.fallbacks_echo);
	marimo_tcp_release(sk);
	marimo_forget_ecn(sk);
	marimo_fall_back(sk);
}

static void marimo_tcp_control(struct sock *sk, const struct rate_sample *rs)
{
	struct marimo_tcp *m = inet_csk_ca(sk);
	struct marimo_tcp_decision out;
	struct marimo_tcp_sample in;

	/* The acknowledgement of a SYN comes before init. */
	if (unlikely(!marimo_tcp_begun(m)))
		return;
	/* Changed to Marimo while connecting to a peer that then had no ECN. */
	if (unlikely(!marimo_has_ecn(tcp_sk(sk)))) {
		marimo_tcp_release(sk);
		marimo_fall_back(sk);
		return;
	}
	marimo_sample(sk, &in);
	in.lost = max(rs->losses, 0);
	rcu_read_lock();
	marimo_tcp_on_ack(m, &marimo_config, &rcu_dereference(marimo_f)->table,
			  &in, &out);
	rcu_read_unlock();
	marimo_apply(sk, &out);
	marimo_trace(sk, m, &in, &out);
	marimo_check_ecn(sk, &out);
}

#ifdef MARIMO_HAVE_CONTROL_FLAG
static void marimo_cong_control(struct sock *sk, u32 ack, int flag,
				const struct rate_sample *rs)
{
	marimo_tcp_control(sk, rs);
}
#else
#define marimo_cong_control marimo_tcp_control
#endif

static void marimo_set_state(struct sock *sk, u8 state)
{
	struct marimo_tcp *m = inet_csk_ca(sk);
	struct marimo_tcp_decision out;
	struct marimo_tcp_sample in;
	int decided;

	/* A SYN that times out, a socket that disconnects. */
	if (!marimo_tcp_begun(m)) {
		/* Somebody may drop it for its ECT: it is sent without. */
		if (sk->sk_state == TCP_SYN_SENT && state == TCP_CA_Loss) {
			INET_ECN_dontxmit(sk);
			atomic_inc(&marimo_counters.syns);
		}
		return;
	}
	marimo_sample(sk, &in);
	in.becomes = state;
	/* What enters recovery is a loss, though its sample is not here yet. */
	in.lost = 1;
	rcu_read_lock();
	decided = marimo_tcp_on_state(m, &marimo_config,
				      &rcu_dereference(marimo_f)->table, &in,
				      &out);
	rcu_read_unlock();
	if (!decided)
		return;
	marimo_apply(sk, &out);
	marimo_trace(sk, m, &in, &out);
	marimo_check_ecn(sk, &out);
}

/* Receiver: the kernel puts ECE on acknowledgements while CWR is demanded. */
static void marimo_demand(struct sock *sk, bool echo)
{
	if (echo)
		tcp_sk(sk)->ecn_flags |= TCP_ECN_DEMAND_CWR;
	else
		tcp_sk(sk)->ecn_flags &= ~TCP_ECN_DEMAND_CWR;
}

static void marimo_received(struct sock *sk, bool ce)
{
	struct inet_connection_sock *icsk = inet_csk(sk);
	const struct tcp_sock *tp = tcp_sk(sk);
	struct marimo_tcp *m = inet_csk_ca(sk);
	u32 earlier, what;
	bool pending;

	/* AccECN has counters, which are exact as they are. */
	if (marimo_has_accecn(tp))
		return;
	/*
	 * Not only a timer delays an acknowledgement: since Linux 6.7 what
	 * arrives while a task holds the socket is acknowledged when it lets
	 * go, and CE may change many times until then.
	 */
	pending = (icsk->icsk_ack.pending & (ICSK_ACK_TIMER | ICSK_ACK_NOW)) ||
		  before(tp->rcv_wup, m->echo_next);
	if (before(m->echo_next, tp->rcv_wup))
		pending = false;
	what = marimo_tcp_echo(m, ce, tp->rcv_nxt, pending, &earlier);
	if (what & MARIMO_TCP_ECHO_BEFORE) {
		marimo_demand(sk, what & MARIMO_TCP_ECHO_WAS);
		marimo_send_ack(sk, earlier);
	}
	if (what & MARIMO_TCP_ECHO_NOW)
		icsk->icsk_ack.pending |= ICSK_ACK_NOW;
	marimo_demand(sk, what & MARIMO_TCP_ECHO);
}

static void marimo_started(struct sock *sk)
{
	const struct net *net = sock_net(sk);
	struct marimo_tcp *m = inet_csk_ca(sk);
	struct marimo_tcp_decision out;
	struct marimo_tcp_sample in;

	if (!marimo_tcp_begun(m))
		return;
	/* Written once: connections share the line. */
	if (unlikely(!atomic_read(&marimo_counters.starts)))
		atomic_set(&marimo_counters.starts, 1);
	marimo_sample(sk, &in);
	in.idle = tcp_jiffies32 - tcp_sk(sk)->lsndtime;
	in.timeout = inet_csk(sk)->icsk_rto;
	in.restart = READ_ONCE(net->ipv4.sysctl_tcp_slow_start_after_idle);
	if (!marimo_tcp_on_start(m, &marimo_config, &in, &out))
		return;
	marimo_apply(sk, &out);
	marimo_trace(sk, m, &in, &out);
}

static void marimo_cwnd_event(struct sock *sk, enum tcp_ca_event event)
{
	if (!marimo_tcp_begun(inet_csk_ca(sk)))
		return;
	switch (event) {
	case CA_EVENT_ECN_IS_CE:
		marimo_received(sk, true);
		break;
	case CA_EVENT_ECN_NO_CE:
		marimo_received(sk, false);
		break;
	case CA_EVENT_LOSS:
		marimo_tcp_on_timeout(inet_csk_ca(sk));
		break;
#ifndef MARIMO_HAVE_TX_START
	case CA_EVENT_TX_START:
		marimo_started(sk);
		break;
#endif
	default:
		break;
	}
}

/*
 * The kernel asks before it changes the state; what a loss leaves is set in
 * marimo_set_state(). For CWR nothing changes: epochs decide about marks.
 */
static u32 marimo_ssthresh(struct sock *sk)
{
	if (!marimo_tcp_begun(inet_csk_ca(sk)))
		return tcp_reno_ssthresh(sk);
	return marimo_tcp_threshold(inet_csk_ca(sk));
}

static u32 marimo_undo_cwnd(struct sock *sk)
{
	struct marimo_tcp *m = inet_csk_ca(sk);
	struct marimo_tcp_decision out = { .events = MARIMO_TCP_DID_UNDO };
	struct marimo_tcp_sample in;

	if (!marimo_tcp_begun(m))
		return tcp_reno_undo_cwnd(sk);
	out.window = marimo_tcp_on_undo(m, &marimo_config);
	out.threshold = marimo_tcp_threshold(m);
	if (trace_ack_enabled()) {
		marimo_sample(sk, &in);
		marimo_trace(sk, m, &in, &out);
	}
	return out.window;
}

static u32 marimo_min_tso_segs(struct sock *sk)
{
	return marimo_tcp_min_tso_segs(inet_csk_ca(sk));
}

/*
 * ss decodes the structs that it knows, so this fills DCTCP's: alpha is the
 * load in 1/1024, ab_tot and ab_ecn are bytes of the epoch under way and how
 * many of them were marked, bit 1 of ce_state says that the peer latches.
 */
static size_t marimo_get_info(struct sock *sk, u32 ext, int *attr,
			      union tcp_cc_info *info)
{
	const struct marimo_tcp *m = inet_csk_ca(sk);
	const struct tcp_sock *tp = tcp_sk(sk);

	/* As DCTCP: a request has room for no more than VEGASINFO's bit. */
	if (!(ext & (1 << (INET_DIAG_DCTCPINFO - 1))) &&
	    !(ext & (1 << (INET_DIAG_VEGASINFO - 1))))
		return 0;
	memset(&info->dctcp, 0, sizeof(info->dctcp));
	if (READ_ONCE(inet_csk(sk)->icsk_ca_ops) != &marimo_reno) {
		info->dctcp.dctcp_enabled = 1;
		info->dctcp.dctcp_ce_state = (m->flags & MARIMO_TCP_CE) |
			(marimo_tcp_latched(m) ? 2 : 0);
		info->dctcp.dctcp_alpha = READ_ONCE(m->core.rho) >> 6;
		info->dctcp.dctcp_ab_ecn = READ_ONCE(m->core.epoch_marked) *
			tp->mss_cache;
		info->dctcp.dctcp_ab_tot = READ_ONCE(m->core.epoch_packets) *
			tp->mss_cache;
	}
	*attr = INET_DIAG_DCTCPINFO;
	return sizeof(info->dctcp);
}

static struct tcp_congestion_ops marimo __read_mostly = {
	.init		= marimo_tcp_start,
	.release	= marimo_tcp_release,
	.cong_control	= marimo_cong_control,
	.set_state	= marimo_set_state,
	.cwnd_event	= marimo_cwnd_event,
#ifdef MARIMO_HAVE_TX_START
	.cwnd_event_tx_start = marimo_started,
#endif
	.ssthresh	= marimo_ssthresh,
	.undo_cwnd	= marimo_undo_cwnd,
	.min_tso_segs	= marimo_min_tso_segs,
	.get_info	= marimo_get_info,
	.flags		= TCP_CONG_NEEDS_ECN,
	.owner		= THIS_MODULE,
	.name		= "marimo",
};

/* Never registered: only marimo_fall_back() gives it to sockets. */
static struct tcp_congestion_ops marimo_reno __read_mostly = {
	.ssthresh	= tcp_reno_ssthresh,
	.cong_avoid	= tcp_reno_cong_avoid,
	.undo_cwnd	= tcp_reno_undo_cwnd,
	.get_info	= marimo_get_info,
	.owner		= THIS_MODULE,
	.name		= "marimo-reno",
};

/* The table as a file: what `incast calibrate` writes. */

#define MARIMO_TABLE_FORMAT "marimo-f 1"

/**
 * struct marimo_reader - where in a table's text we are
 * @at: what has not been read
 * @end: where the text ends
 * @line: number of the line that was read last, from 1
 */
struct marimo_reader {
	const char *at;
	const char *end;
	unsigned int line;
};

static bool marimo_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/*
 * The next line that says something, trimmed, in buffer; comments and empty
 * lines are left out.
 *
 * Return: its length before it was cut to the buffer, 0 at the end.
 */
static size_t marimo_read_line(struct marimo_reader *reader, char *buffer,
			       size_t size)
{
	while (reader->at < reader->end) {
		const char *from = reader->at;
		const char *to = memchr(from, '\n', reader->end - from);
		size_t length;

		if (!to)
			to = reader->end;
		reader->at = to < reader->end ? to + 1 : to;
		reader->line++;
		while (from < to && marimo_blank(*from))
			from++;
		while (to > from && marimo_blank(to[-1]))
			to--;
		if (from == to || *from == '#')
			continue;
		length = to - from;
		memcpy(buffer, from, min(length, size - 1));
		buffer[min(length, size - 1)] = '\0';
		/* A zero byte would end the comparison before the line does. */
		return strlen(buffer) == min(length, size - 1) ? length : size;
	}
	return 0;
}

static int marimo_refuse(char *message, size_t size, const char *format, ...)
	__printf(3, 4);

static int marimo_refuse(char *message, size_t size, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vscnprintf(message, size, format, arguments);
	va_end(arguments);
	return -EINVAL;
}

/**
 * marimo_parse_table() - reads a table's text
 * @text: the text, which need not end with a zero
 * @length: its length
 * @table: where to put the knots
 * @message: set to what is wrong with which line
 * @size: its size
 *
 * Return: 0, or -EINVAL.
 */
static int marimo_parse_table(const char *text, size_t length,
			      struct marimo_table *table, char *message,
			      size_t size)
{
	struct marimo_reader reader = { text, text + length, 0 };
	unsigned int knot, lines[MARIMO_KNOTS];
	char word[40], expected[40];
	size_t got;

	got = marimo_read_line(&reader, word, sizeof(word));
	if (!got || got >= sizeof(word) || strcmp(word, MARIMO_TABLE_FORMAT))
		return marimo_refuse(message, size,
				     "line %u: expected \"%s\"", reader.line,
				     MARIMO_TABLE_FORMAT);
	for (knot = 0; knot < MARIMO_KNOTS; knot++) {
		got = marimo_read_line(&reader, word, sizeof(word));
		lines[knot] = reader.line;
		if (!got || strstarts(word, "checksum"))
			return marimo_refuse(message, size,
					     "line %u: found %u knots, allowed are %u",
					     reader.line, knot, MARIMO_KNOTS);
		if (got >= sizeof(word) || word[0] == '+' ||
		    kstrtou32(word, 10, &table->knots[knot]))
			return marimo_refuse(message, size,
					     "line %u: expected a load in 65536ths, a whole number to %u",
					     reader.line, MARIMO_LOAD_MAX);
	}
	knot = marimo_table_fault(table, &marimo_config);
	if (knot)
		return marimo_refuse(message, size,
				     "line %u: f(%u/64) = %u: f must not fall, must stay at or below %u, must start below %u and end above %u",
				     lines[knot - 1], knot - 1,
				     table->knots[knot - 1], MARIMO_LOAD_MAX,
				     marimo_config.increase_below,
				     marimo_config.decrease_above);
	snprintf(expected, sizeof(expected), "checksum %08x",
		 marimo_table_checksum(table));
	got = marimo_read_line(&reader, word, sizeof(word));
	/* As it is written: other spellings of the number are refused, too. */
	if (!got || got >= sizeof(word) || strcmp(word, expected))
		return marimo_refuse(message, size,
				     "line %u: expected \"%s\"",
				     reader.line, expected);
	if (marimo_read_line(&reader, word, sizeof(word)))
		return marimo_refuse(message, size,
				     "line %u: expected the end after the checksum",
				     reader.line);
	return 0;
}

static int marimo_use_table(const struct marimo_table *table)
{
	struct marimo_f *next, *last;

	next = kmalloc(sizeof(*next), GFP_KERNEL);
	if (!next)
		return -ENOMEM;
	next->table = *table;
	last = rcu_dereference_protected(marimo_f,
					 lockdep_is_held(&marimo_table_lock));
	rcu_assign_pointer(marimo_f, next);
	if (last)
		kfree_rcu(last, rcu);
	return 0;
}

/* Without connections and without files: nobody reads it. */
static void marimo_free_table(void)
{
	kfree(rcu_dereference_protected(marimo_f, 1));
	RCU_INIT_POINTER(marimo_f, NULL);
}

static ssize_t marimo_write_table(const char *text, size_t length)
{
	struct marimo_table table;
	int error;

	mutex_lock(&marimo_table_lock);
	marimo_table_message[0] = '\0';
	error = marimo_parse_table(text, length, &table, marimo_table_message,
				   sizeof(marimo_table_message));
	if (error)
		pr_warn_ratelimited("table refused, the old one stays: %s\n",
				    marimo_table_message);
	else
		error = marimo_use_table(&table);
	mutex_unlock(&marimo_table_lock);
	atomic_inc(error ? &marimo_counters.refused : &marimo_counters.tables);
	return error ? error : length;
}

static ssize_t marimo_read_table(char *page)
{
	struct marimo_table table;
	unsigned int knot;
	ssize_t length;

	rcu_read_lock();
	table = rcu_dereference(marimo_f)->table;
	rcu_read_unlock();
	length = sysfs_emit(page, "%s\n", MARIMO_TABLE_FORMAT);
	for (knot = 0; knot < MARIMO_KNOTS; knot++)
		length += sysfs_emit_at(page, length, "%u\n",
					table.knots[knot]);
	length += sysfs_emit_at(page, length, "checksum %08x\n",
				marimo_table_checksum(&table));
	return length;
}

#ifdef MARIMO_HAVE_CONST_ATTRIBUTE
#define MARIMO_CONST const
#else
#define MARIMO_CONST
#endif

static ssize_t table_show(MARIMO_CONST struct module_attribute *attribute,
			  struct module_kobject *kobject, char *page)
{
	return marimo_read_table(page);
}

static ssize_t table_store(MARIMO_CONST struct module_attribute *attribute,
			   struct module_kobject *kobject, const char *text,
			   size_t length)
{
	return marimo_write_table(text, length);
}

/* What was wrong with the table that was written last; empty if nothing. */
static ssize_t table_error_show(MARIMO_CONST struct module_attribute *attribute,
				struct module_kobject *kobject, char *page)
{
	ssize_t length;

	mutex_lock(&marimo_table_lock);
	length = sysfs_emit(page, "%s\n", marimo_table_message);
	mutex_unlock(&marimo_table_lock);
	return length;
}

static ssize_t counters_show(MARIMO_CONST struct module_attribute *attribute,
			     struct module_kobject *kobject, char *page)
{
	return sysfs_emit(page,
			  "connections %d\nfallbacks %d\nfallbacks_syn %d\nfallbacks_echo %d\nfallbacks_ect %d\nsyns %d\nlatched %d\ntables %d\nrefused %d\nstarts %d\n",
			  atomic_read(&marimo_counters.connections),
			  atomic_read(&marimo_counters.fallbacks),
			  atomic_read(&marimo_counters.fallbacks_syn),
			  atomic_read(&marimo_counters.fallbacks_echo),
			  atomic_read(&marimo_counters.fallbacks_ect),
			  atomic_read(&marimo_counters.syns),
			  atomic_read(&marimo_counters.latched),
			  atomic_read(&marimo_counters.tables),
			  atomic_read(&marimo_counters.refused),
			  atomic_read(&marimo_counters.starts));
}

/* Rules that this build has by what its kernel offers: what depends on it. */
static ssize_t rules_show(MARIMO_CONST struct module_attribute *attribute,
			  struct module_kobject *kobject, char *page)
{
	return sysfs_emit(page,
			  "restart_after_idle %s\necn_test %s\nlost_syn without-ect\nundo undo_cwnd\npacing %s\n",
			  MARIMO_START_HOOK, MARIMO_CAN_MARK ? "ce" : "losses",
			  pacing ? "on" : "off");
}

static MARIMO_CONST struct module_attribute marimo_table_attribute =
	__ATTR_RW(table);
static MARIMO_CONST struct module_attribute marimo_table_error_attribute =
	__ATTR_RO(table_error);
static MARIMO_CONST struct module_attribute marimo_counters_attribute =
	__ATTR_RO(counters);
static MARIMO_CONST struct module_attribute marimo_rules_attribute =
	__ATTR_RO(rules);

static const struct attribute *marimo_attributes[] = {
	&marimo_table_attribute.attr,
	&marimo_table_error_attribute.attr,
	&marimo_counters_attribute.attr,
	&marimo_rules_attribute.attr,
	NULL
};

/* Configuration. */

/* Thousandths to Q16, to the nearest; too large stays too large. */
static u32 __init marimo_q16(unsigned int thousandths)
{
	return (min(thousandths, 60000u) * MARIMO_ONE + 500) / 1000;
}

/* Packets to Q16; too many stay too many. */
static u32 __init marimo_q16_packets(unsigned int packets)
{
	return packets > MARIMO_PACKETS_MAX ? U32_MAX : packets << 16;
}

static int __init marimo_choose(const char *name, const char *value,
				const char *const *allowed)
{
	int index = match_string(allowed, -1, value);

	if (index < 0)
		pr_err("%s: found \"%s\"; modinfo says what is allowed\n",
		       name, value);
	return index;
}

static int __init marimo_configure(struct marimo_config *c)
{
	static const char *const rules[] = { "paper", "settling", NULL };
	static const char *const froms[] = { "memory", "epoch", NULL };
	static const char *const starts[] = { "off", "epoch", "first-mark",
					      NULL };
	int settling = marimo_choose("rule", rule, rules);
	int from = settling ? MARIMO_FROM_EPOCH : MARIMO_FROM_MEMORY;
	int start = settling ? MARIMO_START_MARK : MARIMO_START_EPOCH;
	unsigned int most = max_increase;

	if (*decrease_from)
		from = marimo_choose("decrease_from", decrease_from, froms);
	if (*slow_start)
		start = marimo_choose("slow_start", slow_start, starts);
	if (settling < 0 || from < 0 || start < 0)
		return -EINVAL;
	if (settle < -1 || settle > 255) {
		pr_err("settle: found %d, allowed are 0 to 255, and -1: by rule\n",
		       settle);
		return -EINVAL;
	}
	if (!most)
		most = settling ? max_t(unsigned int, increase,
					MARIMO_TCP_SETTLING_INCREASE) :
				  increase;

	c->increase_below = marimo_q16(increase_below);
	c->decrease_above = marimo_q16(decrease_above);
	c->target = marimo_q16(target);
	c->min_decrease = 0;
	c->max_decrease = marimo_q16(max_decrease);
	c->rho_after_decrease = forget ? MARIMO_ONE : MARIMO_NEVER;
	c->loss_rho = marimo_q16(loss_load);
	c->loss_decrease = marimo_q16(loss_decrease);
	c->initial_window = marimo_q16_packets(initial_window);
	c->min_window = marimo_q16_packets(min_window);
	c->max_window = MARIMO_WINDOW_MAX;
	c->increase = marimo_q16_packets(increase);
	c->max_increase = marimo_q16_packets(most);
	c->min_epoch = min_epoch;
	c->beta_shift = min(beta_shift, 255u);
	c->decrease_from = from;
	c->settle = settle < 0 ? settling : settle;
	c->slow_start = start;
	if (!marimo_config_valid(c)) {
		pr_err("parameters out of range or in contradiction; modinfo and README.md say what is allowed\n");
		return -EINVAL;
	}
	return 0;
}

static int __init marimo_register(void)
{
	static const struct marimo_table calibrated = {
		.knots = MARIMO_F_CALIBRATED
	};
	struct kobject *kobject = &THIS_MODULE->mkobj.kobj;
	int error;

	BUILD_BUG_ON(sizeof(struct marimo_tcp) > ICSK_CA_PRIV_SIZE);
	BUILD_BUG_ON(TCP_CA_Open != (int)MARIMO_TCP_OPEN);
	BUILD_BUG_ON(TCP_CA_Disorder != (int)MARIMO_TCP_DISORDER);
	BUILD_BUG_ON(TCP_CA_CWR != (int)MARIMO_TCP_CWR);
	BUILD_BUG_ON(TCP_CA_Recovery != (int)MARIMO_TCP_RECOVERY);
	BUILD_BUG_ON(TCP_CA_Loss != (int)MARIMO_TCP_LOSS);
	BUILD_BUG_ON(TCP_INFINITE_SSTHRESH != MARIMO_TCP_NO_THRESHOLD);

	if (LINUX_VERSION_CODE >= KERNEL_VERSION(MARIMO_NEWEST_MAJOR,
						 MARIMO_NEWEST_MINOR + 1, 0) &&
	    !any_kernel) {
		pr_err("this kernel is newer than %d.%d, the newest that this was tried on; any_kernel=1 loads it all the same\n",
		       MARIMO_NEWEST_MAJOR, MARIMO_NEWEST_MINOR);
		return -EOPNOTSUPP;
	}
	error = marimo_configure(&marimo_config);
	if (error)
		return error;
	if (marimo_table_fault(&calibrated, &marimo_config)) {
		pr_err("the calibrated table does not cross increase_below and decrease_above\n");
		return -EINVAL;
	}
	mutex_lock(&marimo_table_lock);
	error = marimo_use_table(&calibrated);
	mutex_unlock(&marimo_table_lock);
	if (error)
		return error;
	error = sysfs_create_files(kobject, marimo_attributes);
	if (error)
		goto no_files;
	error = tcp_register_congestion_control(&marimo);
	if (error)
		goto not_registered;
	return 0;

not_registered:
	sysfs_remove_files(kobject, marimo_attributes);
no_files:
	marimo_free_table();
	return error;
}

/* Connections hold the module, so there are none left. */
static void __exit marimo_unregister(void)
{
	tcp_unregister_congestion_control(&marimo);
	sysfs_remove_files(&THIS_MODULE->mkobj.kobj, marimo_attributes);
	marimo_free_table();
}

module_init(marimo_register);
module_exit(marimo_unregister);

MODULE_AUTHOR("the incast authors");
MODULE_DESCRIPTION("Marimo: load-aware congestion control for datacenters");
/* With a version, a module also says the checksum of its source. */
MODULE_VERSION("0.1.0");
MODULE_LICENSE("Dual MIT/GPL");
