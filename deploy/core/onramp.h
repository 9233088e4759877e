/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * On-Ramp: when a packet may leave the edge. The hold rule of one flow, or of
 * all flows to one destination, in freestanding integer C.
 *
 * The simulator compiles this text, and so do the programs that hold packets on
 * a Linux host (deploy/linux/onramp). A 32-bit RISC-V core runs it, which
 * test/run.sh shows with every vector. docs/onramp.md has the equations, and
 * says what is published and what is ours.
 *
 * Numbers:
 *  - Times are nanoseconds of one clock of the sender that does not go back,
 *    in 64 bits; sums stop at 2^64 - 1 instead of wrapping.
 *  - One-way delays are nanoseconds between two clocks, signed: clocks that
 *    disagree make them negative.
 *  - Spans are nanoseconds in 32 bits, at most ONRAMP_SPAN_MAX.
 *  - Q16: unsigned, 65536 stands for 1.
 *  - The only divisions are 32-bit and unsigned, two per round trip.
 *
 * No call allocates, sleeps, loops without a bound or touches anything but its
 * arguments. The caller keeps the packets, in order, and serialises calls.
 */
#ifndef INCAST_ONRAMP_H
#define INCAST_ONRAMP_H

/* Compilers' own names: stdint.h exists neither in the kernel nor for BPF. */
typedef __UINT8_TYPE__ onramp_u8;
typedef __UINT32_TYPE__ onramp_u32;
typedef __UINT64_TYPE__ onramp_u64;
typedef __INT64_TYPE__ onramp_s64;

#define ONRAMP_ONE 65536u /* 1 in Q16 */
#define ONRAMP_SPAN_MAX 0x3fffffffu /* about one second */
#define ONRAMP_PACKETS_MAX 0xffffffu
#define ONRAMP_PAUSES 6u /* pauses that are remembered; see onramp_log() */
#define ONRAMP_FOREVER (~(onramp_u64)0)

/* How long a delay O over the threshold T pauses a flow at time t. */
enum onramp_variant {
	/* Until t + O - T. */
	ONRAMP_STRAWMAN = 0,
	/* Until t + O - beta P - T; P: pauses since the packet was sent. */
	ONRAMP_PAPER = 1,
	/* O - beta P - T longer than now; P has what is still to come. */
	ONRAMP_COMMITTED = 2,
};

/* How what has piled up during a pause leaves. */
enum onramp_release {
	/* At once. */
	ONRAMP_BURST = 0,
	/*
	 * Evenly, until none waits, with a threshold that is lower the higher
	 * the flow's rate is: as fast as packets arrived, and faster by what
	 * their delay lacks to that threshold. What is paused is added to the
	 * time of the next packet, not lost in gaps.
	 */
	ONRAMP_PACED = 1,
	/* At once, but during the pause one packet leaves per quantum. */
	ONRAMP_QUANTISED = 2,
	/* One packet per report, and more while delays are below T. */
	ONRAMP_CLOCKED = 3,
};

/**
 * struct onramp_config - parameters, shared by flows
 * @threshold: T, bound of one-way delays (ns)
 * @max_hold: longest time that a packet is kept once it is the first; after
 *	twice as long without a report nothing is kept (ns)
 * @quantum: of ONRAMP_QUANTISED while the pause has more than T to go (ns)
 * @small_quantum: after that (ns)
 * @beta: share of the time paused by which the delay is taken to have fallen
 *	(Q16, at most 1)
 * @spread: of ONRAMP_PACED: how much lower the threshold of a flow is than that
 *	of one with half its rate, so that flows come to have equal rates (ns)
 * @reference: of ONRAMP_PACED: time between the packets of a flow whose
 *	threshold is @threshold (ns)
 * @gain: of ONRAMP_CLOCKED: share of what delays lack to T that is filled per
 *	round trip (Q16, at most 1)
 * @step: of ONRAMP_CLOCKED: packets added per round trip besides, so that flows
 *	come to have the same share (Q16, at most 1)
 * @variant: enum onramp_variant
 * @release: enum onramp_release
 * @reserved: zero
 */
