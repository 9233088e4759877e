// SPDX-License-Identifier: MIT OR Apache-2.0
/* Whether TCP's ECN has a header of its own (Linux 6.17). */
#include <net/tcp.h>
#include <net/tcp_ecn.h>
