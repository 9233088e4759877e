// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * On-Ramp on a Linux host: two programs at the ingress and the egress of a link
 * (tcx, Linux 6.6). What decides is in onramp.h and onramp_tcp.h; here headers
 * are read and written.
 *
 * report() sees acknowledgements come in, and tells the path to their sender
 * what delay they show. depart() sees data packets go out, and stamps them with
 * the time at which they may leave, until which fq keeps them. Whatever is not
 * understood passes as it would without this.
 */
#include "kernel.h"

#define PACKET_OF struct __sk_buff
#define READ bpf_skb_load_bytes
#include "common.h"

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_SK_STORAGE);
	MAP_NUMBER(max_entries, 0);
	MAP_NUMBER(map_flags, BPF_F_NO_PREALLOC);
	MAP_TYPE(key, int);
	MAP_TYPE(value, struct onramp_connection);
} connections SEC(".maps");

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_RINGBUF);
	MAP_NUMBER(max_entries, 1 << 18);
} bounds SEC(".maps");

/* The departure is written into the packet's stamp, as if it was made then. */
static ALWAYS_INLINE void stamp(struct __sk_buff *skb, const struct packet *p,
				u32 departure)
{
	u32 value = __builtin_bswap32(departure);

	bpf_l4_csum_replace(skb, p->at + __builtin_offsetof(struct tcp, checksum),
			    p->tcp.value, value, sizeof(value));
	bpf_skb_store_bytes(skb, p->at + __builtin_offsetof(struct tcp, value),
			    &value, sizeof(value), 0);
}

SEC("tcx/egress") int depart(struct __sk_buff *skb)
{
	u64 now = bpf_ktime_get_ns(), queued = skb->tstamp, when;
	const struct onramp_tcp_config *c = bpf_map_lookup_elem(&config, &first);
	struct packet p = {};
	struct tcp_sock *tcp;
	struct path *path;
	u32 offset;

	if (!c || !read_packet(skb, &p) || !is_data(&p) ||
	    (skb->priority & PRIORITIES) == PRIORITY_CONTROL)
		return TCX_NEXT;
	path = path_to(&p.destination, now);
	if (!path)
		return TCX_NEXT;
	if (!skb->sk || !(tcp = bpf_skc_to_tcp_sock(skb->sk))) {
		/* A forwarded packet has no small queue behind it: it would be lost. */
		COUNT(forwarded);
		return TCX_NEXT;
	}
	if (!BITS(tcp, tcp_usec_ts)) {
		COUNT(milliseconds);
		return TCX_NEXT;
	}
	if (!has_stamps(&p.tcp)) {
		COUNT(without_stamps);
		return TCX_NEXT;
	}
	if (queued && skb->tstamp_type != BPF_SKB_TSTAMP_DELIVERY_MONO) {
		/* A stamp in another clock is not to be compared with ours. */
		COUNT(stamped);
		return TCX_NEXT;
	}
	COUNT(packets);
	offset = tcp->tsoffset;
	queued = onramp_later(queued, now);
	bpf_spin_lock(&path->lock);
	when = onramp_path_depart(&path->path, c, now, queued);
	bpf_spin_unlock(&path->lock);
	if (when <= queued)
		return TCX_NEXT;
	COUNT(held);
	bpf_skb_set_tstamp(skb, when, BPF_SKB_TSTAMP_DELIVERY_MONO);
	stamp(skb, &p, (u32)(when / ONRAMP_MICROSECOND) + offset);
	return TCX_NEXT;
}

/* The socket that an incoming packet belongs to, to be released. */
static ALWAYS_INLINE void *socket_of(struct __sk_buff *skb,
				     const struct packet *p)
{
	struct bpf_sock_tuple tuple = {};

	if (p->is_six) {
		__builtin_memcpy(tuple.ipv6.saddr, &p->source, 16);
		__builtin_memcpy(tuple.ipv6.daddr, &p->destination, 16);
		tuple.ipv6.sport = p->tcp.source;
		tuple.ipv6.dport = p->tcp.destination;
		return bpf_skc_lookup_tcp(skb, &tuple, sizeof(tuple.ipv6),
					  BPF_F_CURRENT_NETNS, 0);
	}
	tuple.ipv4.saddr = p->source.words[3];
	tuple.ipv4.daddr = p->destination.words[3];
	tuple.ipv4.sport = p->tcp.source;
	tuple.ipv4.dport = p->tcp.destination;
	return bpf_skc_lookup_tcp(skb, &tuple, sizeof(tuple.ipv4),
				  BPF_F_CURRENT_NETNS, 0);
}

