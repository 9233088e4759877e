// SPDX-License-Identifier: MIT OR Apache-2.0
/* Whether __tcp_send_ack() takes flags (Linux 6.15). */
#include <net/tcp.h>

void probe(struct sock *sk);
void probe(struct sock *sk)
{
	__tcp_send_ack(sk, 0, 0);
}
