// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The switch port of the netns rig, as three programs for tc's clsact hook.
 *
 * "port" runs where the router hands a packet to its bottleneck's qdisc. It
 * marks CE by the backlog that is really there, read from the qdisc, and does
 * to packets what a case asks for: marks all, strips ECN, drops, delays some.
 * "arrivals" runs at a receiver, "departures" at a sender; they only count, so
 * that what TCP reports can be held against what was on the wire.
 */
#include "../../deploy/linux/bpf_marimo/kernel.h"

#define BPF_FUNC(number) ((void *)(number))

static long (*const bpf_skb_store_bytes)(void *skb, u32 offset,
					 const void *from, u32 length,
					 u64 flags) = BPF_FUNC(9);
static long (*const bpf_l3_csum_replace)(void *skb, u32 offset, u64 from,
					 u64 to, u64 size) = BPF_FUNC(10);
static u32 (*const bpf_get_prandom_u32)(void) = BPF_FUNC(7);
static long (*const bpf_skb_load_bytes)(const void *skb, u32 offset, void *to,
					u32 length) = BPF_FUNC(26);
static long (*const bpf_skb_ecn_set_ce)(void *skb) = BPF_FUNC(97);

extern void *bpf_cast_to_kern_ctx(void *ctx) SEC(".ksyms") __attribute__((weak));

#define TC_ACT_OK 0
#define TC_ACT_SHOT 2
#define XDP_PASS 2
#define ETH_HLEN 14
#define ECN_MASK 3u
#define ECN_CE 3u

/* Start of the fixed layout of uapi/linux/bpf.h. */
struct __sk_buff {
	u32 len;
	u32 pkt_type;
	u32 mark;
	u32 queue_mapping;
	u32 protocol;
	u32 vlan_present;
	u32 vlan_tci;
	u32 vlan_proto;
	u32 priority;
};

#pragma clang attribute push(__attribute__((preserve_access_index)),          \
			     apply_to = record)
struct gnet_stats_queue {
	u32 backlog;
};

struct Qdisc {
	struct gnet_stats_queue qstats;
};

struct net_device {
	struct Qdisc *qdisc;
};

struct sk_buff {
	struct net_device *dev;
};
#pragma clang attribute pop

/**
 * struct port - what the bottleneck does
 * @threshold: backlog in bytes from which packets are marked
 * @mark_all: mark every packet that can be marked
 * @strip: clear ECT, as a middlebox does that knows nothing of ECN: 1 of all
 *	packets, 2 of SYNs only
 * @drop: share of data packets dropped, of 65536
 * @delay: share of data packets sent through the slow class, of 65536
 * @slow_class: that class
 * @drop_ect: drop data that could be marked, but no SYN
 */
struct port {
	u32 threshold;
	u32 mark_all;
	u32 strip;
	u32 drop;
	u32 delay;
	u32 slow_class;
	u32 drop_ect;
};

/**
 * struct counts - what one place has seen, in packets of TCP over IPv4
 * @packets: all
 * @data: those with payload
 * @ect: data packets that could be marked when they came
 * @ce_data: data packets that left with CE
 * @ce_other: packets without payload that left with CE
 * @ece: packets with ECE that are no SYN
 * @cwr: packets with CWR that are no SYN
 * @stripped: packets of which ECN was cleared
 * @dropped: packets dropped by this program
 * @delayed: packets sent through the slow class
 * @backlog_max: largest backlog of the qdisc that a packet found, in bytes
 */
struct counts {
	u64 packets;
	u64 data;
	u64 ect;
	u64 ce_data;
	u64 ce_other;
	u64 ece;
	u64 cwr;
	u64 stripped;
	u64 dropped;
	u64 delayed;
	u64 backlog_max;
};

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
	MAP_NUMBER(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct port);
} ports SEC(".maps");

enum { AT_PORT, AT_RECEIVER, AT_SENDER, PLACES };

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
	MAP_NUMBER(max_entries, PLACES);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct counts);
} places SEC(".maps");

#define COUNT(field) __sync_fetch_and_add(&(field), 1)

struct packet {
	u32 data;
	u8 tos;
	u8 flags;
};