/*
 * What stamps tell, if this acknowledges the SYN of a host that another one
 * connects to: there is no connection before it is taken.
 */
static ALWAYS_INLINE int read_stamps_of_request(void *socket, const struct packet *p,
						struct onramp_stamps *s)
{
	const struct tcp_request_sock *request = bpf_skc_to_tcp_request_sock(socket);

	if (!request || !request->req_usec_ts ||
	    __builtin_bswap32(p->tcp.sequence) != request->rcv_nxt ||
	    __builtin_bswap32(p->tcp.acknowledged) != request->snt_isn + 1)
		return 0;
	s->value = __builtin_bswap32(p->tcp.value);
	s->echo = __builtin_bswap32(p->tcp.echo) - request->ts_off;
	return 1;
}

/*
 * What stamps tell, if this acknowledges new data, or a SYN: a duplicate repeats
 * the echo of an older packet.
 */
static ALWAYS_INLINE struct onramp_connection *
read_stamps(void *socket, const struct packet *p, struct onramp_stamps *s)
{
	const struct tcp_sock *tcp = bpf_skc_to_tcp_sock(socket);
	u32 acknowledged = __builtin_bswap32(p->tcp.acknowledged);
	u32 beside = __builtin_bswap32(p->tcp.sequence) - (tcp ? tcp->rcv_nxt : 0);

	/* Nor anything that TCP itself would not take. */
	if (!tcp || !BITS(tcp, tcp_usec_ts) ||
	    (s32)(acknowledged - tcp->snd_una) <= 0 ||
	    (s32)(acknowledged - tcp->snd_nxt) > 0)
		return 0;
	/* Of a peer's first packet nothing is known to compare it with. */
	if (!(p->tcp.flags & TCP_SYN) && beside + WINDOW_MAX > 2 * WINDOW_MAX)
		return 0;
	s->value = __builtin_bswap32(p->tcp.value);
	s->echo = __builtin_bswap32(p->tcp.echo) - tcp->tsoffset;
	return bpf_sk_storage_get(&connections, socket, 0,
				  BPF_SK_STORAGE_GET_F_CREATE);
}

/* Stamps of a SYN lie behind its MSS, as Linux and most others write it. */
static ALWAYS_INLINE int read_stamps_of_syn(struct __sk_buff *skb, struct packet *p)
{
	struct {
		u32 option, value, echo;
	} stamps;

	if (p->tcp.length >> 4 < 9 || !LOAD(skb, p->at + 24, &stamps) ||
	    (stamps.option != STAMPS && stamps.option != STAMPS_OF_SYN))
		return 0;
	p->tcp.value = stamps.value;
	p->tcp.echo = stamps.echo;
	return 1;
}

/*
 * A global function, which the verifier checks once and by itself: inlined, its
 * branches multiply with those of reading headers until it gives up. It wants
 * memory for arguments, so that the path is looked up in it.
 */
NOINLINE int tell(const struct bpf_onramp_address *address,
		  struct onramp_connection *connection,
		  const struct onramp_stamps *stamps, struct onramp_window *closed)
{
	const struct onramp_tcp_config *c = bpf_map_lookup_elem(&config, &first);
	struct path *path;
	int reported;

	if (!address || !connection || !stamps || !closed)
		return ONRAMP_IGNORED;
	closed->upper_at = 0;
	path = bpf_map_lookup_elem(&paths, address);
	if (!c || !path)
		return ONRAMP_IGNORED;
	bpf_spin_lock(&path->lock);
	reported = onramp_path_observe(&path->path, connection, c, stamps, closed);
	if (reported == ONRAMP_TOLD) {
		/* What was found is read from memory, so that the verifier forgets how. */
		asm volatile("" : "+r"(path) : : "memory");
		onramp_path_decide(&path->path, c);
	}
	bpf_spin_unlock(&path->lock);
	return reported;
}

