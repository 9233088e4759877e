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
#include "bpf_onramp.h"

struct path {
	struct bpf_spin_lock lock;
	u32 unused;
	struct onramp_path path;
};

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_HASH);
	MAP_NUMBER(max_entries, 16384);
	MAP_NUMBER(map_flags, BPF_F_NO_PREALLOC);
	MAP_TYPE(key, struct bpf_onramp_address);
	MAP_TYPE(value, struct path);
} paths SEC(".maps");

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_LPM_TRIE);
	MAP_NUMBER(max_entries, 1024);
	MAP_NUMBER(map_flags, BPF_F_NO_PREALLOC);
	MAP_TYPE(key, struct bpf_onramp_prefix);
	MAP_TYPE(value, u32);
} prefixes SEC(".maps");

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
	MAP_NUMBER(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct onramp_tcp_config);
} config SEC(".maps");

/*
 * What a path is at first: zeroes, too many for the stack. Not as a path, as
 * the verifier takes no lock for a value to be copied.
 */
struct zeroes {
	u8 octets[sizeof(struct path)];
};

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
	MAP_NUMBER(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct zeroes);
} fresh SEC(".maps");

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_SK_STORAGE);
	MAP_NUMBER(max_entries, 0);
	MAP_NUMBER(map_flags, BPF_F_NO_PREALLOC);
	MAP_TYPE(key, int);
	MAP_TYPE(value, struct onramp_connection);
} connections SEC(".maps");

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	MAP_NUMBER(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct bpf_onramp_counters);
} counters SEC(".maps");

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_RINGBUF);
	MAP_NUMBER(max_entries, 1 << 18);
} bounds SEC(".maps");

static const u32 first;

/* When addresses that are not used any more were looked for (ns). */
static u64 looked;

#define COUNT(what)                                                           \
	do {                                                                  \
		struct bpf_onramp_counters *counted =                         \
			bpf_map_lookup_elem(&counters, &first);               \
		if (counted)                                                  \
			counted->what++;                                      \
	} while (0)

/* Packets that fq does not keep (linux/pkt_sched.h). */
#define PRIORITIES 15u
#define PRIORITY_CONTROL 7u
/* No segment lies further from what is next (octets). */
#define WINDOW_MAX (1u << 26)
#define EEXIST 17

#define TCP_FIN 1
#define TCP_SYN 2
#define TCP_RST 4
#define TCP_ACK 16

/* RFC 9293, 3.1, with the option that Linux puts first if it puts any. */
struct tcp {
	u16 source, destination;
	u32 sequence, acknowledged;
	u8 length, flags;
	u16 window, checksum, urgent;
	u32 option, value, echo;
};

/**
 * struct packet - what was found in the headers of a packet
 * @source: where it is from
 * @destination: where it is to go
 * @tcp: header of TCP
 * @at: where that begins
 * @payload: octets behind it
 * @is_six: it is of IPv6
 */
struct packet {
	struct bpf_onramp_address source, destination;
	struct tcp tcp;
	u32 at;
	u32 payload;
	u32 is_six;
};

#define MAPPED __builtin_bswap32(0xffff)
#define STAMPS __builtin_bswap32(0x0101080a) /* two of padding; RFC 7323, 3.2 */
#define FRAGMENT __builtin_bswap16(0x3fff)

#define LOAD(skb, at, to) (bpf_skb_load_bytes(skb, at, to, sizeof(*(to))) == 0)

/*
 * Reads the headers. 0 for all but TCP without extension headers, whole.
 * Always inlined: its parts are on the stack of who calls it.
 */