/* Whether it is TCP over IPv4, and if so what matters of it. */
static ALWAYS_INLINE int parse(struct __sk_buff *skb, struct packet *packet)
{
	u8 ip[20], tcp[14];
	u32 header, total;

	if (bpf_skb_load_bytes(skb, ETH_HLEN, ip, sizeof(ip)))
		return 0;
	if (ip[0] >> 4 != 4 || ip[9] != 6)
		return 0;
	header = (ip[0] & 15u) * 4;
	total = (u32)ip[2] << 8 | ip[3];
	if (bpf_skb_load_bytes(skb, ETH_HLEN + header, tcp, sizeof(tcp)))
		return 0;
	packet->data = total > header + (tcp[12] >> 4) * 4u;
	packet->tos = ip[1];
	packet->flags = tcp[13];
	return 1;
}

static ALWAYS_INLINE void count(struct counts *at, const struct packet *packet)
{
	COUNT(at->packets);
	if (packet->data)
		COUNT(at->data);
	if (!(packet->flags & 2u)) {
		if (packet->flags & 0x40u)
			COUNT(at->ece);
		if (packet->flags & 0x80u)
			COUNT(at->cwr);
	}
}

static ALWAYS_INLINE void count_ce(struct counts *at,
				   const struct packet *packet)
{
	if (packet->data)
		COUNT(at->ce_data);
	else
		COUNT(at->ce_other);
}

static ALWAYS_INLINE int chance(u32 share)
{
	return share && (bpf_get_prandom_u32() & 0xffffu) < share;
}

SEC("tc")
int port(struct __sk_buff *skb)
{
	struct sk_buff *kernel = bpf_cast_to_kern_ctx(skb);
	u32 backlog = kernel->dev->qdisc->qstats.backlog;
	u32 key = 0, at_port = AT_PORT;
	struct port *port = bpf_map_lookup_elem(&ports, &key);
	struct counts *at = bpf_map_lookup_elem(&places, &at_port);
	struct packet packet;

	if (!port || !at || !parse(skb, &packet))
		return TC_ACT_OK;
	count(at, &packet);
	if (backlog > at->backlog_max)
		at->backlog_max = backlog;
	if (packet.data && (packet.tos & ECN_MASK))
		COUNT(at->ect);

	if (packet.data && ((port->drop_ect && packet.tos & ECN_MASK) ||
			    chance(port->drop))) {
		COUNT(at->dropped);
		return TC_ACT_SHOT;
	}
	if (packet.data && chance(port->delay)) {
		COUNT(at->delayed);
		skb->priority = port->slow_class;
	}
	if ((packet.tos & ECN_MASK) &&
	    (port->strip == 1 || (port->strip == 2 && packet.flags & 2u))) {
		u8 tos = packet.tos & ~ECN_MASK;

		bpf_l3_csum_replace(skb, ETH_HLEN + 10, (u64)packet.tos << 8,
				    (u64)tos << 8, 2);
		bpf_skb_store_bytes(skb, ETH_HLEN + 1, &tos, 1, 0);
		COUNT(at->stripped);
		return TC_ACT_OK;
	}
	if (port->mark_all || backlog >= port->threshold)
		if (bpf_skb_ecn_set_ce(skb) == 1)
			count_ce(at, &packet);
	return TC_ACT_OK;
}

static ALWAYS_INLINE int watch(struct __sk_buff *skb, u32 place)
{
	struct counts *at = bpf_map_lookup_elem(&places, &place);
	struct packet packet;

	if (!at || !parse(skb, &packet))
		return TC_ACT_OK;
	count(at, &packet);
	if (packet.data && (packet.tos & ECN_MASK))
		COUNT(at->ect);
	if ((packet.tos & ECN_MASK) == ECN_CE)
		count_ce(at, &packet);
	return TC_ACT_OK;
}

SEC("tc")
int arrivals(struct __sk_buff *skb)
{
	return watch(skb, AT_RECEIVER);
}

SEC("tc")
int departures(struct __sk_buff *skb)
{
	return watch(skb, AT_SENDER);
}

/* With a program here a veth has its NAPI, which can have a thread. */
SEC("xdp")
int pass(void *frame)
{
	(void)frame;
	return XDP_PASS;
}

char _license[] SEC("license") = "Dual MIT/GPL";
