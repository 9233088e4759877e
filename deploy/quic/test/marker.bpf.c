// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A port that marks: for tc's clsact hook where packets go to the bottleneck's
 * qdisc. ECT(0) becomes CE while at least THRESHOLD bytes wait in that qdisc,
 * which is what RED with equal thresholds does on the length of the moment.
 *
 * Compiled without kernel headers; the few fields that it reads are found by
 * their BTF when it is loaded.
 */
typedef __UINT8_TYPE__ u8;
typedef __UINT32_TYPE__ u32;
typedef __UINT64_TYPE__ u64;

#define SEC(name) __attribute__((section(name), used))
#define HERE __attribute__((preserve_access_index))

#ifndef THRESHOLD
#define THRESHOLD 30000
#endif

#define TC_ACT_OK 0
#define BPF_MAP_TYPE_ARRAY 2
#define ETH_HLEN 14
#define ECN_MASK 3
#define ECT_0 2

/* Helpers by their numbers in uapi/linux/bpf.h. */
static void *(*const map_lookup)(void *map, const void *key) = (void *)1;
static long (*const load_bytes)(const void *skb, u32 offset, void *to,
				u32 length) = (void *)26;
static long (*const set_ce)(void *skb) = (void *)97;

extern void *bpf_cast_to_kern_ctx(void *context) SEC(".ksyms")
	__attribute__((weak));

struct gnet_stats_queue {
	u32 backlog;
} HERE;

struct Qdisc {
	struct gnet_stats_queue qstats;
} HERE;

struct net_device {
	struct Qdisc *qdisc;
} HERE;

struct sk_buff {
	struct net_device *dev;
} HERE;

struct __sk_buff;

/* Packets marked, and packets that could have been; GSO bundles count once. */
struct {
	int (*type)[BPF_MAP_TYPE_ARRAY];
	int (*max_entries)[2];
	u32 *key;
	u64 *value;
} counts SEC(".maps");

static inline __attribute__((always_inline)) void count(u32 index)
{
	u64 *value = map_lookup(&counts, &index);

	if (value)
		__sync_fetch_and_add(value, 1);
}

SEC("tc")
int mark(struct __sk_buff *skb)
{
	struct sk_buff *kernel = bpf_cast_to_kern_ctx(skb);
	u32 backlog = kernel->dev->qdisc->qstats.backlog;
	u8 ip[2];

	if (load_bytes(skb, ETH_HLEN, ip, sizeof(ip)) || ip[0] >> 4 != 4 ||
	    (ip[1] & ECN_MASK) != ECT_0)
		return TC_ACT_OK;
	count(1);
	if (backlog >= THRESHOLD && set_ce(skb) == 1)
		count(0);
	return TC_ACT_OK;
}

char _license[] SEC("license") = "Dual MIT/GPL";
