// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * On-Ramp as a queueing discipline (struct_ops, Linux 6.16; clang 17 for its
 * tags): packets to each destination wait in order, and their first one is asked
 * again each time when it may leave. A report thus moves what waits already,
 * which a time of departure, once written, does not.
 *
 * Maps are those of onramp.bpf.c, whose report() tells delays; depart() is not
 * attached. Who is to leave next is in a tree by that time. All else (control,
 * UDP, what is forwarded) waits in one more queue, without a rule, so that
 * without a pause packets leave in the order in which they came.
 */
#include "qdisc.h"

#define PACKET_OF struct sk_buff
/* Of the linear part, in which TCP makes its headers. */
#define READ(skb, at, to, size)                                               \
	((skb)->len - (skb)->data_len < (at) + (size) ?                        \
		 -1 :                                                          \
		 bpf_probe_read_kernel(to, size, (skb)->data + (at)))
#include "common.h"

/* As many packets as fq keeps. */
#define LIMIT 10000
/* Destinations that are asked in one call; the others a moment later. */
#define TURNS 16

/**
 * struct waiting_packet - a packet of a queue
 * @skb: the packet
 * @node: its place
 * @queued: when it came (ns)
 * @first: its first sequence number
 * @end: the sequence number behind it
 * @stamp: its TSval, as it is on the wire
 * @own: port of this host
 * @other: port of the peer
 */
struct waiting_packet {
	struct sk_buff KPTR *skb;
	struct bpf_list_node node;
	u64 queued;
	u32 first, end;
	u32 stamp;
	u16 own, other;
};

/* Packets to an address, those of no rule to none. */
struct queue {
	struct bpf_spin_lock lock;
	u32 length;
	struct bpf_list_head packets CONTAINS(waiting_packet, node);
};

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_HASH);
	MAP_NUMBER(max_entries, 16384);
	MAP_NUMBER(map_flags, BPF_F_NO_PREALLOC);
	MAP_TYPE(key, struct bpf_onramp_address);
	MAP_TYPE(value, struct queue);
} queues SEC(".maps");

/**
 * struct turn - a queue that is not empty
 * @node: its place
 * @address: of the queue
 * @when: its first packet is asked then (ns)
 * @queued: when that packet came (ns)
 * @held: packets have been held since it was empty
 */
struct turn {
	struct bpf_rb_node node;
	struct bpf_onramp_address address;
	u64 when;
	u64 queued;
	u32 held;
};

PRIVATE(turns) struct bpf_spin_lock turns_lock;
PRIVATE(turns) struct bpf_rb_root turns CONTAINS(turn, node);

static const struct bpf_onramp_address none;

/* The tree is one: so is the queueing discipline. Its address, or 0. */
PRIVATE(turns) u64 owner;

static bool sooner(struct bpf_rb_node *a, const struct bpf_rb_node *b)
{
	return CONTAINER(a, struct turn, node)->when <
	       CONTAINER((struct bpf_rb_node *)b, struct turn, node)->when;
}

/* Its turn comes at a time. Takes it. */
static ALWAYS_INLINE void await(struct turn *turn, u64 when)
{
	turn->when = when;
	bpf_spin_lock(&turns_lock);
	bpf_rbtree_add(&turns, &turn->node, sooner);
	bpf_spin_unlock(&turns_lock);
}

static ALWAYS_INLINE int is_none(const struct bpf_onramp_address *address)
{
	return !(address->words[0] | address->words[1] | address->words[2] |
		 address->words[3]);
}

static ALWAYS_INLINE struct queue *queue_of(const struct bpf_onramp_address *to)
{
	struct queue *queue = bpf_map_lookup_elem(&queues, to);
	struct queue empty = {};

	if (queue)
		return queue;
	bpf_map_update_elem(&queues, to, &empty, BPF_NOEXIST);
	return bpf_map_lookup_elem(&queues, to);
}

/* The path of a packet that its connection lets be held; else none. */
static ALWAYS_INLINE struct path *path_of(struct sk_buff *skb, u64 now,
					  struct packet *p)
{
	struct sock *sk = skb->sk;
	struct tcp_sock *tcp;
	struct path *path;

	if (!read_packet(skb, p) || !is_data(p) ||
	    (skb->priority & PRIORITIES) == PRIORITY_CONTROL)
		return 0;
	path = path_to(&p->destination, now);
	if (!path)
		return 0;
	if (!sk || sk->__sk_common.skc_state == TCP_NEW_SYN_RECV ||
	    sk->__sk_common.skc_state == TCP_TIME_WAIT) {
		COUNT(forwarded);
		return 0;
	}
	tcp = CAST(sk, struct tcp_sock);
	if (!BITS(tcp, tcp_usec_ts)) {
		COUNT(milliseconds);
		return 0;
	}
	if (!has_stamps(&p->tcp)) {
		COUNT(without_stamps);
		return 0;
	}
	COUNT(packets);
	return path;
}