struct onramp_config {
	onramp_u32 threshold;
	onramp_u32 max_hold;
	onramp_u32 quantum;
	onramp_u32 small_quantum;
	onramp_u32 beta;
	onramp_u32 spread;
	onramp_u32 reference;
	onramp_u32 gain;
	onramp_u32 step;
	onramp_u8 variant;
	onramp_u8 release;
	onramp_u8 reserved[2];
};

/* Bits of struct onramp.flags. */
#define ONRAMP_REPORTED 1u /* a report has arrived */
#define ONRAMP_HELD 2u /* a pause has begun whose backlog may not be gone */
#define ONRAMP_LATE 4u /* the last delay reported was above the threshold */
#define ONRAMP_RELEASED 8u /* a packet has left */
#define ONRAMP_FRESH 16u /* the round trip began with nothing on its way */

/**
 * struct onramp - state of one decision
 * @pause_until: nothing leaves before
 * @opened: when the newest entry of the log was begun
 * @released: when the last packet left
 * @reported: when the last report came
 * @next: of ONRAMP_PACED: the next packet leaves no earlier
 * @marker: a round trip ends when a packet sent at this time or later is reported
 * @outstanding: packets that left and have not been reported
 * @limit: of ONRAMP_CLOCKED: how many of them there may be
 * @since: packets that left since @marker
 * @flight: packets that were on their way at @marker
 * @gap: of ONRAMP_PACED: time between packets (ns)
 * @bound: of ONRAMP_PACED: its threshold at the rate of the last round trip (ns)
 * @credit: of ONRAMP_CLOCKED: growth of @limit that is not yet a packet (ns)
 * @ends: ends of the last pauses, modulo 2^32, from the newest
 * @lengths: their lengths (ns)
 * @pauses: how many of them there are
 * @flags: ONRAMP_REPORTED and so on
 */
struct onramp {
	onramp_u64 pause_until;
	onramp_u64 opened;
	onramp_u64 released;
	onramp_u64 reported;
	onramp_u64 next;
	onramp_u64 marker;
	onramp_u32 outstanding;
	onramp_u32 limit;
	onramp_u32 since;
	onramp_u32 flight;
	onramp_u32 gap;
	onramp_u32 bound;
	onramp_u32 credit;
	onramp_u32 ends[ONRAMP_PAUSES];
	onramp_u32 lengths[ONRAMP_PAUSES];
	onramp_u8 pauses;
	onramp_u8 flags;
};

typedef char onramp_state_is_small[sizeof(struct onramp) <= 128 ? 1 : -1];

/*
 * All ones if a < b, else 0. A verifier of BPF follows both ways of each branch,
 * and a compiler for it knows no comparison but a branch: by arithmetic there.
 */
static inline onramp_u64 onramp_less(onramp_u64 a, onramp_u64 b)
{
#ifdef __BPF__
	onramp_u64 less = (~a & b) | ((~a | b) & (a - b));

	__asm__ volatile("" : "+r"(less)); /* or it is found out */
	return 0 - (less >> 63);
#else
	return 0 - (onramp_u64)(a < b);
#endif
}

static inline onramp_u64 onramp_sooner(onramp_u64 a, onramp_u64 b)
{
	return b ^ ((a ^ b) & onramp_less(a, b));
}

static inline onramp_u64 onramp_later(onramp_u64 a, onramp_u64 b)
{
	return a ^ ((a ^ b) & onramp_less(a, b));
}

static inline onramp_u32 onramp_min(onramp_u32 a, onramp_u32 b)
{
	return (onramp_u32)onramp_sooner(a, b);
}

/* Time after a span; stops at the end of time. */
static inline onramp_u64 onramp_after(onramp_u64 time, onramp_u32 span)
{
	return time + onramp_sooner(span, ONRAMP_FOREVER - time);
}

