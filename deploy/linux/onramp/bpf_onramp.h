/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What bpf_onramp and onrampctl say to each other: layouts of its maps.
 * deploy/linux/onrampctl/src/layout.rs is the other side.
 */
#ifndef INCAST_BPF_ONRAMP_H
#define INCAST_BPF_ONRAMP_H

#include "../onramp_tcp.h"

/* Addresses are of IPv6; those of IPv4 are ::ffff:a.b.c.d (RFC 4291, 2.5.5.2). */
struct bpf_onramp_address {
	onramp_u32 words[4];
};

/**
 * struct bpf_onramp_prefix - destinations that packets are held for
 * @length: of the prefix, in bits of an address of IPv6
 * @address: its first address
 */
struct bpf_onramp_prefix {
	onramp_u32 length;
	struct bpf_onramp_address address;
};

/**
 * struct bpf_onramp_counters - since the load, on one CPU
 * @packets: data packets to destinations that packets are held for
 * @held: those that were held
 * @reports: acknowledgements that told a delay
 * @ignored: acknowledgements of too long ago
 * @zeroed: times that a connection had stamps of its own
 * @not_kept: packets that were answered before they were to leave
 * @milliseconds: packets of connections that stamp in milliseconds
 * @without_stamps: packets without time stamps
 * @forwarded: packets of no socket of this host
 * @stamped: packets whose time of departure another one has set, in a clock
 *	that is not the monotonic one
 * @full: packets to an address for which there was no room
 */
struct bpf_onramp_counters {
	onramp_u64 packets;
	onramp_u64 held;
	onramp_u64 reports;
	onramp_u64 ignored;
	onramp_u64 zeroed;
	onramp_u64 not_kept;
	onramp_u64 milliseconds;
	onramp_u64 without_stamps;
	onramp_u64 forwarded;
	onramp_u64 stamped;
	onramp_u64 full;
};

/**
 * struct bpf_onramp_bounds - a window of a path has ended
 * @address: of the peer
 * @window: what was found in it
 */
struct bpf_onramp_bounds {
	struct bpf_onramp_address address;
	struct onramp_window window;
};

/**
 * struct bpf_onramp_rate - what the estimator of clocks has found
 * @address: of the peer
 * @rate: see struct onramp_clock
 * @drift: see struct onramp_clock
 */
struct bpf_onramp_rate {
	struct bpf_onramp_address address;
	onramp_s32 rate;
	onramp_u32 drift;
};

/**
 * struct bpf_onramp_difference - what hosts have found by comparing their clocks
 * @address: of the peer
 * @ahead: its CLOCK_MONOTONIC less ours (ns)
 * @error: by how much that may be wrong (ns)
 * @reserved: zero
 */
struct bpf_onramp_difference {
	struct bpf_onramp_address address;
	onramp_s64 ahead;
	onramp_u32 error;
	onramp_u32 reserved;
};

#endif /* INCAST_BPF_ONRAMP_H */
