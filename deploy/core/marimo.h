/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Marimo: load-aware congestion control. Estimator, epoch gate, slow start,
 * loss reaction and clamps of one connection, in freestanding integer C.
 *
 * The same text is compiled into the simulator, a Linux kernel module, a BPF
 * object and a QUIC endpoint; test/run.sh runs it on a 32-bit RISC-V core, too,
 * under emulation. Callers only convert units.
 * docs/marimo.md has the equations and where each default comes from.
 *
 * Numbers:
 *  - Q16: unsigned, 65536 stands for 1. Windows are Q16 packets, loads and
 *    shares Q16. Products of two Q16 are formed in 64 bits and truncated.
 *  - Positions say how far a connection has got, in any unit that only rises
 *    (bytes, packet numbers), modulo 2^32; two that are compared must be less
 *    than 2^31 apart.
 *  - Divisions are 32-bit and unsigned, and happen once per epoch.
 *
 * No call allocates, sleeps, loops without a bound or touches anything but its
 * arguments. The caller serialises calls for one connection.
 */
#ifndef INCAST_MARIMO_H
#define INCAST_MARIMO_H

/* Compilers' own names: stdint.h exists neither in the kernel nor for BPF. */
typedef __UINT8_TYPE__ marimo_u8;
typedef __UINT32_TYPE__ marimo_u32;
typedef __UINT64_TYPE__ marimo_u64;

#define MARIMO_ONE 65536u /* 1 in Q16 */
#define MARIMO_KNOTS 65u
#define MARIMO_LOAD_MAX (8u * MARIMO_ONE) /* largest value of f */
#define MARIMO_WINDOW_MIN (MARIMO_ONE / 64u)
#define MARIMO_WINDOW_MAX (65535u * MARIMO_ONE)
#define MARIMO_INCREASE_MAX (255u * MARIMO_ONE)
#define MARIMO_NEVER 0xffffffffu
#define MARIMO_PACKETS_MAX 65535u

/**
 * struct marimo_table - the map f from a share of marked packets to a load
 * @knots: f at shares 0/64, 1/64 .. 64/64 (Q16), straight lines in between
 *
 * Shared by all connections. See marimo_table_fault().
 */
struct marimo_table {
	marimo_u32 knots[MARIMO_KNOTS];
};

/* What a decrease is computed from. */
enum marimo_decrease {
	MARIMO_FROM_MEMORY = 0, /* the moving average, as the paper writes it */
	MARIMO_FROM_EPOCH = 1, /* the load of the epoch that just ended */
};

/* How a connection starts. */
enum marimo_start {
	MARIMO_START_STEADY = 0, /* without slow start */
	MARIMO_START_EPOCH = 1, /* slow start; marks act when the epoch ends */
	MARIMO_START_MARK = 2, /* slow start; the first mark acts at once */
};

/**
 * struct marimo_config - what the paper leaves open, shared by connections
 * @increase_below: load under which windows grow (paper: 0.9)
 * @decrease_above: load over which windows shrink (paper: 1.0)
 * @target: load that a decrease aims at
 * @min_decrease: least share of the window that a decrease takes
 * @max_decrease: largest share of the window that a decrease takes
 * @rho_after_decrease: upper bound of the average after a decrease, or
 *	MARIMO_NEVER
 * @loss_rho: lower bound of the average after a loss
 * @loss_decrease: share of the window that a loss takes
 * @initial_window: window of a new connection
 * @min_window: least window that marks and losses leave; below one packet the
 *	caller must pace (from 1/64 packet)
 * @max_window: largest window
 * @increase: packets added per round trip (paper: 1)
 * @max_increase: @increase doubles in each further epoch of growth, up to this
 * @min_epoch: packets that an epoch has at least
 * @beta_shift: weight of the newest epoch, 1 / 2^beta_shift
 * @decrease_from: enum marimo_decrease
 * @settle: epochs after a decrease whose marks are not acted on, as they were
 *	set before the decrease had an effect
 * @slow_start: enum marimo_start
 */
