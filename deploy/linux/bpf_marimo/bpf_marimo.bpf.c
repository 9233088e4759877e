// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Marimo as a BPF struct_ops: the twin of the module tcp_marimo, from the same
 * headers. What decides is in marimo.h and marimo_tcp.h; here numbers of a
 * socket are copied in and out.
 *
 * Loaded, watched and tuned by marimoctl. README.md has the differences to the
 * module: no info for ss, another congestion control where ECN is missing.
 */
#include "kernel.h"
#include "../../core/marimo.h"
#include "bpf_marimo.h"

/*
 * f, twice. Connections read the one that @active's slot 0 points to; the
 * loader writes the other one and then turns the slot. An update of a map of
 * maps returns only when no program runs that may have seen the slot before,
 * so that nobody ever reads a table that is being written.
 */
struct table_map {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
	MAP_NUMBER(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct marimo_table);
} table_0 SEC(".maps"), table_1 SEC(".maps");

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	MAP_NUMBER(max_entries, 1);
	MAP_TYPE(key, u32);
	struct table_map *values[];
} active SEC(".maps") = { .values = { &table_0 } };

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	MAP_NUMBER(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct bpf_marimo_counters);
} counters SEC(".maps");

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	MAP_NUMBER(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct bpf_marimo_counters_2);
} counters_2 SEC(".maps");

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_RINGBUF);
	MAP_NUMBER(max_entries, 1 << 20);
} trace SEC(".maps");

const volatile struct bpf_marimo_settings settings SEC(".rodata.settings");

static const u32 first;

/* The compiler must not take the zeroes above for the values. */
static ALWAYS_INLINE const struct bpf_marimo_settings *loaded_settings(void)
{
	const struct bpf_marimo_settings *loaded = (const void *)&settings;

	asm volatile("" : "+r"(loaded));
	return loaded;
}

static ALWAYS_INLINE const struct marimo_table *table(void)
{
	void *map = bpf_map_lookup_elem(&active, &first);

	return map ? bpf_map_lookup_elem(map, &first) : 0;
}

/*
 * The algorithm as global functions, which the verifier checks once and each by
 * itself: inlined into every program their branches multiply until it gives up.
 * It wants pointers of its caller's to be writable, so that the configuration
 * and f are looked up here instead of being passed.
 */
NOINLINE int on_ack(struct marimo *m, const struct marimo_ack *ack)
{
	const struct marimo_table *f = table();

	if (m && ack && f)
		marimo_on_ack(m, &loaded_settings()->config, f, ack);
	return 0;
}

NOINLINE int on_loss(struct marimo *m, marimo_u32 position, marimo_u32 next)
{
	if (m)
		marimo_on_loss(m, &loaded_settings()->config, position, next);
	return 0;
}

NOINLINE int on_timeout(struct marimo *m, marimo_u32 next)
{
	if (m)
		marimo_on_timeout(m, &loaded_settings()->config, next);
	return 0;
}

#define marimo_on_ack(m, c, f, ack) ((void)(c), (void)(f), on_ack(m, ack))
#define marimo_on_loss(m, c, position, next)                                  \
	((void)(c), on_loss(m, position, next))
#define marimo_on_timeout(m, c, next) ((void)(c), on_timeout(m, next))
#include "../marimo_tcp.h"

/* Programs of one CPU interrupt each other: a task's by a softirq's. */
#define COUNT_IN(map, field, by)                                              \
	do {                                                                  \
		struct bpf_marimo_##map *at =                                 \
			bpf_map_lookup_elem(&map, &first);                    \
		if (at)                                                       \
			__sync_fetch_and_add(&at->field, by);                 \
	} while (0)
#define COUNT(field, by) COUNT_IN(counters, field, by)

/* Operations get their arguments as words, the socket always first. */
static ALWAYS_INLINE struct sock *socket_of(const u64 *arguments)
{
	return (struct sock *)arguments[0];
}

static ALWAYS_INLINE struct inet_connection_sock *icsk(struct sock *sk)
{
	return (struct inet_connection_sock *)sk;
}

