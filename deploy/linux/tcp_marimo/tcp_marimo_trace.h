/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Tracepoints. tcp_marimo:ack has all that the algorithm is told and what
 * comes of it, so that a run can be replayed through another build of
 * marimo.h; tcp_marimo:epoch has one line for each decision.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM tcp_marimo

#ifndef TCP_MARIMO_ADDRESSES
#define TCP_MARIMO_ADDRESSES

#include <linux/in.h>
#include <linux/in6.h>
#include <linux/string.h>
#include <net/inet_sock.h>

/* Room for an address of either family, as %pIS prints them. */
#define MARIMO_ADDRESS_SIZE sizeof(struct sockaddr_in6)

static inline void marimo_addresses(const struct sock *sk, u8 *source,
				    u8 *destination)
{
	struct sockaddr_in from = { .sin_family = AF_INET };
	struct sockaddr_in to = { .sin_family = AF_INET };

	memset(source, 0, MARIMO_ADDRESS_SIZE);
	memset(destination, 0, MARIMO_ADDRESS_SIZE);
#if IS_ENABLED(CONFIG_IPV6)
	if (sk->sk_family == AF_INET6) {
		struct sockaddr_in6 from6 = { .sin6_family = AF_INET6 };
		struct sockaddr_in6 to6 = { .sin6_family = AF_INET6 };

		from6.sin6_addr = sk->sk_v6_rcv_saddr;
		to6.sin6_addr = sk->sk_v6_daddr;
		memcpy(source, &from6, sizeof(from6));
		memcpy(destination, &to6, sizeof(to6));
		return;
	}
#endif
	from.sin_addr.s_addr = inet_sk(sk)->inet_saddr;
	to.sin_addr.s_addr = inet_sk(sk)->inet_daddr;
	memcpy(source, &from, sizeof(from));
	memcpy(destination, &to, sizeof(to));
}

#endif /* TCP_MARIMO_ADDRESSES */

#if !defined(TCP_MARIMO_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define TCP_MARIMO_TRACE_H

#include <linux/tracepoint.h>
#include "marimo_tcp.h"

/*
 * events: MARIMO_TCP_DID_..., in the order in which the algorithm was told.
 * Windows and gain are Q16 packets, rho and share Q16, what follows is how the
 * socket has it.
 */
TRACE_EVENT(ack,

	TP_PROTO(const struct sock *sk, const struct marimo_tcp *m,
		 const struct marimo_tcp_sample *in,
		 const struct marimo_tcp_decision *out),

	TP_ARGS(sk, m, in, out),

	TP_STRUCT__entry(
		__field(const void *, skaddr)
		__field(u64, pacing)
		__field(u32, events)
		__field(u32, packets)
		__field(u32, marked)
		__field(u32, acked)
		__field(u32, position)
		__field(u32, next)
		__field(u32, limited)
		__field(u32, window)
		__field(u32, threshold)
		__field(u32, rho)
		__field(u32, gain)
		__field(u32, epochs)
		__field(u32, cwnd)
		__field(u32, ssthresh)
		__field(u32, pipe)
		__field(u32, srtt)
		__field(u16, sport)
		__field(u16, dport)
		__array(u8, saddr, MARIMO_ADDRESS_SIZE)
		__array(u8, daddr, MARIMO_ADDRESS_SIZE)
		__field(u8, state)
	),

	TP_fast_assign(
		__entry->skaddr = sk;
		__entry->pacing = out->pacing;
		__entry->events = out->events;
		__entry->packets = out->ack.packets;
		__entry->marked = out->ack.marked;
		__entry->acked = out->ack.acked;
		__entry->position = out->ack.position;
		__entry->next = out->ack.next;
		__entry->limited = out->ack.limited;
		__entry->window = m->core.window;
		__entry->threshold = m->core.threshold;
		__entry->rho = m->core.rho;
		__entry->gain = m->core.gain;
		__entry->epochs = m->core.epochs;
		__entry->cwnd = out->window;
		__entry->ssthresh = out->threshold;
		__entry->pipe = in->pipe;
		__entry->srtt = in->srtt;
		__entry->sport = ntohs(inet_sk(sk)->inet_sport);
		__entry->dport = ntohs(inet_sk(sk)->inet_dport);
		marimo_addresses(sk, __entry->saddr, __entry->daddr);
		__entry->state = in->state;
	),

	TP_printk("skaddr=%p saddr=%pISc sport=%u daddr=%pISc dport=%u events=%u packets=%u marked=%u acked=%u position=%u next=%u limited=%u window=%u threshold=%u rho=%u gain=%u epochs=%u state=%u cwnd=%u ssthresh=%u pipe=%u srtt=%u pacing=%llu",
		  __entry->skaddr, __entry->saddr, __entry->sport,
		  __entry->daddr, __entry->dport, __entry->events,
		  __entry->packets, __entry->marked, __entry->acked,
		  __entry->position, __entry->next,
		  __entry->limited, __entry->window, __entry->threshold,
		  __entry->rho, __entry->gain, __entry->epochs, __entry->state,
		  __entry->cwnd, __entry->ssthresh, __entry->pipe,
		  __entry->srtt, __entry->pacing)
);

TRACE_EVENT(epoch,

	TP_PROTO(const struct sock *sk, const struct marimo_tcp *m,
		 const struct marimo_tcp_decision *out),

	TP_ARGS(sk, m, out),

	TP_STRUCT__entry(
		__field(const void *, skaddr)
		__field(u32, epochs)
		__field(u32, share)
		__field(u32, rho)
		__field(u32, window)
		__field(u32, threshold)
		__field(u32, cwnd)
		__field(u16, sport)
		__field(u16, dport)
		__array(u8, saddr, MARIMO_ADDRESS_SIZE)
		__array(u8, daddr, MARIMO_ADDRESS_SIZE)
		__field(u8, latched)
	),

	TP_fast_assign(
		__entry->skaddr = sk;
		__entry->epochs = m->core.epochs;
		__entry->share = m->core.share;
		__entry->rho = m->core.rho;
		__entry->window = m->core.window;
		__entry->threshold = m->core.threshold;
		__entry->cwnd = out->window;
		__entry->sport = ntohs(inet_sk(sk)->inet_sport);
		__entry->dport = ntohs(inet_sk(sk)->inet_dport);
		marimo_addresses(sk, __entry->saddr, __entry->daddr);
		__entry->latched = marimo_tcp_latched(m);
	),

	TP_printk("skaddr=%p saddr=%pISc sport=%u daddr=%pISc dport=%u epochs=%u share=%u rho=%u window=%u threshold=%u cwnd=%u latched=%u",
		  __entry->skaddr, __entry->saddr, __entry->sport,
		  __entry->daddr, __entry->dport, __entry->epochs, __entry->share, __entry->rho,
		  __entry->window, __entry->threshold, __entry->cwnd,
		  __entry->latched)
);

#endif /* TCP_MARIMO_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE tcp_marimo_trace
#include <trace/define_trace.h>
