/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The kernel's structures, as far as bpf_onramp looks into them, and the
 * helpers that it calls. See ../bpf_marimo/kernel.h.
 */
#ifndef INCAST_BPF_ONRAMP_KERNEL_H
#define INCAST_BPF_ONRAMP_KERNEL_H

#include "../bpf.h"

/* uapi/linux/bpf.h */
#define BPF_MAP_TYPE_HASH 1
#define BPF_MAP_TYPE_ARRAY 2
#define BPF_MAP_TYPE_PERCPU_ARRAY 6
#define BPF_MAP_TYPE_LRU_HASH 9
#define BPF_MAP_TYPE_LPM_TRIE 11
#define BPF_MAP_TYPE_SK_STORAGE 24
#define BPF_MAP_TYPE_RINGBUF 27
#define BPF_F_NO_PREALLOC 1
#define BPF_NOEXIST 1
#define BPF_F_CURRENT_NETNS (-1)
#define BPF_SK_STORAGE_GET_F_CREATE 1
#define BPF_SKB_TSTAMP_DELIVERY_MONO 1
#define TCX_NEXT (-1)

struct bpf_spin_lock {
	u32 val;
};

/* uapi: its layout is the same in all kernels. */
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
	u32 ingress_ifindex;
	u32 ifindex;
	u32 tc_index;
	u32 cb[5];
	u32 hash;
	u32 tc_classid;
	u32 data;
	u32 data_end;
	u32 napi_id;
	u32 family;
	u32 remote_ip4;
	u32 local_ip4;
	u32 remote_ip6[4];
	u32 local_ip6[4];
	u32 remote_port;
	u32 local_port;
	u32 data_meta;
	u64 flow_keys;
	u64 tstamp;
	u32 wire_len;
	u32 gso_segs;
	void *sk;
	u32 gso_size;
	u8 tstamp_type;
};

struct bpf_sock_tuple {
	union {
		struct {
			u32 saddr;
			u32 daddr;
			u16 sport;
			u16 dport;
		} ipv4;
		struct {
			u32 saddr[4];
			u32 daddr[4];
			u16 sport;
			u16 dport;
		} ipv6;
	};
};

static long (*const bpf_map_update_elem)(void *map, const void *key,
					 const void *value, u64 flags) =
	(void *)2;
static long (*const bpf_map_delete_elem)(void *map, const void *key) =
	(void *)3;
static long (*const bpf_skb_store_bytes)(struct __sk_buff *skb, u32 offset,
					 const void *from, u32 length,
					 u64 flags) = (void *)9;
static long (*const bpf_l4_csum_replace)(struct __sk_buff *skb, u32 offset,
					 u64 from, u64 to, u64 flags) =
	(void *)11;
static long (*const bpf_skb_load_bytes)(const struct __sk_buff *skb, u32 offset,
					void *to, u32 length) = (void *)26;
static long (*const bpf_sk_release)(void *socket) = (void *)86;
static long (*const bpf_spin_lock)(struct bpf_spin_lock *lock) = (void *)93;
static long (*const bpf_spin_unlock)(struct bpf_spin_lock *lock) = (void *)94;
static void *(*const bpf_skc_lookup_tcp)(struct __sk_buff *skb,
					 struct bpf_sock_tuple *tuple,
					 u32 length, u64 netns, u64 flags) =
	(void *)99;
static void *(*const bpf_sk_storage_get)(void *map, void *socket, void *value,
					 u64 flags) = (void *)107;
static long (*const bpf_ringbuf_output)(void *ring, void *data, u64 length,
					u64 flags) = (void *)130;
static void *(*const bpf_skc_to_tcp_sock)(void *socket) = (void *)137;
static void *(*const bpf_skc_to_tcp_request_sock)(void *socket) = (void *)139;
static long (*const bpf_for_each_map_elem)(void *map, void *callback,
					   void *context, u64 flags) =
	(void *)164;
static long (*const bpf_skb_set_tstamp)(struct __sk_buff *skb, u64 time,
					u32 type) = (void *)192;

#pragma clang attribute push(__attribute__((preserve_access_index)),          \
			     apply_to = record)

struct tcp_sock {
	u32 snd_una;
	u32 snd_nxt;
	u32 rcv_nxt;
	u32 tsoffset;
	u8 tcp_usec_ts : 1;
};
struct tcp_request_sock {
	bool req_usec_ts;
	u32 snt_isn;
	u32 ts_off;
	u32 rcv_nxt;
};

#pragma clang attribute pop

#define IPPROTO_TCP 6
#define ETHERNET 14 /* octets of its header; onrampctl takes no other link */

#endif /* INCAST_BPF_ONRAMP_KERNEL_H */