static ALWAYS_INLINE int read_packet(struct __sk_buff *skb, struct packet *p)
{
	struct {
		u8 version, class;
		u16 length, id, fragment;
		u8 hops, protocol;
		u16 checksum;
		u32 source, destination;
	} four;
	struct {
		u32 version;
		u16 length;
		u8 next, hops;
		struct bpf_onramp_address source, destination;
	} six;
	u32 header;

	p->is_six = 0;
	if (skb->protocol == __builtin_bswap16(0x0800)) {
		if (!LOAD(skb, ETHERNET, &four) || four.protocol != IPPROTO_TCP ||
		    four.fragment & FRAGMENT)
			return 0;
		p->at = ETHERNET + (four.version & 15u) * 4;
		p->source = (struct bpf_onramp_address){ { 0, 0, MAPPED, four.source } };
		p->destination = (struct bpf_onramp_address){
			{ 0, 0, MAPPED, four.destination }
		};
	} else if (skb->protocol == __builtin_bswap16(0x86dd)) {
		if (!LOAD(skb, ETHERNET, &six) || six.next != IPPROTO_TCP)
			return 0;
		p->at = ETHERNET + sizeof(six);
		p->source = six.source;
		p->destination = six.destination;
		p->is_six = 1;
	} else {
		return 0;
	}
	/* Without an option it is shorter than what is read at once. */
	p->tcp.option = 0;
	if (!LOAD(skb, p->at, &p->tcp) &&
	    bpf_skb_load_bytes(skb, p->at, &p->tcp, 20))
		return 0;
	header = p->at + (p->tcp.length >> 4) * 4u;
	p->payload = skb->len > header ? skb->len - header : 0;
	return 1;
}

static ALWAYS_INLINE int has_stamps(const struct tcp *tcp)
{
	return tcp->length >> 4 >= 8 && tcp->option == STAMPS;
}

/* Deletes an address that nothing has been sent to for a while. */
static long forget(void *map, const void *key, struct path *path, u64 *now)
{
	u64 used = onramp_later(path->path.last, path->path.reported);

	if (*now > used && *now - used > ONRAMP_IDLE)
		bpf_map_delete_elem(map, key);
	return 0;
}

/* The path to an address, if packets to it are held; made if need be. */
static ALWAYS_INLINE struct path *path_to(struct bpf_onramp_address *address,
					  u64 now)
{
	struct path *path = bpf_map_lookup_elem(&paths, address);
	struct bpf_onramp_prefix key = { .length = 128, .address = *address };
	const struct zeroes *zeroes;
	long error;

	if (path)
		return path;
	if (!bpf_map_lookup_elem(&prefixes, &key))
		return 0;
	zeroes = bpf_map_lookup_elem(&fresh, &first);
	if (!zeroes)
		return 0;
	/* Another processor may have made it meanwhile. */
	error = bpf_map_update_elem(&paths, address, zeroes, BPF_NOEXIST);
	if (error && error != -EEXIST) {
		COUNT(full);
		/* Makes room for the next one; once in a while, as it takes long. */
		if (now > looked + ONRAMP_IDLE) {
			looked = now;
			bpf_for_each_map_elem(&paths, forget, &now, 0);
		}
	}
	return bpf_map_lookup_elem(&paths, address);
}

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

	if (!c || !read_packet(skb, &p) ||
	    (!p.payload && !(p.tcp.flags & TCP_FIN)) ||
	    p.tcp.flags & (TCP_SYN | TCP_RST) ||
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
 * What stamps tell, if this acknowledges new data: a duplicate repeats the echo
 * of an older packet.
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
	    (s32)(acknowledged - tcp->snd_nxt) > 0 ||
	    beside + WINDOW_MAX > 2 * WINDOW_MAX)
		return 0;
	s->value = __builtin_bswap32(p->tcp.value);
	s->echo = __builtin_bswap32(p->tcp.echo) - tcp->tsoffset;
	return bpf_sk_storage_get(&connections, socket, 0,
				  BPF_SK_STORAGE_GET_F_CREATE);
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

SEC("tcx/ingress") int report(struct __sk_buff *skb)
{
	struct onramp_stamps s = { .now = bpf_ktime_get_ns() };
	struct onramp_connection *connection;
	struct bpf_onramp_bounds found = {};
	struct packet p = {};
	void *socket;
	int reported;

	if (!read_packet(skb, &p) || !has_stamps(&p.tcp) ||
	    (p.tcp.flags & (TCP_SYN | TCP_RST | TCP_ACK)) != TCP_ACK ||
	    !bpf_map_lookup_elem(&paths, &p.source))
		return TCX_NEXT;
	socket = socket_of(skb, &p);
	if (!socket)
		return TCX_NEXT;
	connection = read_stamps(socket, &p, &s);
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

SEC("license") char terms[] = "Dual MIT/GPL";
