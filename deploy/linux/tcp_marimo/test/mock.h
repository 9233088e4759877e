/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * As much of the kernel as tcp_marimo.c touches, in user space. Every kernel
 * header that it includes is this file. What a mock can check it checks: reads
 * of RCU pointers outside of a reader, windows of zero, unbalanced locks.
 */
#ifndef MOCK_H
#define MOCK_H

#include <ctype.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef unsigned int __u32;
typedef unsigned short __u16;

extern unsigned int mock_failures;
void mock_fail(const char *file, int line, const char *what);

#define CHECK(condition) \
	((condition) ? (void)0 : mock_fail(__FILE__, __LINE__, #condition))

/* Language. */
#define __init
#define __exit
#define __rcu
#define __read_mostly
#define __printf(a, b) __attribute__((format(printf, a, b)))
#define likely(x) (x)
#define unlikely(x) (x)
#define min(a, b) ({ __typeof__(a) _a = (a); __typeof__(b) _b = (b); \
		     _a < _b ? _a : _b; })
#define max(a, b) ({ __typeof__(a) _a = (a); __typeof__(b) _b = (b); \
		     _a > _b ? _a : _b; })
#define min_t(type, a, b) min((type)(a), (type)(b))
#define max_t(type, a, b) max((type)(a), (type)(b))
#define READ_ONCE(x) (*(volatile __typeof__(x) *)&(x))
#define WRITE_ONCE(x, value) (*(volatile __typeof__(x) *)&(x) = (value))
#define BUILD_BUG_ON(condition) _Static_assert(!(condition), #condition)
#define U32_MAX 0xffffffffu
#define IS_ENABLED(option) 1
#define PAGE_SIZE 4096
#define cmpxchg(at, old, new) __sync_val_compare_and_swap(at, old, new)

/* Errors. */
#define EINVAL 22
#define ENOMEM 12
#define EOPNOTSUPP 95

/* A kernel that tests make newer. */
extern int mock_kernel;
#define KERNEL_VERSION(major, minor, patch) ((major) << 16 | (minor) << 8 | (patch))
#define LINUX_VERSION_CODE mock_kernel

/* Text. */
#define strstarts(text, start) (strncmp(text, start, strlen(start)) == 0)
int kstrtou32(const char *text, unsigned int base, u32 *result);
int match_string(const char *const *list, size_t count, const char *text);
int vscnprintf(char *buffer, size_t size, const char *format, va_list list);

/* Log. */
extern char mock_log[4096];
void mock_print(const char *format, ...) __printf(1, 2);
#define pr_err(...) mock_print(__VA_ARGS__)
#define pr_warn_ratelimited(...) mock_print(__VA_ARGS__)

/* Memory and RCU: what is freed by RCU is freed after a grace period. */
#define GFP_KERNEL 0
struct rcu_head {
	void *what;
	struct rcu_head *next;
};
extern int mock_readers, mock_fail_allocations, mock_locks;
void *kmalloc(size_t size, int flags);
void kfree(const void *what);
void mock_kfree_rcu(void *what, struct rcu_head *head);
void mock_grace_period(void);
#define rcu_read_lock() ((void)mock_readers++)
#define rcu_read_unlock() ((void)mock_readers--)
#define rcu_dereference(p) (mock_check_reader(__FILE__, __LINE__), (p))
#define rcu_dereference_protected(p, held) ((void)(held), (p))
#define RCU_INIT_POINTER(p, value) ((p) = (value))
#define rcu_assign_pointer(p, value) ((p) = (value))
#define kfree_rcu(what, head) mock_kfree_rcu(what, &(what)->head)
void mock_check_reader(const char *file, int line);

struct mutex {
	int held;
};
#define DEFINE_MUTEX(name) struct mutex name
void mutex_lock(struct mutex *mutex);
void mutex_unlock(struct mutex *mutex);
#define lockdep_is_held(mutex) ((mutex)->held)

typedef struct {
	int value;
} atomic_t;
#define atomic_inc(a) ((void)(a)->value++)
#define atomic_dec(a) ((void)(a)->value--)
#define atomic_read(a) ((a)->value)
#define atomic_set(a, to) ((void)((a)->value = (to)))

/* Modules and sysfs. */
struct kobject {
	int files;
};
struct module_kobject {
	struct kobject kobj;
};
struct module {
	struct module_kobject mkobj;
};
extern struct module mock_module;
extern int mock_fail_files, mock_fail_registration;
#define THIS_MODULE (&mock_module)
#define module_param(name, type, mode)
#define MODULE_PARM_DESC(name, text)
#define MODULE_AUTHOR(text)
#define MODULE_DESCRIPTION(text)
#define MODULE_VERSION(text)
#define MODULE_LICENSE(text) \
	_Static_assert(__builtin_strcmp(text, "Dual MIT/GPL") == 0, "licence")
#define module_init(function) int (*mock_init)(void) = function
#define module_exit(function) void (*mock_exit)(void) = function
extern int (*mock_init)(void);
extern void (*mock_exit)(void);

