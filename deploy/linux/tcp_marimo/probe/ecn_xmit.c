// SPDX-License-Identifier: MIT OR Apache-2.0
/* Whether sending takes CE off a socket: since it can set ECT(1), too, it does. */
#include <net/inet_ecn.h>

void probe(struct sock *sk);
void probe(struct sock *sk)
{
	__INET_ECN_xmit(sk, false);
}
