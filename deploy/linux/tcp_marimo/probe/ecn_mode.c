// SPDX-License-Identifier: MIT OR Apache-2.0
/* Whether a socket can have negotiated AccECN (Linux 6.15). */
#include <net/tcp.h>
#ifdef MARIMO_HAVE_ECN_HEADER
#include <net/tcp_ecn.h>
#endif

bool probe(const struct tcp_sock *tp);
bool probe(const struct tcp_sock *tp)
{
	return tcp_ecn_mode_any(tp) && !tcp_ecn_mode_accecn(tp);
}