struct marimo_config {
	marimo_u32 increase_below;
	marimo_u32 decrease_above;
	marimo_u32 target;
	marimo_u32 min_decrease;
	marimo_u32 max_decrease;
	marimo_u32 rho_after_decrease;
	marimo_u32 loss_rho;
	marimo_u32 loss_decrease;
	marimo_u32 initial_window;
	marimo_u32 min_window;
	marimo_u32 max_window;
	marimo_u32 increase;
	marimo_u32 max_increase;
	marimo_u32 min_epoch;
	marimo_u8 beta_shift;
	marimo_u8 decrease_from;
	marimo_u8 settle;
	marimo_u8 slow_start;
};

/* Bits of struct marimo.flags. */
#define MARIMO_STARTED 1u /* the first acknowledgement has arrived */
#define MARIMO_SLOW_START 2u
#define MARIMO_CUT 4u /* data sent before the last reduction is still out */
#define MARIMO_LOSS 8u /* that reduction answered a loss */
#define MARIMO_TIMEOUT 16u /* that reduction answered a timeout */

/* Timeouts in a row without a packet with ECT acknowledged: ECN has failed. */
#define MARIMO_ECT_TIMEOUTS 3u

/**
 * struct marimo - state of one connection
 * @window: packets that may be in flight (Q16)
 * @threshold: slow start ends here (Q16 packets)
 * @before: window before the last reduction (Q16 packets)
 * @rho: moving average of the load (Q16)
 * @gain: growth of the window per acknowledged packet (Q16 packets)
 * @epoch_end: the epoch ends when this position is exceeded
 * @epoch_packets: packets of the epoch
 * @epoch_marked: how many of them were marked
 * @cut_end: what was sent before the last reduction lies below
 * @epochs: epochs so far, modulo 2^32
 * @share: marked share of the last epoch (Q16)
 * @flags: MARIMO_STARTED and so on
 * @streak: epochs of growth since the last one without
 * @settling: epochs left that are not acted on
 * @ect_timeouts: timeouts in a row without a packet with ECT acknowledged, at
 *	most MARIMO_ECT_TIMEOUTS
 */
struct marimo {
	marimo_u32 window;
	marimo_u32 threshold;
	marimo_u32 before;
	marimo_u32 rho;
	marimo_u32 gain;
	marimo_u32 epoch_end;
	marimo_u32 epoch_packets;
	marimo_u32 epoch_marked;
	marimo_u32 cut_end;
	marimo_u32 epochs;
	marimo_u32 share;
	marimo_u8 flags;
	marimo_u8 streak;
	marimo_u8 settling;
	marimo_u8 ect_timeouts;
};

typedef char marimo_state_is_small[sizeof(struct marimo) <= 64 ? 1 : -1];

/**
 * struct marimo_ack - what one acknowledgement says
 * @packets: packets it reports on
 * @marked: how many of them carried a mark
 * @acked: packets it newly acknowledges
 * @position: everything below has been acknowledged
 * @next: first position never sent
 * @limited: the window is what limits the connection, so that it may grow
 */
struct marimo_ack {
	marimo_u32 packets;
	marimo_u32 marked;
	marimo_u32 acked;
	marimo_u32 position;
	marimo_u32 next;
	marimo_u32 limited;
};

static inline marimo_u32 marimo_min(marimo_u32 a, marimo_u32 b)
{
	return a < b ? a : b;
}

static inline marimo_u32 marimo_max(marimo_u32 a, marimo_u32 b)
{
	return a > b ? a : b;
}

/* Whether position a lies before b. */
static inline int marimo_before(marimo_u32 a, marimo_u32 b)
{
	return (marimo_u32)(a - b) >= 0x80000000u;
}

/* Product of two Q16 numbers; the caller knows that it fits. */
static inline marimo_u32 marimo_times(marimo_u32 a, marimo_u32 b)
{
	return (marimo_u32)(((marimo_u64)a * b) >> 16);
}

