// SPDX-License-Identifier: MIT OR Apache-2.0
/* Whether cong_control is given the acknowledgement too (Linux 6.10). */
#include <net/tcp.h>

static void control(struct sock *sk, u32 ack, int flag,
		    const struct rate_sample *rs)
{
}

struct tcp_congestion_ops probe = { .cong_control = control };