SEC("struct_ops")
int enqueue(u64 *context)
{
	struct sk_buff *skb = (void *)context[0];
	struct Qdisc *sch = (void *)context[1];
	struct bpf_sk_buff_ptr *to_free = (void *)context[2];
	u64 now = bpf_ktime_get_ns();
	struct bpf_onramp_address to = {};
	struct packet read = {};
	struct waiting_packet *p;
	struct queue *queue;
	struct turn *turn = 0;
	u32 length = packet_length(skb);

	if (sch->q.qlen >= LIMIT)
		goto drop;
	p = NEW(struct waiting_packet);
	if (!p)
		goto drop;
	if (path_of(skb, now, &read))
		to = read.destination;
	p->queued = now;
	p->first = __builtin_bswap32(read.tcp.sequence);
	p->end = p->first + read.payload + !!(read.tcp.flags & TCP_FIN);
	p->stamp = read.tcp.value;
	p->own = read.tcp.source;
	p->other = read.tcp.destination;
	queue = queue_of(&to);
	if (!queue) {
		/* No room for one more: without a rule then. */
		to = none;
		queue = queue_of(&to);
	}
	if (!queue) {
		DROP(p);
		goto drop;
	}
	if (queue->length == 0) {
		turn = NEW(struct turn);
		if (!turn) {
			DROP(p);
			if (!is_none(&to))
				bpf_map_delete_elem(&queues, &to);
			goto drop;
		}
		turn->address = to;
		turn->queued = now;
		turn->held = 0;
	}
	skb = bpf_kptr_xchg(&p->skb, skb);
	if (skb)
		bpf_qdisc_skb_drop(skb, to_free);
	bpf_spin_lock(&queue->lock);
	queue->length++;
	bpf_list_push_back(&queue->packets, &p->node);
	bpf_spin_unlock(&queue->lock);
	if (turn)
		await(turn, now);
	sch->q.qlen++;
	sch->qstats.backlog += length;
	return NET_XMIT_SUCCESS;
drop:
	sch->qstats.drops++;
	bpf_qdisc_skb_drop(skb, to_free);
	return NET_XMIT_DROP;
}

/*
 * The first turn, if it has come; else the timer is set for it. Whether the
 * packet may leave is another matter.
 */
static ALWAYS_INLINE struct turn *next_turn(struct Qdisc *sch, u64 now)
{
	struct bpf_rb_node *node;
	u64 when;

	bpf_spin_lock(&turns_lock);
	node = bpf_rbtree_first(&turns);
	if (!node) {
		bpf_spin_unlock(&turns_lock);
		return 0;
	}
	when = CONTAINER(node, struct turn, node)->when;
	if (when > now) {
		bpf_spin_unlock(&turns_lock);
		bpf_qdisc_watchdog_schedule(sch, when, 0);
		return 0;
	}
	node = bpf_rbtree_remove(&turns, node);
	bpf_spin_unlock(&turns_lock);
	return node ? CONTAINER(node, struct turn, node) : 0;
}

/* When the first packet of a path may leave; if that is now, it does. */
NOINLINE u64 ask(const struct bpf_onramp_address *address, u64 now, u64 queued,
		 u32 held)
{
	const struct onramp_tcp_config *c = bpf_map_lookup_elem(&config, &first);
	struct path *path;
	u64 when;

	if (!address)
		return now;
	path = bpf_map_lookup_elem(&paths, address);
	if (!c || !path)
		return now;
	bpf_spin_lock(&path->lock);
	when = onramp_path_release(&path->path, c, now, queued);
	if (when <= now)
		onramp_path_leave(&path->path, c, now, held ? queued : now);
	bpf_spin_unlock(&path->lock);
	return when;
}

static const struct onramp_left nothing;

/* A packet that was held leaves: for who reads its acknowledgement. */
static ALWAYS_INLINE void note_departure(const struct bpf_onramp_address *to,
					 const struct waiting_packet *p, u64 now)
{
	struct departure departure = { .address = *to,
				       .stamp = p->stamp,
				       .own = p->own,
				       .other = p->other };
	struct onramp_left *left = bpf_map_lookup_elem(&departures, &departure);
	struct onramp_span span = { .first = p->first,
				    .end = p->end,
				    .at = (u32)(now / ONRAMP_MICROSECOND) };

	COUNT(held);
	if (!left) {
		bpf_map_update_elem(&departures, &departure, &nothing, BPF_NOEXIST);
		left = bpf_map_lookup_elem(&departures, &departure);
	}
	if (left)
		onramp_left_add(left, &span);
}