/* a + b, at most limit; a is at most limit. */
static inline marimo_u32 marimo_add(marimo_u32 a, marimo_u32 b,
				    marimo_u32 limit)
{
	return b < limit - a ? a + b : limit;
}

/**
 * marimo_table_fault() - whether f can be used
 * @table: the knots
 * @config: thresholds that f must reach
 *
 * f must not fall, must stay at or below MARIMO_LOAD_MAX, and must cross both
 * thresholds: with f(0) at or above increase_below windows would never grow,
 * with f(1) at or below decrease_above they would never shrink.
 *
 * Return: 0 if it can, otherwise 1 + the index of the first faulty knot.
 */
static inline marimo_u32 marimo_table_fault(const struct marimo_table *table,
					    const struct marimo_config *config)
{
	marimo_u32 i;

	for (i = 0; i < MARIMO_KNOTS; i++) {
		if (table->knots[i] > MARIMO_LOAD_MAX)
			return i + 1;
		if (i > 0 && table->knots[i] < table->knots[i - 1])
			return i + 1;
	}
	if (table->knots[0] >= config->increase_below)
		return 1;
	if (table->knots[MARIMO_KNOTS - 1] <= config->decrease_above)
		return MARIMO_KNOTS;
	return 0;
}

/**
 * marimo_table_checksum() - what stands in the last line of a table's file
 * @table: the knots
 *
 * FNV-1a, 32 bits, over the knots as four bytes each, the lowest first.
 */
static inline marimo_u32
marimo_table_checksum(const struct marimo_table *table)
{
	marimo_u32 hash = 0x811c9dc5u;
	marimo_u32 i;

	for (i = 0; i < 4 * MARIMO_KNOTS; i++) {
		hash ^= (table->knots[i / 4] >> (8 * (i % 4))) & 0xffu;
		hash *= 0x01000193u;
	}
	return hash;
}

/**
 * marimo_config_valid() - whether every field is within its range
 * @c: the configuration
 *
 * The ranges are those in which no computation below can overflow or divide
 * by zero.
 */
static inline int marimo_config_valid(const struct marimo_config *c)
{
	return c->increase_below <= c->decrease_above &&
	       c->decrease_above <= MARIMO_LOAD_MAX &&
	       c->target >= MARIMO_ONE / 16 && c->target <= MARIMO_LOAD_MAX &&
	       c->min_decrease <= c->max_decrease &&
	       c->max_decrease < MARIMO_ONE && c->loss_decrease < MARIMO_ONE &&
	       c->loss_rho <= MARIMO_LOAD_MAX &&
	       c->min_window >= MARIMO_WINDOW_MIN &&
	       c->min_window <= c->initial_window &&
	       c->initial_window <= c->max_window &&
	       c->max_window >= MARIMO_ONE &&
	       c->max_window <= MARIMO_WINDOW_MAX && c->increase > 0 &&
	       c->increase <= c->max_increase &&
	       c->max_increase <= MARIMO_INCREASE_MAX && c->min_epoch > 0 &&
	       c->min_epoch <= MARIMO_PACKETS_MAX / 2 && c->beta_shift <= 8 &&
	       c->decrease_from <= MARIMO_FROM_EPOCH &&
	       c->slow_start <= MARIMO_START_MARK;
}

/**
 * marimo_load() - f at a share of marked packets
 * @table: the knots
 * @share: marked share, at most MARIMO_ONE
 */
static inline marimo_u32 marimo_load(const struct marimo_table *table,
				     marimo_u32 share)
{
	marimo_u32 knot = share >> 10;
	marimo_u32 rest = share & 1023u;
	marimo_u32 from;

	if (knot >= MARIMO_KNOTS - 1)
		return table->knots[MARIMO_KNOTS - 1];
	from = table->knots[knot];
	return from + (((table->knots[knot + 1] - from) * rest) >> 10);
}

/**
 * marimo_average() - rho + (load - rho) / 2^shift, truncated towards rho
 * @rho: the average before
 * @load: the newest load
 * @shift: its weight as a power of two
 */