/* Span from one time to another, 0 if that is not later. */
static inline onramp_u32 onramp_span(onramp_u64 from, onramp_u64 to)
{
	return (onramp_u32)onramp_sooner(onramp_later(from, to) - from,
					 ONRAMP_SPAN_MAX);
}

/* Product of a span and a Q16 number, at most the largest span. */
static inline onramp_u32 onramp_times(onramp_u32 a, onramp_u32 b)
{
	return (onramp_u32)onramp_sooner(((onramp_u64)a * b) >> 16,
					 ONRAMP_SPAN_MAX);
}

/**
 * onramp_config_valid() - whether every field is within its range
 * @c: the configuration
 */
static inline int onramp_config_valid(const struct onramp_config *c)
{
	return c->threshold <= ONRAMP_SPAN_MAX && c->max_hold > 0 &&
	       c->max_hold <= ONRAMP_SPAN_MAX && c->small_quantum > 0 &&
	       c->small_quantum <= c->quantum &&
	       c->quantum <= ONRAMP_SPAN_MAX && c->beta <= ONRAMP_ONE &&
	       c->spread <= ONRAMP_SPAN_MAX && c->reference > 0 &&
	       c->reference <= ONRAMP_SPAN_MAX && c->gain > 0 &&
	       c->gain <= ONRAMP_ONE && c->step <= ONRAMP_ONE &&
	       c->variant <= ONRAMP_COMMITTED &&
	       c->release <= ONRAMP_CLOCKED && c->reserved[0] == 0 &&
	       c->reserved[1] == 0;
}

/**
 * onramp_init() - a flow begins
 * @o: its state
 */
static inline void onramp_init(struct onramp *o)
{
	onramp_u32 i;

	o->pause_until = 0;
	o->opened = 0;
	o->released = 0;
	o->reported = 0;
	o->next = 0;
	o->marker = 0;
	o->outstanding = 0;
	o->limit = 0;
	o->since = 0;
	o->flight = 0;
	o->gap = 0;
	o->bound = 0;
	o->credit = 0;
	for (i = 0; i < ONRAMP_PAUSES; i++) {
		o->ends[i] = 0;
		o->lengths[i] = 0;
	}
	o->pauses = 0;
	o->flags = 0;
}

/**
 * onramp_paused() - time paused after some time
 * @o: the flow
 * @c: its configuration
 * @now: the time
 * @since: no later than @now
 *
 * With ONRAMP_COMMITTED what is still to come counts, otherwise it does not.
 */
static inline onramp_u32 onramp_paused(const struct onramp *o,
				       const struct onramp_config *c,
				       onramp_u64 now, onramp_u64 since)
{
	onramp_u32 ago = onramp_span(since, now);
	onramp_u32 sum = 0;
	onramp_u32 i;

	for (i = 0; i < ONRAMP_PAUSES && i < o->pauses; i++) {
		/* Ends lie within a second of now: see onramp_forget(). */
		onramp_u32 end = o->ends[i] - (onramp_u32)now + ago;
		onramp_u32 length = o->lengths[i];

		if (end >= 0x80000000u)
			continue;
		if (end > ago && c->variant != ONRAMP_COMMITTED) {
			onramp_u32 ahead = end - ago;

			length -= onramp_min(length, ahead);
			end = ago;
		}
		sum = onramp_min(sum + onramp_min(length, end),
				 ONRAMP_SPAN_MAX);
	}
	return sum;
}

/*
 * Pauses that ended a second ago are forgotten, so that their ends modulo 2^32
 * stay on the right side of now.
 */
static inline void onramp_forget(struct onramp *o, onramp_u64 now)
{
	onramp_u32 i;

	if (now - o->reported >= ONRAMP_SPAN_MAX)
		o->pauses = 0;
	for (i = ONRAMP_PAUSES; i > 0; i--) {
		onramp_u32 age = (onramp_u32)now - o->ends[i - 1];

		if (i == o->pauses && age >= ONRAMP_SPAN_MAX &&
		    age < 0x80000000u)
			o->pauses--;
	}
}

