/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What a queueing discipline of BPF needs of the kernel (Linux 6.16): its
 * structures, as far as they are looked into, and its functions.
 */
#ifndef INCAST_BPF_QDISC_H
#define INCAST_BPF_QDISC_H

#include "kernel.h"

#define KPTR __attribute__((btf_type_tag("kptr")))
#define CONTAINS(type, member)                                                \
	__attribute__((btf_decl_tag("contains:" #type ":" #member)))
#define PRIVATE(name)                                                         \
	SEC(".data." #name) __attribute__((visibility("hidden"), aligned(8)))
#define CONTAINER(pointer, type, member)                                      \
	((type *)((void *)(pointer) - __builtin_offsetof(type, member)))

/* linux/netdevice.h, asm-generic/errno-base.h */
#define NET_XMIT_SUCCESS 0
#define NET_XMIT_DROP 1
#define ENOMEM 12
#define EBUSY 16
/* net/tcp_states.h */
#define TCP_TIME_WAIT 6
#define TCP_NEW_SYN_RECV 12

/* uapi/linux/bpf.h */
struct bpf_list_head {
	u64 opaque[2];
} __attribute__((aligned(8)));
struct bpf_list_node {
	u64 opaque[3];
} __attribute__((aligned(8)));
struct bpf_rb_root {
	u64 opaque[2];
} __attribute__((aligned(8)));
struct bpf_rb_node {
	u64 opaque[4];
} __attribute__((aligned(8)));

#pragma clang attribute push(__attribute__((preserve_access_index)),          \
			     apply_to = record)

struct qdisc_skb_head {
	u32 qlen;
};
struct gnet_stats_queue {
	u32 backlog;
	u32 drops;
};
struct Qdisc {
	u32 limit;
	struct qdisc_skb_head q;
	struct gnet_stats_queue qstats;
};
struct nlattr;
struct netlink_ext_ack;

struct sock_common {
	u8 skc_state;
};
struct sock {
	struct sock_common __sk_common;
};
struct sk_buff {
	struct sock *sk;
	char cb[48];
	u32 len;
	u32 data_len;
	u32 priority;
	u16 protocol;
	u8 *data;
};
/* Of the kernel's own making for the pointer to a pointer. */
struct bpf_sk_buff_ptr {
	struct sk_buff *skb;
};
struct qdisc_skb_cb {
	u32 pkt_len;
};

#pragma clang attribute pop

struct Qdisc_ops {
	int (*enqueue)(struct sk_buff *skb, struct Qdisc *sch,
		       struct sk_buff **to_free);
	struct sk_buff *(*dequeue)(struct Qdisc *sch);
	int (*init)(struct Qdisc *sch, struct nlattr *arg,
		    struct netlink_ext_ack *extack);
	void (*reset)(struct Qdisc *sch);
	void (*destroy)(struct Qdisc *sch);
	char id[16];
};

static ALWAYS_INLINE u32 packet_length(const struct sk_buff *skb)
{
	return ((const struct qdisc_skb_cb *)skb->cb)->pkt_len;
}

static long (*const bpf_probe_read_kernel)(void *to, u32 size,
					   const void *from) = (void *)113;
static long (*const bpf_loop)(u32 times, void *callback, void *context,
			      u64 flags) = (void *)181;
static void *(*const bpf_kptr_xchg)(void *at, void *with) = (void *)194;

#define KERNEL extern __attribute__((section(".ksyms")))

KERNEL void *bpf_obj_new_impl(u64 type, void *meta);
KERNEL void bpf_obj_drop_impl(void *object, void *meta);
KERNEL int bpf_list_push_back_impl(struct bpf_list_head *head,
				   struct bpf_list_node *node, void *meta,
				   u64 offset);
KERNEL struct bpf_list_node *bpf_list_pop_front(struct bpf_list_head *head);
KERNEL struct bpf_list_node *bpf_list_front(struct bpf_list_head *head);
KERNEL int bpf_rbtree_add_impl(struct bpf_rb_root *root, struct bpf_rb_node *node,
			       bool(less)(struct bpf_rb_node *a,
					  const struct bpf_rb_node *b),
			       void *meta, u64 offset);
KERNEL struct bpf_rb_node *bpf_rbtree_remove(struct bpf_rb_root *root,
					     struct bpf_rb_node *node);
KERNEL struct bpf_rb_node *bpf_rbtree_first(struct bpf_rb_root *root);
KERNEL void bpf_qdisc_skb_drop(struct sk_buff *skb,
			       struct bpf_sk_buff_ptr *to_free);
KERNEL void bpf_kfree_skb(struct sk_buff *skb);
KERNEL void bpf_qdisc_watchdog_schedule(struct Qdisc *sch, u64 expire,
					u64 slack);
KERNEL void bpf_qdisc_bstats_update(struct Qdisc *sch, const struct sk_buff *skb);

KERNEL void *bpf_rdonly_cast(const void *object, u32 type);

#define CAST(object, type)                                                    \
	((type *)bpf_rdonly_cast(object, __builtin_btf_type_id(*(type *)0, 1)))
#define NEW(type)                                                             \
	((type *)bpf_obj_new_impl(__builtin_btf_type_id(*(type *)0, 0), 0))
#define DROP(object) bpf_obj_drop_impl(object, 0)
#define bpf_list_push_back(head, node)                                        \
	bpf_list_push_back_impl(head, node, 0, 0)
#define bpf_rbtree_add(root, node, less)                                      \
	bpf_rbtree_add_impl(root, node, less, 0, 0)

#endif /* INCAST_BPF_QDISC_H */
