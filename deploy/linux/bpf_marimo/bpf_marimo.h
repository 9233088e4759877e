/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What bpf_marimo and marimoctl say to each other: layouts of its maps.
 * deploy/linux/marimoctl/src/layout.rs is the other side; it compares sizes
 * with the kernel's maps before it writes one.
 */
#ifndef INCAST_BPF_MARIMO_H
#define INCAST_BPF_MARIMO_H

#include "../../core/marimo.h"

/**
 * struct bpf_marimo_settings - fixed when the programs are loaded
 * @config: the algorithm's configuration
 * @trace_acks: whether every decision is recorded, not only epochs, so that
 *	the connection can be replayed
 * @fallback: congestion control of connections without ECN
 */
struct bpf_marimo_settings {
	struct marimo_config config;
	marimo_u32 trace_acks;
	char fallback[16];
};

/**
 * struct bpf_marimo_counters - since the load, on one CPU
 * @opened: connections that began
 * @closed: connections that ended or were handed to the fallback
 * @fallbacks: connections handed to the fallback, as ECN was not negotiated
 * @acks: acknowledgements
 * @delivered: packets that they report delivered
 * @marked: how many of those were reported marked
 * @epochs: epochs that ended
 * @decreases: epochs, or first marks, that reduced a window
 * @losses: reductions for a loss
 * @timeouts: reductions for a timeout
 * @undone: reductions for a loss or timeout that turned out to be spurious
 * @arrivals: segments received, as the kernel told of them: bundles are one
 * @ce_changes: times that arriving packets changed between CE and no CE
 * @echo_acks: ACKs sent at once for that
 * @accecn: connections with AccECN, which need no echo of ours
 * @inflating: connections whose peer echoes more marks than it gets
 * @restarts: windows that shrank while a connection was idle
 * @untraced: records for which the trace had no room
 * @starts: times that the kernel told of a start after a pause
 * @fallbacks_syn: of @fallbacks, as their SYN was sent again
 * @fallbacks_echo: of @fallbacks, as eight losses came before any mark
 * @syns: SYNs that were sent again
 *
 * Nothing is added: a marimoctl of an earlier version compares the size.
 */
struct bpf_marimo_counters {
	marimo_u64 opened;
	marimo_u64 closed;
	marimo_u64 fallbacks;
	marimo_u64 acks;
	marimo_u64 delivered;
	marimo_u64 marked;
	marimo_u64 epochs;
	marimo_u64 decreases;
	marimo_u64 losses;
	marimo_u64 timeouts;
	marimo_u64 undone;
	marimo_u64 arrivals;
	marimo_u64 ce_changes;
	marimo_u64 echo_acks;
	marimo_u64 accecn;
	marimo_u64 inflating;
	marimo_u64 restarts;
	marimo_u64 untraced;
	marimo_u64 starts;
	marimo_u64 fallbacks_syn;
	marimo_u64 fallbacks_echo;
	marimo_u64 syns;
};

/**
 * struct bpf_marimo_counters_2 - what is counted besides, since layout 2
 * @fallbacks_ect: of @fallbacks, after three timeouts in a row
 */
struct bpf_marimo_counters_2 {
	marimo_u64 fallbacks_ect;
};

/* What a record tells. */
enum bpf_marimo_kind {
	BPF_MARIMO_EPOCH = 1,
	BPF_MARIMO_LOSS = 2,
	BPF_MARIMO_TIMEOUT = 3,
	BPF_MARIMO_FALLBACK = 4,
	BPF_MARIMO_DECISION = 5, /* whatever the algorithm was told */
	BPF_MARIMO_OPEN = 6,
};

/**
 * struct bpf_marimo_record - one entry of the trace
 * @time: CLOCK_MONOTONIC, ns
 * @pacing_rate: bytes per second
 * @source: own address, IPv4 in the first four bytes
 * @destination: the peer's
 * @source_port: own port, host order
 * @destination_port: the peer's, host order
 * @family: AF_INET or AF_INET6
 * @kind: enum bpf_marimo_kind
 * @netns: number of the network namespace
 * @epochs: epochs so far
 * @share: marked share of the last one (Q16)
 * @rho: estimated load (Q16)
 * @window: the algorithm's window (Q16 packets)
 * @threshold: where slow start ends (Q16 packets)
 * @flags: struct marimo.flags
 * @cwnd: the window that TCP was given, packets
 * @srtt: smoothed round trip, microseconds
 * @in_flight: packets in flight
 * @delivered: packets delivered, modulo 2^32
 * @delivered_ce: of those marked, modulo 2^32
 * @retransmits: packets retransmitted
 * @events: what the algorithm was told, struct marimo_tcp_decision.events
 * @ack: its acknowledgement, struct marimo_tcp_decision.ack
 */
struct bpf_marimo_record {
	marimo_u64 time;
	marimo_u64 pacing_rate;
	marimo_u8 source[16];
	marimo_u8 destination[16];
	marimo_u32 source_port;
	marimo_u32 destination_port;
	marimo_u32 family;
	marimo_u32 kind;
	marimo_u32 netns;
	marimo_u32 epochs;
	marimo_u32 share;
	marimo_u32 rho;
	marimo_u32 window;
	marimo_u32 threshold;
	marimo_u32 flags;
	marimo_u32 cwnd;
	marimo_u32 srtt;
	marimo_u32 in_flight;
	marimo_u32 delivered;
	marimo_u32 delivered_ce;
	marimo_u32 retransmits;
	marimo_u32 events;
	struct marimo_ack ack;
};

#endif /* INCAST_BPF_MARIMO_H */