/*
 * The pause now ends later, by `length`. What belongs to one pause, or began
 * within a quarter of a round trip, shares an entry that counts as one pause up
 * to its end. The log thus reaches back more than a round trip; what has fallen
 * out of it is not taken off delays, so that the flow is held longer, not
 * shorter.
 */
static inline void onramp_log(struct onramp *o, onramp_u64 now,
			      onramp_u64 until, onramp_u32 length,
			      onramp_u32 round)
{
	onramp_u32 i;

	if (o->pauses == 0 || (o->pause_until < now &&
			       onramp_span(o->opened, now) > round / 4)) {
		for (i = ONRAMP_PAUSES - 1; i > 0; i--) {
			o->ends[i] = o->ends[i - 1];
			o->lengths[i] = o->lengths[i - 1];
		}
		if (o->pauses < ONRAMP_PAUSES)
			o->pauses++;
		o->lengths[0] = 0;
		o->opened = now;
	}
	o->ends[0] = (onramp_u32)until;
	o->lengths[0] = onramp_min(o->lengths[0] + length, ONRAMP_SPAN_MAX);
}

/*
 * Whether reports have stopped, or have not begun. Packets that leave at least
 * every max_hold are not reported much less often than that.
 */
static inline int onramp_silent(const struct onramp *o,
				const struct onramp_config *c, onramp_u64 now)
{
	return !(o->flags & ONRAMP_REPORTED) ||
	       now >= onramp_after(o->reported, 2 * c->max_hold);
}

/**
 * onramp_release() - when the first packet may leave
 * @o: the flow
 * @c: its configuration
 * @now: the time
 * @queued: when that packet was handed over
 *
 * The answer holds until the next report and the next release. A packet is kept
 * for at most max_hold from when it became the first, whatever was reported.
 *
 * Return: that time; @now or earlier for at once.
 */
static inline onramp_u64 onramp_release(const struct onramp *o,
					const struct onramp_config *c,
					onramp_u64 now, onramp_u64 queued)
{
	onramp_u64 first = queued;
	onramp_u64 wait;

	if (!(o->flags & ONRAMP_HELD) || onramp_silent(o, c, now))
		return queued;
	if (o->flags & ONRAMP_RELEASED)
		first = onramp_later(first, o->released);
	wait = o->pause_until;
	if (c->release == ONRAMP_QUANTISED) {
		onramp_u32 left = onramp_span(first, wait);

		wait = onramp_sooner(wait,
				     onramp_after(first, left > c->threshold ?
							 c->quantum :
							 c->small_quantum));
	} else if (c->release == ONRAMP_PACED) {
		wait = onramp_later(wait, o->next);
	} else if (c->release == ONRAMP_CLOCKED && o->outstanding >= o->limit) {
		wait = onramp_after(o->reported, c->max_hold);
	}
	wait = onramp_sooner(wait, onramp_after(o->reported, 2 * c->max_hold));
	wait = onramp_sooner(wait, onramp_after(first, c->max_hold));
	return onramp_later(queued, wait);
}

/**
 * onramp_on_release() - the first packet left
 * @o: the flow
 * @c: its configuration
 * @now: the time
 * @queued: when that packet was handed over
 *
 * A packet that did not wait shows that no other one did.
 */
static inline void onramp_on_release(struct onramp *o,
				     const struct onramp_config *c,
				     onramp_u64 now, onramp_u64 queued)
{
	if ((o->flags & ONRAMP_HELD) &&
	    (onramp_silent(o, c, now) ||
	     (queued >= now && o->pause_until <= now &&
	      !(o->flags & ONRAMP_LATE)))) {
		o->flags &= (onramp_u8)~ONRAMP_HELD;
		o->credit = 0;
	}
	if (!(o->flags & ONRAMP_HELD) &&
	    (o->outstanding == 0 || onramp_silent(o, c, now)))
		o->flags |= ONRAMP_FRESH;
	o->released = now;
	o->flags |= ONRAMP_RELEASED;
	if (o->flags & ONRAMP_HELD)
		o->next = onramp_after(now, o->gap);
	if (o->outstanding < ONRAMP_PACKETS_MAX)
		o->outstanding++;
	if (o->since < ONRAMP_PACKETS_MAX)
		o->since++;
}