/* Takes the first packet of a queue. */
static ALWAYS_INLINE struct sk_buff *take(struct queue *queue,
					  const struct bpf_onramp_address *to,
					  u64 now, u32 held)
{
	struct bpf_list_node *node;
	struct waiting_packet *p;
	struct sk_buff *skb = 0;

	bpf_spin_lock(&queue->lock);
	node = bpf_list_pop_front(&queue->packets);
	if (node)
		queue->length--;
	bpf_spin_unlock(&queue->lock);
	if (!node)
		return 0;
	p = CONTAINER(node, struct waiting_packet, node);
	if (held)
		note_departure(to, p, now);
	skb = bpf_kptr_xchg(&p->skb, skb);
	DROP(p);
	return skb;
}

/* When the first packet of a queue came. */
static ALWAYS_INLINE u64 first_queued(struct queue *queue, u64 now)
{
	struct bpf_list_node *node;
	u64 queued = now;

	bpf_spin_lock(&queue->lock);
	node = bpf_list_front(&queue->packets);
	if (node)
		queued = CONTAINER(node, struct waiting_packet, node)->queued;
	bpf_spin_unlock(&queue->lock);
	return queued;
}

SEC("struct_ops")
struct sk_buff *dequeue(u64 *context)
{
	struct Qdisc *sch = (void *)context[0];
	u64 now = bpf_ktime_get_ns(), when;
	struct bpf_onramp_address to;
	struct sk_buff *skb = 0;
	struct queue *queue;
	struct turn *turn;
	int i;

	for (i = 0; i < TURNS; i++) {
		turn = next_turn(sch, now);
		if (!turn)
			return 0;
		to = turn->address;
		queue = bpf_map_lookup_elem(&queues, &to);
		if (!queue) {
			DROP(turn);
			continue;
		}
		when = is_none(&to) ? now : ask(&to, now, turn->queued, turn->held);
		if (when > now) {
			turn->held = 1;
			await(turn, when);
			continue;
		}
		skb = take(queue, &to, now, turn->held);
		if (queue->length) {
			/* What waited behind one that was held was held, too. */
			turn->queued = first_queued(queue, now);
			await(turn, turn->queued);
		} else {
			DROP(turn);
			if (!is_none(&to))
				bpf_map_delete_elem(&queues, &to);
		}
		if (!skb)
			continue;
		sch->qstats.backlog -= packet_length(skb);
		sch->q.qlen--;
		bpf_qdisc_bstats_update(sch, skb);
		return skb;
	}
	bpf_qdisc_watchdog_schedule(sch, now, 0);
	return 0;
}

SEC("struct_ops")
int init(u64 *context)
{
	struct Qdisc *sch = (void *)context[0];

	if (owner)
		return -EBUSY;
	owner = (u64)sch;
	sch->limit = LIMIT;
	/* Of packets without a rule, so that there is one for sure. */
	return queue_of(&none) ? 0 : -ENOMEM;
}

/* Frees a packet, or a queue that has none any more; 1 if there is neither. */
static long discard(u64 number, void *unused)
{
	struct bpf_onramp_address to;
	struct bpf_rb_node *node;
	struct queue *queue;
	struct sk_buff *skb;
	struct turn *turn;

	(void)number;
	(void)unused;
	bpf_spin_lock(&turns_lock);
	node = bpf_rbtree_first(&turns);
	if (!node) {
		bpf_spin_unlock(&turns_lock);
		return 1;
	}
	node = bpf_rbtree_remove(&turns, node);
	bpf_spin_unlock(&turns_lock);
	if (!node)
		return 1;
	turn = CONTAINER(node, struct turn, node);
	to = turn->address;
	queue = bpf_map_lookup_elem(&queues, &to);
	skb = queue ? take(queue, &to, 0, 0) : 0;
	if (skb) {
		bpf_kfree_skb(skb);
		await(turn, 0);
	} else {
		DROP(turn);
		if (!is_none(&to))
			bpf_map_delete_elem(&queues, &to);
	}
	return 0;
}

SEC("struct_ops")
void reset(u64 *context)
{
	struct Qdisc *sch = (void *)context[0];

	if (owner != (u64)sch)
		return;
	bpf_loop(LIMIT * 2, discard, 0, 0);
	sch->q.qlen = 0;
	sch->qstats.backlog = 0;
}

SEC("struct_ops")
void destroy(u64 *context)
{
	/* One that was refused is destroyed, too. */
	if (owner == context[0])
		owner = 0;
}

SEC(".struct_ops.link")
struct Qdisc_ops onramp = {
	.enqueue = (void *)enqueue,
	.dequeue = (void *)dequeue,
	.init = (void *)init,
	.reset = (void *)reset,
	.destroy = (void *)destroy,
	.id = "onramp",
};

SEC("license") char terms[] = "Dual MIT/GPL";