static inline marimo_u32 marimo_average(marimo_u32 rho, marimo_u32 load,
					marimo_u32 shift)
{
	if (load >= rho)
		return rho + ((load - rho) >> shift);
	return rho - ((rho - load) >> shift);
}

/*
 * (load - target) / load within its bounds. The operands are scaled so that
 * the quotient is Q16 and the dividend stays below 2^31.
 */
static inline marimo_u32 marimo_share_to_cut(const struct marimo_config *c,
					     marimo_u32 load)
{
	marimo_u32 cut = 0;

	if (load > c->target)
		cut = ((load - c->target) << 12) / (load >> 4);
	return marimo_min(marimo_max(cut, c->min_decrease), c->max_decrease);
}

/* The window less a share of it; a reduction never raises the window. */
static inline marimo_u32 marimo_cut(const struct marimo_config *c,
				    marimo_u32 window, marimo_u32 share)
{
	marimo_u32 left = marimo_times(window, MARIMO_ONE - share);

	return marimo_min(window, marimo_max(left, c->min_window));
}

/*
 * Growth per acknowledged packet that adds the increase once a window has been
 * acknowledged, but at most doubles the window (that is also what becomes of
 * "one packet per round trip" below one packet).
 */
static inline void marimo_grow(struct marimo *m, const struct marimo_config *c)
{
	marimo_u32 shift = m->streak < 7 ? m->streak : 7;
	marimo_u32 increase = marimo_min(c->increase << shift, c->max_increase);

	increase = marimo_min(increase, m->window);
	m->gain = marimo_min((increase << 8) / (m->window >> 8), MARIMO_ONE);
	if (m->streak < 7)
		m->streak++;
}

static inline void marimo_hold(struct marimo *m)
{
	m->gain = 0;
	m->streak = 0;
}

static inline void marimo_open_epoch(struct marimo *m, marimo_u32 next)
{
	m->epoch_end = next;
	m->epoch_packets = 0;
	m->epoch_marked = 0;
}

/* The window was reduced when next was the first position never sent. */
static inline void marimo_reduced(struct marimo *m,
				  const struct marimo_config *c,
				  marimo_u32 next, marimo_u8 cause)
{
	marimo_hold(m);
	m->settling = c->settle;
	m->cut_end = next;
	m->flags &= (marimo_u8)~(MARIMO_SLOW_START | MARIMO_LOSS |
				 MARIMO_TIMEOUT);
	m->flags |= (marimo_u8)(MARIMO_CUT | cause);
}

/**
 * marimo_init() - a new connection
 * @m: its state
 * @c: a valid configuration
 * @table: a table without fault
 *
 * It starts with the load of an unmarked path.
 */
static inline void marimo_init(struct marimo *m, const struct marimo_config *c,
			       const struct marimo_table *table)
{
	m->window = c->initial_window;
	m->threshold = MARIMO_NEVER;
	m->before = c->initial_window;
	m->rho = table->knots[0];
	m->gain = 0;
	m->cut_end = 0;
	m->epochs = 0;
	m->share = 0;
	m->flags = 0;
	m->streak = 0;
	m->settling = 0;
	m->ect_timeouts = 0;
	marimo_open_epoch(m, 0);
	if (c->slow_start)
		m->flags = MARIMO_SLOW_START;
	else
		marimo_grow(m, c);
}