struct attribute {
	const char *name;
	int mode;
};
#ifdef MARIMO_HAVE_CONST_ATTRIBUTE
#define MOCK_ATTRIBUTE const struct module_attribute
#else
#define MOCK_ATTRIBUTE struct module_attribute
#endif
struct module_attribute {
	struct attribute attr;
	ssize_t (*show)(MOCK_ATTRIBUTE *a, struct module_kobject *k,
			char *page);
	ssize_t (*store)(MOCK_ATTRIBUTE *a, struct module_kobject *k,
			 const char *text, size_t length);
};
#define __ATTR_RW(name) { { #name, 0644 }, name##_show, name##_store }
#define __ATTR_RO(name) { { #name, 0444 }, name##_show, NULL }
int sysfs_create_files(struct kobject *kobject, const struct attribute **list);
void sysfs_remove_files(struct kobject *kobject, const struct attribute **list);
int sysfs_emit(char *page, const char *format, ...) __printf(2, 3);
int sysfs_emit_at(char *page, int at, const char *format, ...) __printf(3, 4);

/* Sockets. */
#define TCP_ESTABLISHED 1
#define TCP_SYN_SENT 2
#define TCP_SYN_RECV 3
#define TCP_CLOSE 7
#define TCP_LISTEN 10
#define TCP_INFINITE_SSTHRESH 0x7fffffff
#define ICSK_CA_PRIV_SIZE 104
#define ICSK_ACK_TIMER 2
#define ICSK_ACK_NOW 16
#define TCP_CONG_NON_RESTRICTED 1
#define TCP_CONG_NEEDS_ECN 2
#define TCP_ECN_OK 1
#define TCP_ECN_QUEUE_CWR 2
#define TCP_ECN_DEMAND_CWR 4
#define MOCK_ECN_ACCECN 16
#define INET_DIAG_VEGASINFO 3
#define INET_DIAG_DCTCPINFO 9

enum { SK_PACING_NONE, SK_PACING_NEEDED, SK_PACING_FQ };
enum tcp_ca_state {
	TCP_CA_Open, TCP_CA_Disorder, TCP_CA_CWR, TCP_CA_Recovery, TCP_CA_Loss,
};
enum tcp_ca_event {
	CA_EVENT_TX_START, CA_EVENT_CWND_RESTART, CA_EVENT_COMPLETE_CWR,
	CA_EVENT_LOSS, CA_EVENT_ECN_NO_CE, CA_EVENT_ECN_IS_CE,
};

struct net {
	struct {
		int sysctl_tcp_slow_start_after_idle;
		int sysctl_tcp_ecn_fallback;
	} ipv4;
};

struct sock {
	unsigned short sk_family;
	int sk_state;
	int sk_pacing_status;
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
	struct in6_addr sk_v6_rcv_saddr;
	struct in6_addr sk_v6_daddr;
};

struct inet_sock {
	struct sock sk;
	u32 inet_saddr;
	u32 inet_daddr;
	u16 inet_sport;
	u16 inet_dport;
	u8 tos;
};

struct ipv6_pinfo {
	u8 tclass;
};
extern struct ipv6_pinfo mock_ipv6;
struct tcp_congestion_ops;
struct inet_connection_sock {
	struct inet_sock inet;
	const struct tcp_congestion_ops *icsk_ca_ops;
	u8 icsk_ca_state;
	u32 icsk_rto;
	struct {
		u8 pending;
	} icsk_ack;
	u64 icsk_ca_priv[ICSK_CA_PRIV_SIZE / 8];
};

struct tcp_sock {
	struct inet_connection_sock icsk;
	u32 delivered, delivered_ce, snd_una, snd_nxt, rcv_nxt, rcv_wup;
	u32 packets_out, sacked_out, lost_out, retrans_out;
	u32 data_segs_out, snd_cwnd, snd_ssthresh, snd_cwnd_clamp;
	u32 max_packets_out, mss_cache, srtt_us, lsndtime;
	u32 prior_ssthresh, high_seq, undo_marker, total_retrans;
	u8 ecn_flags;
	bool is_cwnd_limited;
};

struct rate_sample {
	int losses;
};

struct tcp_dctcp_info {
	__u16 dctcp_enabled;
	__u16 dctcp_ce_state;
	__u32 dctcp_alpha;
	__u32 dctcp_ab_ecn;
	__u32 dctcp_ab_tot;
};

union tcp_cc_info {
	struct tcp_dctcp_info dctcp;
	u32 words[5];
};

struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*set_state)(struct sock *sk, u8 state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event event);
#ifdef MARIMO_HAVE_TX_START
	void (*cwnd_event_tx_start)(struct sock *sk);
#endif
	u32 (*min_tso_segs)(struct sock *sk);
#ifdef MARIMO_HAVE_CONTROL_FLAG
	void (*cong_control)(struct sock *sk, u32 ack, int flag,
			     const struct rate_sample *rs);
#else
	void (*cong_control)(struct sock *sk, const struct rate_sample *rs);
