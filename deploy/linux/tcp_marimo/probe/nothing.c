// SPDX-License-Identifier: MIT OR Apache-2.0
/* Whether probes can be compiled at all. */
#include <net/tcp.h>