/*
 * Logarithm to base 2, Q16: exact for powers of two, a straight line between
 * them. 0 for 0.
 */
static inline onramp_u32 onramp_log2(onramp_u32 number)
{
	onramp_u32 ones = number | number >> 1;
	onramp_u32 whole;

	if (number == 0)
		return 0;
	/*
	 * All bits below the highest one, which are counted. Without a branch:
	 * a verifier of BPF follows both ways of each.
	 */
	ones |= ones >> 2;
	ones |= ones >> 4;
	ones |= ones >> 8;
	ones = (ones | ones >> 16) >> 1;
	ones -= (ones >> 1) & 0x55555555u;
	ones = (ones & 0x33333333u) + ((ones >> 2) & 0x33333333u);
	whole = (((ones + (ones >> 4)) & 0x0f0f0f0fu) * 0x01010101u) >> 24;
	return (whole << 16) + ((number << (31 - whole) << 1) >> 16);
}

/*
 * The threshold of a flow of which so many packets arrived in a round trip:
 * lower by the spread each time that the rate doubles. Flows at one queue thus
 * pause at different delays, and come to rest where these are the same, which
 * is at the same rate.
 */
static inline onramp_u32 onramp_bound(const struct onramp_config *c,
				      onramp_u32 round, onramp_u32 packets)
{
	onramp_u32 gap = onramp_log2(round);
	onramp_u32 even = onramp_log2(packets) + onramp_log2(c->reference);
	onramp_u32 off;

	if (packets == 0)
		return c->threshold;
	off = onramp_times(c->spread, gap > even ? gap - even : even - gap);
	return gap > even ? onramp_min(c->threshold + off, ONRAMP_SPAN_MAX) :
			    c->threshold - onramp_min(off, c->threshold);
}

/*
 * Time between packets of a flow of which so many arrived in a round trip, if
 * it offers what it got, and so much more that delays rise by the room within a
 * round trip if all do so; at most four times what it got.
 */
static inline onramp_u32 onramp_gap(onramp_u32 round, onramp_u32 packets,
				    onramp_u32 room)
{
	onramp_u32 total = round + onramp_min(room, 3 * round);
	onramp_u32 bits = onramp_log2(total) >> 16;
	onramp_u32 coarse = bits > 15 ? bits - 15 : 0;
	/* In 64ths of a nanosecond where that fits, as a gap may be of a few. */
	onramp_u32 fine = round < (1u << 26) ? 6 : 0;

	if (packets == 0 || round == 0)
		return 0;
	return onramp_times((round << fine) / packets,
			    ((round >> coarse) << 16) / (total >> coarse)) >>
	       fine;
}

/*
 * A round trip has ended: whatever left before the marker has been reported, or
 * it or its report is lost. One that began with the first packet, or the first
 * after idleness, has no rate to show. No gap is longer than a round trip: what
 * is slower than that is left to pauses.
 */
static inline void onramp_close_round(struct onramp *o,
				      const struct onramp_config *c,
				      onramp_u64 now, onramp_u32 round,
				      onramp_u32 took)
{
	onramp_u32 span = onramp_span(o->marker, now);

	o->bound = c->threshold;
	if (o->flags & ONRAMP_FRESH) {
		o->gap = 0;
	} else if (c->release == ONRAMP_PACED) {
		o->bound = onramp_bound(c, span, o->flight);
		o->gap = onramp_min(
			onramp_gap(span, o->flight,
				   o->bound - onramp_min(took, o->bound)),
			round);
	}
	o->flags &= (onramp_u8)~ONRAMP_FRESH;
	o->outstanding = o->since;
	o->flight = o->since;
	o->marker = now;
	o->since = 0;
}

/*
 * The pause that a delay over the threshold asks for: when it ends, at most
 * max_hold from now.
 */
