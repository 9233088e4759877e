/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The kernel's structures, as far as bpf_marimo looks into them, and the
 * helpers that it calls.
 *
 * Only names and types matter here: the loader moves every access to where the
 * running kernel's BTF has the field (CO-RE), so nothing is generated from one
 * kernel and a build needs neither that kernel nor its headers.
 */
#ifndef INCAST_BPF_KERNEL_H
#define INCAST_BPF_KERNEL_H

#include "../bpf.h"

/* uapi/linux/bpf.h */
#define BPF_MAP_TYPE_ARRAY 2
#define BPF_MAP_TYPE_PERCPU_ARRAY 6
#define BPF_MAP_TYPE_ARRAY_OF_MAPS 12
#define BPF_MAP_TYPE_RINGBUF 27

static long (*const bpf_setsockopt)(void *socket, int level, int name,
				    void *value, int length) = (void *)49;
static long (*const bpf_tcp_send_ack)(void *socket, u32 rcv_nxt) =
	(void *)116;
static void *(*const bpf_ringbuf_reserve)(void *ring, u64 size, u64 flags) =
	(void *)131;
static u64 (*const bpf_jiffies64)(void) = (void *)118;
static void (*const bpf_ringbuf_submit)(void *record, u64 flags) =
	(void *)132;

#pragma clang attribute push(__attribute__((preserve_access_index)),          \
			     apply_to = record)

struct ns_common {
	u32 inum;
};

struct netns_ipv4 {
	u8 sysctl_tcp_slow_start_after_idle;
	u8 sysctl_tcp_ecn_fallback;
};

struct net {
	struct ns_common ns;
	struct netns_ipv4 ipv4;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct in6_addr {
	union {
		u8 u6_addr8[16];
		u32 u6_addr32[4];
	} in6_u;
};

struct sock_common {
	u32 skc_daddr;
	u32 skc_rcv_saddr;
	u16 skc_dport;
	u16 skc_num;
	u16 skc_family;
	volatile u8 skc_state;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};

struct sock {
	struct sock_common __sk_common;
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
	u32 sk_pacing_status;
	u8 sk_pacing_shift;
};

struct inet_sock {
	struct sock sk;
};

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	u32 icsk_rto;
	u8 icsk_ca_state : 5;
	struct {
		u8 pending;
	} icsk_ack;
	u64 icsk_ca_priv[13];
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u32 mss_cache;
	u32 snd_cwnd;
	u32 snd_cwnd_clamp;
	u32 snd_ssthresh;
	u32 packets_out;
	u32 max_packets_out;
	u32 retrans_out;
	u32 sacked_out;
	u32 lost_out;
	u32 snd_una;
	u32 snd_nxt;
	u32 data_segs_out;
	u32 rcv_nxt;
	u32 rcv_wup;
	u32 srtt_us;
	u32 delivered;
	u32 delivered_ce;
	u32 lsndtime;
	u32 total_retrans;
	u8 is_cwnd_limited : 1;
	u8 ecn_flags;
};

struct rate_sample {
	int losses;
};

#pragma clang attribute pop

enum tcp_ca_event {
	CA_EVENT_TX_START,
	CA_EVENT_CWND_RESTART,
	CA_EVENT_COMPLETE_CWR,
	CA_EVENT_LOSS,
	CA_EVENT_ECN_NO_CE,
	CA_EVENT_ECN_IS_CE,
};

/*
 * Members are found by name, not by place; the loader refuses one that the
 * kernel lacks. It takes away the first, which kernels before 7.1 have not.
 */
struct tcp_congestion_ops {
	void (*cwnd_event_tx_start)(struct sock *sk);
	u32 (*ssthresh)(struct sock *sk);
	void (*set_state)(struct sock *sk, u8 new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event ev);
	u32 (*min_tso_segs)(struct sock *sk);
	void (*cong_control)(struct sock *sk, u32 ack, int flag,
			     const struct rate_sample *rs);
	u32 (*undo_cwnd)(struct sock *sk);
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
	char name[16];
	u32 flags;
};

#define TCP_CONG_NEEDS_ECN 2u
#define TCP_ECN_OK 1u /* RFC 3168 was negotiated */
#define TCP_ECN_DEMAND_CWR 4u
#define TCP_ECN_MODE_ACCECN 16u /* AccECN was; no bit of older kernels */

#define TCP_ESTABLISHED 1
#define TCP_SYN_SENT 2
#define TCP_CLOSE 7
#define TCP_LISTEN 10
#define ICSK_ACK_TIMER 2u
#define ICSK_ACK_NOW 16u
#define AF_INET 2
#define SOL_TCP 6
#define TCP_CONGESTION 13
#define SK_PACING_NONE 0
#define SK_PACING_NEEDED 1

#endif /* INCAST_BPF_KERNEL_H */