#endif
	u32 (*undo_cwnd)(struct sock *sk);
	size_t (*get_info)(struct sock *sk, u32 ext, int *attr,
			   union tcp_cc_info *info);
	char name[16];
	struct module *owner;
	u32 flags;
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
};

extern u32 tcp_jiffies32;
extern struct net mock_net;
#define before(a, b) ((s32)((u32)(a) - (u32)(b)) < 0)
#define tcp_sk(sk) ((struct tcp_sock *)(sk))
#define inet_sk(sk) ((struct inet_sock *)(sk))
#define inet_csk(sk) ((struct inet_connection_sock *)(sk))
#define inet_csk_ca(sk) ((void *)inet_csk(sk)->icsk_ca_priv)
#define sock_net(sk) ((void)(sk), &mock_net)
#define INET_ECN_NOT_ECT 0
#define INET_ECN_ECT_0 2
#define INET_ECN_CE 3
#define INET_ECN_MASK 3
#define INET_ECN_is_ce(tos) (((tos) & 3) == 3)
static inline struct ipv6_pinfo *inet6_sk(const struct sock *sk)
{
	return sk->sk_family == AF_INET6 ? &mock_ipv6 : NULL;
}

static inline void INET_ECN_xmit(struct sock *sk)
{
#ifdef MARIMO_HAVE_ECN_XMIT_CLEARS
	inet_sk(sk)->tos &= (u8)~3;
	if (inet6_sk(sk))
		inet6_sk(sk)->tclass &= (u8)~3;
#endif
	inet_sk(sk)->tos |= 2;
	if (inet6_sk(sk))
		inet6_sk(sk)->tclass |= 2;
}

static inline void INET_ECN_dontxmit(struct sock *sk)
{
	inet_sk(sk)->tos &= (u8)~3;
	if (inet6_sk(sk))
		inet6_sk(sk)->tclass &= (u8)~3;
}

#define mock_ect(tp) (inet_sk((struct sock *)(tp))->tos & 3)
#undef ntohs
#define ntohs(x) ((u16)((u16)(x) << 8 | (u16)(x) >> 8))

static inline u32 tcp_packets_in_flight(const struct tcp_sock *tp)
{
	return tp->packets_out - tp->sacked_out - tp->lost_out +
	       tp->retrans_out;
}

#ifdef MARIMO_HAVE_CWND_HELPERS
static inline u32 tcp_snd_cwnd(const struct tcp_sock *tp)
{
	return tp->snd_cwnd;
}

static inline void tcp_snd_cwnd_set(struct tcp_sock *tp, u32 window)
{
	CHECK(window > 0);
	tp->snd_cwnd = window;
}
#endif

#ifdef MARIMO_HAVE_ECN_MODE
static inline bool tcp_ecn_mode_any(const struct tcp_sock *tp)
{
	return tp->ecn_flags & (TCP_ECN_OK | MOCK_ECN_ACCECN);
}

#define TCP_ECN_DISABLED 0
static inline void tcp_ecn_mode_set(struct tcp_sock *tp, u8 mode)
{
	tp->ecn_flags &= ~(TCP_ECN_OK | MOCK_ECN_ACCECN);
	tp->ecn_flags |= mode;
}

static inline bool tcp_ecn_mode_accecn(const struct tcp_sock *tp)
{
	return tp->ecn_flags & MOCK_ECN_ACCECN;
}
#endif

#ifdef MARIMO_HAVE_SEND_ACK_FLAGS
void __tcp_send_ack(struct sock *sk, u32 receive_next, u16 flags);
#else
void __tcp_send_ack(struct sock *sk, u32 receive_next);
#endif
u32 tcp_reno_ssthresh(struct sock *sk);
void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked);
u32 tcp_reno_undo_cwnd(struct sock *sk);
extern struct tcp_congestion_ops *mock_registered;
int tcp_register_congestion_control(struct tcp_congestion_ops *ops);
void tcp_unregister_congestion_control(struct tcp_congestion_ops *ops);

/* Tracepoints: the last entry of each kind, and a function for each one. */
#define TP_PROTO(...) __VA_ARGS__
#define TP_ARGS(...) __VA_ARGS__
#define TP_STRUCT__entry(...) __VA_ARGS__
#define TP_fast_assign(...) __VA_ARGS__
#define TP_printk(...) __VA_ARGS__
#define __field(type, item) type item;
#define __array(type, item, length) type item[length];
#define TRACE_EVENT(name, proto, args, fields, assign, print) \
	struct mock_trace_##name { fields }; \
	static struct mock_trace_##name mock_##name; \
	static unsigned int mock_##name##_count; \
	static void (*mock_##name##_hook)(void); \
	static bool trace_##name##_enabled(void) { return true; } \
	static void trace_##name(proto) \
	{ \
		struct mock_trace_##name *__entry = &mock_##name; \
		assign \
		mock_##name##_count++; \
		if (mock_##name##_hook) \
			mock_##name##_hook(); \
	}

#endif /* MOCK_H */