static ALWAYS_INLINE struct tcp_sock *tcp(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

/* The connection's state, as what it is and as the words it is kept in. */
union state {
	struct marimo_tcp tcp;
	u64 words[13];
};

typedef char state_is_the_private_area[sizeof(union state) == 104 ? 1 : -1];

#define WORDS(copy)                                                           \
	do {                                                                  \
		copy(0); copy(1); copy(2); copy(3); copy(4); copy(5);         \
		copy(6); copy(7); copy(8); copy(9); copy(10); copy(11);       \
		copy(12);                                                     \
	} while (0)

static ALWAYS_INLINE void recall(const struct sock *sk, union state *m)
{
	const struct inet_connection_sock *from = (const void *)sk;

#define COPY(word) (m->words[word] = from->icsk_ca_priv[word])
	WORDS(COPY);
#undef COPY
}

static ALWAYS_INLINE void keep(struct sock *sk, const union state *m)
{
	struct inet_connection_sock *to = icsk(sk);

#define COPY(word) (to->icsk_ca_priv[word] = m->words[word])
	WORDS(COPY);
#undef COPY
}

static ALWAYS_INLINE void sample(struct sock *sk, marimo_u32 lost,
				 struct marimo_tcp_sample *in)
{
	const struct tcp_sock *tp = tcp(sk);

	in->delivered = tp->delivered;
	in->delivered_ce = tp->delivered_ce;
	in->una = tp->snd_una;
	in->next = tp->snd_nxt;
	in->flight = tp->packets_out;
	in->pipe = tp->packets_out - tp->sacked_out - tp->lost_out +
		   tp->retrans_out;
	in->sent = tp->data_segs_out;
	in->lost = lost;
	in->window = tp->snd_cwnd;
	in->threshold = tp->snd_ssthresh;
	in->peak = tp->max_packets_out;
	in->clamp = tp->snd_cwnd_clamp;
	in->mss = tp->mss_cache;
	in->srtt = tp->srtt_us;
	in->receive_next = tp->rcv_nxt;
	in->state = (marimo_u8)BITS(icsk(sk), icsk_ca_state);
	in->limited = (marimo_u8)BITS(tp, is_cwnd_limited);
	in->exact = !!(tp->ecn_flags & TCP_ECN_MODE_ACCECN);
}

static ALWAYS_INLINE void apply(struct sock *sk,
				const struct marimo_tcp_decision *out)
{
	u64 most = sk->sk_max_pacing_rate;

	tcp(sk)->snd_cwnd = out->window;
	tcp(sk)->snd_ssthresh = out->threshold;
	if (out->pacing)
		sk->sk_pacing_rate = out->pacing < most ? out->pacing : most;
}

static NOINLINE void record(struct sock *sk, const union state *m,
			    const struct marimo_tcp_decision *out, u32 kind)
{
	const struct sock_common *of = &sk->__sk_common;
	const struct tcp_sock *tp = tcp(sk);
	struct bpf_marimo_record *to =
		bpf_ringbuf_reserve(&trace, sizeof(*to), 0);
	u32 *source, *destination;

	if (!to) {
		COUNT(untraced, 1);
		return;
	}
	source = (u32 *)to->source;
	destination = (u32 *)to->destination;
	to->family = of->skc_family;
	if (to->family == AF_INET) {
		source[0] = of->skc_rcv_saddr;
		destination[0] = of->skc_daddr;
		source[1] = source[2] = source[3] = 0;
		destination[1] = destination[2] = destination[3] = 0;
	} else {
		source[0] = of->skc_v6_rcv_saddr.in6_u.u6_addr32[0];
		source[1] = of->skc_v6_rcv_saddr.in6_u.u6_addr32[1];
		source[2] = of->skc_v6_rcv_saddr.in6_u.u6_addr32[2];
		source[3] = of->skc_v6_rcv_saddr.in6_u.u6_addr32[3];
		destination[0] = of->skc_v6_daddr.in6_u.u6_addr32[0];
		destination[1] = of->skc_v6_daddr.in6_u.u6_addr32[1];
		destination[2] = of->skc_v6_daddr.in6_u.u6_addr32[2];
		destination[3] = of->skc_v6_daddr.in6_u.u6_addr32[3];
	}
	to->source_port = of->skc_num;
	to->destination_port = __builtin_bswap16(of->skc_dport);
	to->time = bpf_ktime_get_ns();
	to->pacing_rate = sk->sk_pacing_rate;
	to->kind = kind;
	to->netns = of->skc_net.net->ns.inum;
	to->epochs = m->tcp.core.epochs;
	to->share = m->tcp.core.share;
	to->rho = m->tcp.core.rho;
	to->window = m->tcp.core.window;
	to->threshold = m->tcp.core.threshold;
	to->flags = m->tcp.core.flags;
	to->cwnd = tp->snd_cwnd;
	to->srtt = tp->srtt_us >> 3;
	to->in_flight = tp->packets_out - tp->sacked_out - tp->lost_out +
			tp->retrans_out;
	to->delivered = tp->delivered;
	to->delivered_ce = tp->delivered_ce;
	to->retransmits = tp->total_retrans;
	to->events = out->events;
	to->ack = out->ack;
	bpf_ringbuf_submit(to, 0);
}

/* Counts and records what the algorithm was told. */
static NOINLINE void tell(struct sock *sk, const union state *m,
			  const struct marimo_tcp_decision *out)
{
	u32 events = out->events;

	if (events & MARIMO_TCP_DID_ACK) {
		COUNT(acks, 1);
		COUNT(delivered, out->ack.packets);
		if (out->ack.marked)
			COUNT(marked, out->ack.marked);
	}
	if (events && loaded_settings()->trace_acks)
		record(sk, m, out, BPF_MARIMO_DECISION);
	if (events & MARIMO_TCP_DID_EPOCH) {
		COUNT(epochs, 1);
		record(sk, m, out, BPF_MARIMO_EPOCH);
	}
	if (events & MARIMO_TCP_DID_SUSPECT)
		COUNT(inflating, 1);
	if (events & MARIMO_TCP_DID_LOSS) {
		COUNT(losses, 1);
		record(sk, m, out, BPF_MARIMO_LOSS);
	}
	if (events & MARIMO_TCP_DID_TIMEOUT) {
		COUNT(timeouts, 1);
		record(sk, m, out, BPF_MARIMO_TIMEOUT);
	}
	if (events & MARIMO_TCP_DID_RESTART)
		COUNT(restarts, 1);
}

static ALWAYS_INLINE int has_ecn(struct sock *sk)
{
	return tcp(sk)->ecn_flags & (TCP_ECN_OK | TCP_ECN_MODE_ACCECN);
}

/*
 * Without ECN there is no load to see. The kernel stops setting ECT as it
 * changes to a congestion control that does not need ECN.
 *
 * Return: whether the connection is another's now.
 */
static ALWAYS_INLINE int fall_back(struct sock *sk)
{
	struct marimo_tcp_decision out = {};
	union state m = {};
	char name[16];

	__builtin_memcpy(name, loaded_settings()->fallback, sizeof(name));
	if (bpf_setsockopt(sk, SOL_TCP, TCP_CONGESTION, name, sizeof(name) - 1))
		return 0;
	COUNT(fallbacks, 1);
	record(sk, &m, &out, BPF_MARIMO_FALLBACK);
	return 1;
}

/*
 * ECN was negotiated, but marks are not echoed, or ECT is dropped. The kernel sets ECT by what was
 * negotiated, whatever the congestion control is; with this it also ends the
 * echo of the marks that arrive here.
 */
static ALWAYS_INLINE void check_ecn(struct sock *sk,
				    const struct marimo_tcp_decision *out)
{
	struct tcp_sock *tp = tcp(sk);

	if (!(out->events & MARIMO_TCP_DID_FAIL) || !fall_back(sk))
		return;
	if (out->events & MARIMO_TCP_DID_FAIL_ECT)
		COUNT_IN(counters_2, fallbacks_ect, 1);
	else
		COUNT(fallbacks_echo, 1);
	tp->ecn_flags &= ~(TCP_ECN_OK | TCP_ECN_MODE_ACCECN);
}

/* Whether a SYN that is sent again asks for no ECN. */
static ALWAYS_INLINE u32 ecn_fallback(struct sock *sk)
{
	const struct net *net = sk->__sk_common.skc_net.net;

	return net->ipv4.sysctl_tcp_ecn_fallback;
}

SEC("struct_ops")
int marimo_initialise(u64 *arguments)
{
	struct sock *sk = socket_of(arguments);
	const struct marimo_table *f = table();
	struct tcp_sock *tp = tcp(sk);
	struct marimo_tcp_decision out = {};
	struct marimo_tcp_sample in = {};
	union state m = {};
	u8 state = sk->__sk_common.skc_state;

	if (!has_ecn(sk) && state != TCP_CLOSE && state != TCP_LISTEN &&
	    fall_back(sk)) {
		if (state == TCP_ESTABLISHED && tp->total_retrans &&
		    !tp->data_segs_out && ecn_fallback(sk))
			COUNT(fallbacks_syn, 1);
		return 0;
	}
	if (!f)
		return 0;
	COUNT(opened, 1);
	if (tp->ecn_flags & TCP_ECN_MODE_ACCECN)
		COUNT(accecn, 1);
	sample(sk, 0, &in);
	marimo_tcp_init(&m.tcp, &loaded_settings()->config, f, &in, &out);
	keep(sk, &m);
	apply(sk, &out);
	if (loaded_settings()->trace_acks)
		record(sk, &m, &out, BPF_MARIMO_OPEN);
	if (sk->sk_pacing_status == SK_PACING_NONE)
		sk->sk_pacing_status = SK_PACING_NEEDED;
	return 0;
}

SEC("struct_ops")
int marimo_release(u64 *arguments)
{
	union state m;

	recall(socket_of(arguments), &m);
	if (marimo_tcp_begun(&m.tcp))
		COUNT(closed, 1);
	return 0;
}

SEC("struct_ops")
int marimo_cong_control(u64 *arguments)
{
	struct sock *sk = socket_of(arguments);
	const struct rate_sample *rs = (void *)arguments[3];
	const struct marimo_table *f = table();
	struct marimo_tcp_decision out = {};
	struct marimo_tcp_sample in = {};
	union state m;
	u32 window;

	recall(sk, &m);
	/* Changed to Marimo while connecting to a peer that then had no ECN. */
	if (!f || !marimo_tcp_begun(&m.tcp) || (!has_ecn(sk) && fall_back(sk)))
		return 0;
	window = m.tcp.core.window;
	sample(sk, rs->losses > 0 ? (u32)rs->losses : 0, &in);
	marimo_tcp_on_ack(&m.tcp, &loaded_settings()->config, f, &in, &out);
	keep(sk, &m);
	apply(sk, &out);
	if (m.tcp.core.window < window)
		COUNT(decreases, 1);
	tell(sk, &m, &out);
	check_ecn(sk, &out);
	return 0;
}

/*
 * A SYN has timed out, maybe as somebody drops what is ECT, which a program
 * cannot take away. Where the kernel goes on without ECN the connection is
 * another's at once, else after the second time.
 */
static ALWAYS_INLINE void syn_again(struct sock *sk)
{
	COUNT(syns, 1);
	if ((ecn_fallback(sk) || tcp(sk)->total_retrans) && fall_back(sk))
		COUNT(fallbacks_syn, 1);
}

SEC("struct_ops")
int marimo_set_state(u64 *arguments)
{
	struct sock *sk = socket_of(arguments);
	const struct marimo_table *f = table();
	struct marimo_tcp_decision out = {};
	struct marimo_tcp_sample in = {};
	union state m;

	recall(sk, &m);
	if (!f)
		return 0;
	if (!marimo_tcp_begun(&m.tcp)) {
		if (sk->__sk_common.skc_state == TCP_SYN_SENT &&
		    (u8)arguments[1] == MARIMO_TCP_LOSS)
			syn_again(sk);
		return 0;
	}
	/* What enters recovery is a loss, though its sample is not here yet. */
	sample(sk, 1, &in);
	in.becomes = (u8)arguments[1];
	if (marimo_tcp_on_state(&m.tcp, &loaded_settings()->config, f, &in,
				&out)) {
		keep(sk, &m);
		apply(sk, &out);
		tell(sk, &m, &out);
		check_ecn(sk, &out);
	} else {
		keep(sk, &m);
	}
	return 0;
}

static ALWAYS_INLINE void started(struct sock *sk)
{
	const struct net *net = sk->__sk_common.skc_net.net;
	struct marimo_tcp_decision out = {};
	struct marimo_tcp_sample in = {};
	union state m;

	recall(sk, &m);
	if (!marimo_tcp_begun(&m.tcp))
		return;
	COUNT(starts, 1);
	sample(sk, 0, &in);
	in.idle = (u32)bpf_jiffies64() - tcp(sk)->lsndtime;
	in.timeout = icsk(sk)->icsk_rto;
	in.restart = net->ipv4.sysctl_tcp_slow_start_after_idle;
	if (!marimo_tcp_on_start(&m.tcp, &loaded_settings()->config, &in, &out))
		return;
	keep(sk, &m);
	apply(sk, &out);
	tell(sk, &m, &out);
}

static ALWAYS_INLINE void set_echo(struct tcp_sock *tp, u32 on)
{
	if (on)
		tp->ecn_flags |= TCP_ECN_DEMAND_CWR;
	else
		tp->ecn_flags &= ~TCP_ECN_DEMAND_CWR;
}

static ALWAYS_INLINE void echo(struct sock *sk, u32 ce)
{
	struct tcp_sock *tp = tcp(sk);
	u32 what, before, pending;
	union state m;

	COUNT(arrivals, 1);
	if (tp->ecn_flags & TCP_ECN_MODE_ACCECN)
		return;
	recall(sk, &m);
	if (!marimo_tcp_begun(&m.tcp))
		return;
	/*
	 * Not only a timer delays an acknowledgement: what arrives while a task
	 * holds the socket is acknowledged when it lets go
	 * (tcp_backlog_ack_defer), and CE may change many times until then.
	 */
	pending = icsk(sk)->icsk_ack.pending & (ICSK_ACK_TIMER | ICSK_ACK_NOW);
	pending |= marimo_before(tp->rcv_wup, m.tcp.echo_next);
	pending = pending && !marimo_before(m.tcp.echo_next, tp->rcv_wup);
	what = marimo_tcp_echo(&m.tcp, ce, tp->rcv_nxt, pending, &before);
	keep(sk, &m);
	if (what & MARIMO_TCP_ECHO_BEFORE) {
		set_echo(tp, what & MARIMO_TCP_ECHO_WAS);
		bpf_tcp_send_ack(tp, before);
		COUNT(echo_acks, 1);
	}
	if (what & MARIMO_TCP_ECHO_NOW) {
		icsk(sk)->icsk_ack.pending |= ICSK_ACK_NOW;
		COUNT(ce_changes, 1);
	}
	set_echo(tp, what & MARIMO_TCP_ECHO);
}

SEC("struct_ops")
int marimo_cwnd_event(u64 *arguments)
{
	struct sock *sk = socket_of(arguments);
	u32 event = (u32)arguments[1];
	switch (event) {
	case CA_EVENT_ECN_IS_CE:
	case CA_EVENT_ECN_NO_CE:
		echo(sk, event == CA_EVENT_ECN_IS_CE);
		break;
	case CA_EVENT_TX_START:
		started(sk);
		break;
	case CA_EVENT_LOSS: {
		union state m;

		recall(sk, &m);
		if (!marimo_tcp_begun(&m.tcp))
			break;
		marimo_tcp_on_timeout(&m.tcp);
		keep(sk, &m);
		break;
	}
	default:
		break;
	}
	return 0;
}

/* Since Linux 7.1, which tells of it no more by the event. */
SEC("struct_ops")
int marimo_started(u64 *arguments)
{
	started(socket_of(arguments));
	return 0;
}

SEC("struct_ops")
u32 marimo_ssthresh(u64 *arguments)
{
	struct sock *sk = socket_of(arguments);
	union state m;

	recall(sk, &m);
	return marimo_tcp_begun(&m.tcp) ? marimo_tcp_threshold(&m.tcp) :
			   tcp(sk)->snd_ssthresh;
}

SEC("struct_ops")
u32 marimo_undo_cwnd(u64 *arguments)
{
	struct sock *sk = socket_of(arguments);
	struct marimo_tcp_decision out = { .events = MARIMO_TCP_DID_UNDO };
	union state m;

	recall(sk, &m);
	if (!marimo_tcp_begun(&m.tcp))
		return tcp(sk)->snd_cwnd;
	if (m.tcp.flags & MARIMO_TCP_UNDO)
		COUNT(undone, 1);
	out.window = marimo_tcp_on_undo(&m.tcp, &loaded_settings()->config);
	keep(sk, &m);
	tell(sk, &m, &out);
	return out.window;
}

SEC("struct_ops")
u32 marimo_min_tso_segs(u64 *arguments)
{
	struct sock *sk = socket_of(arguments);
	union state m;

	recall(sk, &m);
	return marimo_tcp_min_tso_segs(&m.tcp);
}

/* Restricted, as nothing says otherwise: only who may administrate a network
 * selects it, or whom tcp_allowed_congestion_control allows to.
 */
SEC(".struct_ops.link")
struct tcp_congestion_ops bpf_marimo = {
	.cwnd_event_tx_start = (void *)marimo_started,
	.init = (void *)marimo_initialise,
	.release = (void *)marimo_release,
	.cong_control = (void *)marimo_cong_control,
	.set_state = (void *)marimo_set_state,
	.cwnd_event = (void *)marimo_cwnd_event,
	.ssthresh = (void *)marimo_ssthresh,
	.undo_cwnd = (void *)marimo_undo_cwnd,
	.min_tso_segs = (void *)marimo_min_tso_segs,
	.name = "bpf_marimo",
	.flags = TCP_CONG_NEEDS_ECN,
};

char _license[] SEC("license") = "Dual MIT/GPL";
