/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What both forms share: maps, reading of headers, the path of a packet. Who
 * includes it says what a packet is: PACKET_OF, and READ(skb, at, to, size),
 * which returns 0 if that was read.
 */
#ifndef INCAST_BPF_ONRAMP_COMMON_H
#define INCAST_BPF_ONRAMP_COMMON_H

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

/**
 * struct departure - packets that were held by the queueing discipline
 * @address: where they went
 * @stamp: their TSval, on the wire
 * @own: port of this host
 * @other: port of the peer
 */
struct departure {
	struct bpf_onramp_address address;
	u32 stamp;
	u16 own, other;
};

/*
 * When they left. Their stamp says when TCP sent them, and the queueing
 * discipline cannot write it anew. Packets of one burst have the same stamp and
 * leave one after another: an acknowledgement is of the one in which it ends, and
 * with segmentation offload that is not always where the packet ends. Of others
 * of that stamp nothing is known. There is room for twice as many stamps as
 * addresses; of one that had to make room the hold counts as the network's delay.
 */
struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_LRU_HASH);
	MAP_NUMBER(max_entries, 32768);
	MAP_TYPE(key, struct departure);
	MAP_TYPE(value, struct onramp_left);
} departures SEC(".maps");

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	MAP_NUMBER(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct bpf_onramp_counters);
} counters SEC(".maps");

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
#define STAMPS_OF_SYN __builtin_bswap32(0x0402080a) /* SACK permitted */
#define FRAGMENT __builtin_bswap16(0x3fff)

#define LOAD(skb, at, to) (READ(skb, at, to, sizeof(*(to))) == 0)

/*
 * Reads the headers. 0 for all but TCP without extension headers, whole.
 * Always inlined: its parts are on the stack of who calls it.
 */
static ALWAYS_INLINE int read_packet(PACKET_OF *skb, struct packet *p)
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
	    READ(skb, p->at, &p->tcp, 20))
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

/* Whether packets to an address may be held. */
static ALWAYS_INLINE int is_enabled(const struct bpf_onramp_address *address)
{
	struct bpf_onramp_prefix key = { .length = 128, .address = *address };

	return bpf_map_lookup_elem(&prefixes, &key) != 0;
}

/* The path to an address, if packets to it are held; made if need be. */
static ALWAYS_INLINE struct path *path_to(struct bpf_onramp_address *address,
					  u64 now)
{
	struct path *path = bpf_map_lookup_elem(&paths, address);
	const struct zeroes *zeroes;
	long error;

	if (path)
		return path;
	if (!is_enabled(address))
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

/* What is held, if its connection stamps as it has to: data, and a FIN. */
static ALWAYS_INLINE int is_data(const struct packet *p)
{
	return (p->payload || p->tcp.flags & TCP_FIN) &&
	       !(p->tcp.flags & (TCP_SYN | TCP_RST));
}

#endif /* INCAST_BPF_ONRAMP_COMMON_H */
