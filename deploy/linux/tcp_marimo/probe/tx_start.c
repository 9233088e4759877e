// SPDX-License-Identifier: MIT OR Apache-2.0
/* Whether a start after a pause has an operation of its own (Linux 7.1). */
#include <net/tcp.h>

static void start(struct sock *sk)
{
}

struct tcp_congestion_ops probe = { .cwnd_event_tx_start = start };