/* An epoch has ended: one step of the estimator, one decision. */
static inline void marimo_close_epoch(struct marimo *m,
				      const struct marimo_config *c,
				      const struct marimo_table *table,
				      marimo_u32 next)
{
	marimo_u32 load, from;

	m->share = (m->epoch_marked << 16) / m->epoch_packets;
	load = marimo_load(table, m->share);
	m->rho = marimo_average(m->rho, load, c->beta_shift);
	m->epochs++;
	marimo_open_epoch(m, next);

	if (m->flags & MARIMO_SLOW_START) {
		if (m->share > 0) {
			m->before = m->window;
			m->window = marimo_cut(c, m->window, m->share / 2);
			m->threshold = m->window;
			marimo_reduced(m, c, next, 0);
		}
		return;
	}
	if (m->flags & MARIMO_LOSS) {
		marimo_hold(m);
		return;
	}
	if (m->settling) {
		m->settling--;
		return;
	}
	from = c->decrease_from == MARIMO_FROM_EPOCH ? load : m->rho;
	if (from > c->decrease_above) {
		m->before = m->window;
		m->window = marimo_cut(c, m->window,
				       marimo_share_to_cut(c, from));
		m->threshold = m->window;
		m->rho = marimo_min(m->rho, c->rho_after_decrease);
		marimo_reduced(m, c, next, 0);
	} else if (m->rho < c->increase_below) {
		marimo_grow(m, c);
	} else {
		marimo_hold(m);
	}
}

/**
 * marimo_on_ack() - an acknowledgement arrived
 * @m: the connection
 * @c: its configuration
 * @table: f, which may be another one than last time
 * @ack: what it says
 *
 * If it also shows a loss, marimo_on_loss() follows.
 */
static inline void marimo_on_ack(struct marimo *m,
				 const struct marimo_config *c,
				 const struct marimo_table *table,
				 const struct marimo_ack *ack)
{
	marimo_u32 packets = marimo_min(ack->packets, MARIMO_PACKETS_MAX);
	marimo_u32 marked = marimo_min(ack->marked, packets);
	marimo_u32 acked = marimo_min(ack->acked, MARIMO_PACKETS_MAX);

	if (!(m->flags & MARIMO_STARTED)) {
		m->flags |= MARIMO_STARTED;
		m->epoch_end = ack->next;
	}
	if ((m->flags & MARIMO_CUT) && !marimo_before(ack->position, m->cut_end))
		m->flags &= (marimo_u8)~(MARIMO_CUT | MARIMO_LOSS |
					 MARIMO_TIMEOUT);

	m->epoch_packets += packets;
	m->epoch_marked += marked;
	if (m->epoch_packets > MARIMO_PACKETS_MAX) {
		/* Both were at most 2^16 - 1: halving keeps their ratio. */
		m->epoch_packets >>= 1;
		m->epoch_marked >>= 1;
	}

	if ((m->flags & MARIMO_SLOW_START) && marked > 0 &&
	    c->slow_start == MARIMO_START_MARK) {
		m->before = m->window;
		m->window = marimo_cut(c, m->window, c->max_decrease);
		m->threshold = m->window;
		marimo_open_epoch(m, ack->next);
		marimo_reduced(m, c, ack->next, 0);
		return;
	}

	if (ack->limited && !(m->flags & MARIMO_LOSS)) {
		if (!(m->flags & MARIMO_SLOW_START)) {
			m->window = marimo_add(m->window, acked * m->gain,
					       c->max_window);
		} else if (m->epoch_marked == 0) {
			/* A mark stops growth at once; the cut waits for the share. */
			m->window = marimo_add(
				m->window, acked << 16,
				marimo_max(m->window, marimo_min(m->threshold,
								 c->max_window)));
			if (m->window >= m->threshold)
				m->flags &= (marimo_u8)~MARIMO_SLOW_START;
		}
	}

	if (m->epoch_packets >= c->min_epoch &&
	    marimo_before(m->epoch_end, ack->position))
		marimo_close_epoch(m, c, table, ack->next);
}

/**
 * marimo_on_loss() - packets were found lost
 * @m: the connection
 * @c: its configuration
 * @position: where the first of them lies
 * @next: first position never sent
 *
 * One reduction per window of data. If a mark has already reduced the window
 * in which the loss lies, the window is left as if the loss had come alone.
 */
