// SPDX-License-Identifier: MIT OR Apache-2.0
/* Whether the window has accessors (Linux 5.19). */
#include <net/tcp.h>

u32 probe(struct tcp_sock *tp);
u32 probe(struct tcp_sock *tp)
{
	tcp_snd_cwnd_set(tp, 2);
	return tcp_snd_cwnd(tp);
}