/*
 * When the packet left, if the queueing discipline held it. 0 if it held others
 * of this stamp, so that nothing is known of this one.
 */
static ALWAYS_INLINE int departed(const struct packet *p, struct onramp_stamps *s)
{
	struct departure d = { .address = p->source,
			       .stamp = p->tcp.echo,
			       .own = p->tcp.destination,
			       .other = p->tcp.source };
	const struct onramp_left *left = bpf_map_lookup_elem(&departures, &d);

	return !left || onramp_left_find(left, __builtin_bswap32(p->tcp.acknowledged),
					 &s->echo);
}

SEC("tcx/ingress") int report(struct __sk_buff *skb)
{
	struct onramp_stamps s = { .now = bpf_ktime_get_ns() };
	struct onramp_connection *connection, none = {};
	struct bpf_onramp_bounds found = {};
	struct packet p = {};
	void *socket;
	int reported;

	if (!read_packet(skb, &p) || (p.tcp.flags & (TCP_RST | TCP_ACK)) != TCP_ACK)
		return TCX_NEXT;
	if (p.tcp.flags & TCP_SYN ? !read_stamps_of_syn(skb, &p) : !has_stamps(&p.tcp))
		return TCX_NEXT;
	/*
	 * Before its data a connection's SYN shows the path, mostly without the
	 * queue that the data of all who begin with it make. What only receives
	 * has no paths, and no need to look further.
	 */
	if (!bpf_map_lookup_elem(&paths, &p.source) &&
	    (p.payload || !is_enabled(&p.source)))
		return TCX_NEXT;
	socket = socket_of(skb, &p);
	if (!socket)
		return TCX_NEXT;
	connection = read_stamps(socket, &p, &s);
	if (!connection && read_stamps_of_request(socket, &p, &s))
		connection = &none;
	if (connection && !path_to(&p.source, s.now))
		connection = 0;
	if (connection && !departed(&p, &s)) {
		COUNT(ignored);
		connection = 0;
	}
	if (connection) {
		found.address = p.source;
		reported = tell(&p.source, connection, &s, &found.window);
		if (reported == ONRAMP_TOLD)
			COUNT(reports);
		else if (reported == ONRAMP_ZEROED)
			COUNT(zeroed);
		else if (reported == ONRAMP_NOT_KEPT)
			COUNT(not_kept);
		else
			COUNT(ignored);
		if (found.window.upper_at)
			bpf_ringbuf_output(&bounds, &found, sizeof(found), 0);
	}
	bpf_sk_release(socket);
	return TCX_NEXT;
}

/* What user space knows better: called by it, so that the lock is kept. */
SEC("syscall") int set_rate(struct bpf_onramp_rate *known)
{
	struct bpf_onramp_address address = known->address;
	struct path *path = bpf_map_lookup_elem(&paths, &address);
	u64 now = bpf_ktime_get_ns();
	s32 rate = known->rate;
	u32 drift = known->drift;

	if (!path)
		return 1;
	bpf_spin_lock(&path->lock);
	onramp_clock_estimated(&path->path.clock, now, rate, drift);
	bpf_spin_unlock(&path->lock);
	return 0;
}

SEC("syscall") int set_difference(struct bpf_onramp_difference *known)
{
	struct bpf_onramp_address address = known->address;
	struct path *path = bpf_map_lookup_elem(&paths, &address);
	u64 now = bpf_ktime_get_ns();
	s64 ahead = known->ahead;
	u32 error = known->error;

	if (!path)
		return 1;
	bpf_spin_lock(&path->lock);
	onramp_path_told(&path->path, now, ahead, error);
	bpf_spin_unlock(&path->lock);
	return 0;
}

SEC("license") char terms[] = "Dual MIT/GPL";