static inline onramp_u64 onramp_pause(const struct onramp *o,
				      const struct onramp_config *c,
				      onramp_u64 now, onramp_u32 excess,
				      onramp_u32 paused)
{
	onramp_u32 fallen = c->variant == ONRAMP_STRAWMAN ?
				    0 :
				    onramp_times(paused, c->beta);
	onramp_u64 from = now;

	if (fallen >= excess)
		return 0;
	if (c->variant == ONRAMP_COMMITTED)
		from = onramp_later(now, o->pause_until);
	return onramp_sooner(onramp_after(from, excess - fallen),
			     onramp_after(now, c->max_hold));
}

/*
 * ONRAMP_CLOCKED: a report during a pause takes its packet out of the limit;
 * another one leaves it, and adds the share of the round trip by which the
 * delay is below the threshold.
 */
static inline void onramp_clock(struct onramp *o, const struct onramp_config *c,
				onramp_u64 now, onramp_u32 room,
				onramp_u32 round, onramp_u32 step)
{
	if (o->pause_until > now) {
		o->limit = onramp_min(o->limit, o->outstanding);
		o->credit = 0;
	} else {
		o->credit += onramp_min(onramp_times(room, c->gain), round) +
			     onramp_times(round, step);
		if (o->credit >= round) {
			o->credit = onramp_min(o->credit - round, round);
			o->limit = onramp_min(o->limit + 1, ONRAMP_PACKETS_MAX);
		}
	}
	if (o->limit == 0)
		o->limit = 1;
}

/**
 * onramp_on_report() - the receiver has told when a packet arrived
 * @o: the flow
 * @c: its configuration
 * @now: the time
 * @sent: when that packet left
 * @delay: how long it took one way, as the two clocks have it
 */
static inline void onramp_on_report(struct onramp *o,
				    const struct onramp_config *c,
				    onramp_u64 now, onramp_u64 sent,
				    onramp_s64 delay)
{
	/* A delay below zero is the clocks' doing: taken for none. */
	onramp_u32 took = onramp_span(0, delay > 0 ? (onramp_u64)delay : 0);
	onramp_u32 round = onramp_span(sent, now);
	onramp_u64 until = 0;
	onramp_u32 step = 0;
	onramp_u32 bound;

	onramp_forget(o, now);
	if (onramp_silent(o, c, now)) {
		o->flags &= (onramp_u8)~ONRAMP_HELD;
		o->credit = 0;
	}
	o->reported = now;
	o->flags |= ONRAMP_REPORTED;
	if (sent >= o->marker) {
		onramp_close_round(o, c, now, round, took);
		step = c->step;
	}
	if (o->outstanding > 0)
		o->outstanding--;

	/* What has not been paused is held by no threshold but T. */
	bound = o->flags & ONRAMP_HELD ? o->bound : c->threshold;
	if (took > bound) {
		until = onramp_pause(o, c, now, took - bound,
				     onramp_paused(o, c, now, sent));
		if (!(o->flags & ONRAMP_HELD)) {
			o->limit = o->outstanding + 1;
			o->next = now;
		}
		o->flags |= ONRAMP_HELD | ONRAMP_LATE;
	} else {
		o->flags &= (onramp_u8)~ONRAMP_LATE;
	}
	if (until > now && until > o->pause_until) {
		onramp_u32 length =
			onramp_span(onramp_later(now, o->pause_until), until);

		onramp_log(o, now, until, length, round);
		o->pause_until = until;
		/*
		 * Pauses shorter than the gap between packets would otherwise
		 * be counted and hold nothing.
		 */
		o->next = onramp_sooner(
			onramp_after(onramp_later(now, o->next), length),
			onramp_after(now, c->max_hold));
	}
	if (c->release == ONRAMP_CLOCKED && (o->flags & ONRAMP_HELD))
		onramp_clock(o, c, now,
			     c->threshold - onramp_min(took, c->threshold),
			     round, step);
}

#endif /* INCAST_ONRAMP_H */