static inline void marimo_on_loss(struct marimo *m,
				  const struct marimo_config *c,
				  marimo_u32 position, marimo_u32 next)
{
	marimo_u32 left;

	if (!(m->flags & MARIMO_CUT) || !marimo_before(position, m->cut_end))
		m->before = m->window;
	else if (m->flags & (MARIMO_LOSS | MARIMO_TIMEOUT))
		return;
	left = marimo_cut(c, m->before, c->loss_decrease);
	m->window = marimo_min(m->window, left);
	m->threshold = m->window;
	m->rho = marimo_max(m->rho, c->loss_rho);
	marimo_open_epoch(m, next);
	marimo_reduced(m, c, next, MARIMO_LOSS);
}

/**
 * marimo_on_timeout() - the retransmission timer expired
 * @m: the connection
 * @c: its configuration
 * @next: first position never sent
 *
 * Slow start from one packet to half of the window; of timeouts in a row only
 * the first one sets that half.
 */
static inline void marimo_on_timeout(struct marimo *m,
				     const struct marimo_config *c,
				     marimo_u32 next)
{
	if (!(m->flags & MARIMO_TIMEOUT)) {
		m->before = m->window;
		m->threshold = marimo_max(m->window / 2, MARIMO_ONE);
	}
	m->window = marimo_min(m->window, MARIMO_ONE);
	m->rho = marimo_max(m->rho, c->loss_rho);
	marimo_open_epoch(m, next);
	marimo_reduced(m, c, next, MARIMO_TIMEOUT);
	if (m->window < m->threshold)
		m->flags |= MARIMO_SLOW_START;
}

/**
 * marimo_on_ect_timeout() - a timer expired for a packet sent with ECT
 * @m: the connection
 *
 * A path may pass the handshake and drop data for its ECT. Nothing is then
 * acknowledged that could tell, so that timeouts have to (RFC 9000, section
 * 13.4.2.1). It comes with marimo_on_timeout(), in either order.
 *
 * Return: whether ECN has failed: the connection is to go on without.
 */
static inline int marimo_on_ect_timeout(struct marimo *m)
{
	if (m->ect_timeouts < MARIMO_ECT_TIMEOUTS)
		m->ect_timeouts++;
	return m->ect_timeouts >= MARIMO_ECT_TIMEOUTS;
}

/**
 * marimo_on_ect_acked() - a packet sent with ECT was acknowledged
 * @m: the connection
 */
static inline void marimo_on_ect_acked(struct marimo *m)
{
	m->ect_timeouts = 0;
}

/**
 * marimo_on_idle() - the connection sends again after more than one timeout
 * @m: the connection
 * @next: first position never sent
 *
 * The epoch under way is forgotten, the average is kept.
 */
static inline void marimo_on_idle(struct marimo *m, marimo_u32 next)
{
	marimo_open_epoch(m, next);
}

/* A window or threshold in packets of another size. */
static inline marimo_u32 marimo_scaled(marimo_u32 packets, marimo_u32 ratio)
{
	if (packets == MARIMO_NEVER)
		return packets;
	return marimo_times(packets, ratio);
}

/**
 * marimo_on_mtu() - packets have another size
 * @m: the connection
 * @before: bytes of a packet until now, at most 65535
 * @after: bytes of one from now on, at most 65535
 *
 * When they grow, windows become fewer packets, though no less than one: a
 * probe of the path's MTU is no reason for more bytes in flight (RFC 4821,
 * RFC 8899). When they shrink, windows keep their packets.
 *
 * Return: what windows were multiplied with (Q16), MARIMO_ONE if they stay.
 */
static inline marimo_u32 marimo_on_mtu(struct marimo *m, marimo_u32 before,
				       marimo_u32 after)
{
	marimo_u32 ratio;

	if (!before || after <= before)
		return MARIMO_ONE;
	ratio = (before << 16) / after;
	m->window = marimo_max(marimo_scaled(m->window, ratio), MARIMO_ONE);
	m->before = marimo_max(marimo_scaled(m->before, ratio), MARIMO_ONE);
	m->threshold = marimo_scaled(m->threshold, ratio);
	return ratio;
}

#endif /* INCAST_MARIMO_H */
