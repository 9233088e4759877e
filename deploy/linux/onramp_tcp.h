/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * On-Ramp by TCP's own time stamps (RFC 7323), in freestanding integer C: what
 * stands between onramp.h and the packets of a host.
 *
 * Both ends stamp in microseconds (Linux 6.7, route attribute tcp_usec_ts). An
 * acknowledgement of new data has two stamps: TSecr is when the packet left
 * that it answers, TSval when the receiver answered. TSval - TSecr is the
 * one-way delay plus a constant, the difference of both clocks. A packet that
 * found no queue shows the constant, so that the least difference is taken for
 * it; delays are counted from there.
 *
 * Clocks run at different rates. The least difference therefore moves: by the
 * estimated difference of the rates, which somebody else finds
 * (struct onramp_window has what that needs), and upwards by what the estimate
 * may be wrong, so that the clocks are never taken for a queue for long.
 *
 * Hosts whose clocks are synchronised may tell each other how far they are apart
 * (onramp_path_told()). Then one-way delays are known within an error, and the
 * least one does not have to rise as clocks drift.
 *
 * Times are nanoseconds of CLOCK_MONOTONIC, in which Linux makes its stamps.
 * No call allocates, sleeps, loops without a bound or touches anything but its
 * arguments. The caller serialises calls about one path.
 */
#ifndef INCAST_ONRAMP_TCP_H
#define INCAST_ONRAMP_TCP_H

#include "../core/onramp.h"

typedef __INT32_TYPE__ onramp_s32;

#define ONRAMP_MICROSECOND 1000u
/*
 * No network of a datacenter delays by so much (us): the clock of one end has
 * been set, or its stamps begin elsewhere.
 */
#define ONRAMP_APART 262144u
/* A connection whose stamps do so again and again are in another unit. */
#define ONRAMP_ZEROS_MAX 3u
/* Reports about what left longer ago are about nothing that still is (us). */
#define ONRAMP_STALE 1000000u
/* Rates are Q30: one part in 2^30 is 0.93 ppb. */
#define ONRAMP_RATE_BITS 30
#define ONRAMP_RATE_MAX (1 << 20) /* about 1,000 ppm */
/* Without an acknowledgement for so long a path begins anew (ns). */
#define ONRAMP_IDLE 60000000000ull
/* An estimate of rates is good for so long (ns). */
#define ONRAMP_ESTIMATE 30000000000ull
/* What is told of clocks is good for so long (ns); it is told every second. */
#define ONRAMP_KNOWN 5000000000ull
/* Least delays by such clocks are of so long, and of as long before (ns). */
#define ONRAMP_TURN 30000000000ull
/* So long nothing is held on a path where nothing was kept (ns). */
#define ONRAMP_STAND_DOWN 10000000000ull
/* Length of a window (ns): 2^28, about a quarter of a second. */
#define ONRAMP_WINDOW_BITS 28

/**
 * struct onramp_tcp_config - parameters of a host
 * @rule: those of the rule; its threshold and spread are set for each path
 * @threshold: the delay over the least one from which packets are held (ns); 0
 *	for twice the least round trip of the path
 * @floor: where the path decides, the threshold is no lower than this (ns)
 * @drift: by how much the difference of the clocks may rise unnoticed while
 *	nobody estimates it (Q30)
 * @drain: nothing more is held; what leaves stays behind what is
 */
struct onramp_tcp_config {
	struct onramp_config rule;
	onramp_u32 threshold;
	onramp_u32 floor;
	onramp_u32 drift;
	onramp_u32 drain;
};

/**
 * struct onramp_window - two bounds of a difference of clocks
 * @upper_at: when the packet left whose difference was the least (ns)
 * @upper: that difference: the clock of the peer is ahead by this, less a
 *	delay (ns from the anchor)
 * @lower_at: when the acknowledgement came whose difference was the greatest
 * @lower: that difference: the clock of the peer is ahead by this, and by a
 *	delay (ns from the anchor)
 */
struct onramp_window {
	onramp_u64 upper_at;
	onramp_s64 upper;
	onramp_u64 lower_at;
	onramp_s64 lower;
};

/**
 * struct onramp_known - a path by clocks that hosts have compared
 * @told: when the difference of the clocks was told (ns); 0 if it is not known
 * @ahead: by how much the peer's clock is ahead then (ns from the anchor)
 * @used: when a delay was counted by it (ns)
 * @refused: before this it is not to be told: stamps contradicted it (ns)
 * @turned: when the newer of the two times began that least values are of (ns)
 * @nearest: the least one-way delay, newer and older (ns)
 * @trips: the least round trip, likewise (ns)
 * @error: by how much @ahead may be wrong (ns)
 */
struct onramp_known {
	onramp_u64 told;
	onramp_s64 ahead;
	onramp_u64 used;
	onramp_u64 refused;
	onramp_u64 turned;
	onramp_s64 nearest[2];
	onramp_u32 trips[2];
	onramp_u32 error;
};

/**
 * struct onramp_clock - the peer's clock, as far as stamps tell
 * @since: when @least was (ns)
 * @least: the least difference (ns from @anchor)
 * @estimated: when the rates were estimated (ns)
 * @anchor: the first difference (us, modulo 2^32)
 * @rate: how much faster the peer's clock runs, by an estimate (Q30)
 * @drift: by how much that may be too little (Q30); 0 without an estimate
 */
struct onramp_clock {
	onramp_u64 since;
	onramp_s64 least;
	onramp_u64 estimated;
	onramp_u32 anchor;
	onramp_s32 rate;
	onramp_u32 drift;
};

/**
 * struct onramp_connection - what is kept of a connection
 * @zero: by how much its stamps differ more than those of the path (us)
 * @zeros: how often that had to be found
 */
struct onramp_connection {
	onramp_u32 zero;
	onramp_u32 zeros;
};

/**
 * struct onramp_path - all connections to one address; all of it zero at first
 * @rule: the decision
 * @clock: its clock
 * @known: the same by clocks that hosts have compared
 * @window: bounds found since @opened
 * @opened: when the window began
 * @last: when the newest packet leaves, or left
 * @reported: when the newest report came
 * @stand_down: before this nothing is held
 * @packets: that went there
 * @held: of those, packets that were held
 * @held_ns: for so long together
 * @reports: acknowledgements that told a delay
 * @sent: when the packet left that the newest report is about
 * @delay: its delay over the least one (ns)
 * @round_trip: the least one (ns)
 * @threshold: the one in use (ns)
 */
struct onramp_path {
	struct onramp rule;
	struct onramp_clock clock;
	struct onramp_known known;
	struct onramp_window window;
	onramp_u64 opened;
	onramp_u64 last;
	onramp_u64 reported;
	onramp_u64 stand_down;
	onramp_u64 packets;
	onramp_u64 held;
	onramp_u64 held_ns;
	onramp_u64 reports;
	onramp_u64 sent;
	onramp_u32 delay;
	onramp_u32 round_trip;
	onramp_u32 threshold;
};

/**
 * struct onramp_stamps - an acknowledgement of new data
 * @now: when it came (ns)
 * @value: its TSval (us)
 * @echo: its TSecr without what this host adds to its own stamps (us)
 */
struct onramp_stamps {
	onramp_u64 now;
	onramp_u32 value;
	onramp_u32 echo;
};

/* Packets of one stamp of which it is known when they left. */
#define ONRAMP_SPANS 16u
/* No packet is longer (octets). */
#define ONRAMP_PACKET_MAX (1u << 20)

/**
 * struct onramp_span - a packet that left
 * @first: its first sequence number
 * @end: that behind it
 * @at: when it left (us)
 */
struct onramp_span {
	onramp_u32 first;
	onramp_u32 end;
	onramp_u32 at;
};

/**
 * struct onramp_left - packets with the same stamp, in the order in which they left
 * @count: how many; the last %ONRAMP_SPANS are kept
 * @spans: those
 */
struct onramp_left {
	onramp_u32 count;
	struct onramp_span spans[ONRAMP_SPANS];
};

/* One more has left. */
static inline void onramp_left_add(struct onramp_left *l,
				   const struct onramp_span *span)
{
	l->spans[l->count % ONRAMP_SPANS] = *span;
	l->count++;
}

/**
 * onramp_left_find() - when the packet left in which an acknowledgement ends
 * @l: packets with the stamp that it echoes
 * @acknowledged: what it acknowledges
 * @at: set to that time (us)
 *
 * Another processor may be adding one: a span that is half old and half new is
 * mostly none that a packet can have.
 *
 * Return: 0 if that packet is not among them.
 */
static inline int onramp_left_find(const struct onramp_left *l,
				   onramp_u32 acknowledged, onramp_u32 *at)
{
	onramp_u32 i;

	for (i = 0; i < ONRAMP_SPANS && i < l->count; i++) {
		struct onramp_span span = l->spans[i];

		if (span.end - span.first <= ONRAMP_PACKET_MAX &&
		    acknowledged - span.first - 1 < span.end - span.first) {
			*at = span.at;
			return 1;
		}
	}
	return 0;
}

/* What has become of an acknowledgement. */
enum onramp_reported {
	/* Its delay was reported. */
	ONRAMP_TOLD = 0,
	/* Of too long ago, or of a connection in another unit. */
	ONRAMP_IGNORED = 1,
	/* Its connection has stamps of its own: this one is their zero. */
	ONRAMP_ZEROED = 2,
	/* It answers a packet that had not left yet: nobody keeps them. */
	ONRAMP_NOT_KEPT = 3,
};

static inline int onramp_tcp_config_valid(const struct onramp_tcp_config *c)
{
	return onramp_config_valid(&c->rule) &&
	       c->threshold <= ONRAMP_SPAN_MAX && c->floor <= ONRAMP_SPAN_MAX &&
	       c->drift <= ONRAMP_RATE_MAX;
}

/* How far something moves at a rate in so many nanoseconds. */
static inline onramp_s64 onramp_moved(onramp_u64 elapsed, onramp_s64 rate)
{
	/* At most 2^32 us, after which the modulus of stamps has come round. */
	elapsed = onramp_sooner(elapsed >> 10, (onramp_u64)1 << 32);
	return ((onramp_s64)elapsed * rate) >> (ONRAMP_RATE_BITS - 10);
}

/* The least difference as it is now (ns from the anchor). */
static inline onramp_s64 onramp_clock_least(const struct onramp_clock *k,
					    onramp_u64 now, onramp_u32 drift)
{
	onramp_s64 rate = k->rate;

	/* Clocks are steered: an old estimate is none. */
	rate += k->drift && now < k->estimated + ONRAMP_ESTIMATE ? k->drift :
								  drift;

	return k->least + onramp_moved(now > k->since ? now - k->since : 0, rate);
}

/**
 * onramp_clock_estimated() - the difference of the rates is known better
 * @k: the clock
 * @now: the time
 * @rate: by how much the peer's clock runs faster
 * @drift: by how much that may be too little
 */
static inline void onramp_clock_estimated(struct onramp_clock *k, onramp_u64 now,
					  onramp_s32 rate, onramp_u32 drift)
{
	if (k->since == 0)
		return;
	/* What has passed is known better, too. */
	k->estimated = now;
	k->rate = rate;
	k->drift = drift;
	k->least = onramp_clock_least(k, now, drift);
	k->since = now;
}

/* Nanoseconds as microseconds, modulo 2^32; BPF has no signed division. */
static inline onramp_u32 onramp_micro(onramp_s64 ns)
{
	return ns < 0 ? 0 - (onramp_u32)((0 - (onramp_u64)ns) / ONRAMP_MICROSECOND) :
			(onramp_u32)((onramp_u64)ns / ONRAMP_MICROSECOND);
}

/* A difference in microseconds, as nanoseconds from the anchor. */
static inline onramp_s64 onramp_clock_at(const struct onramp_clock *k,
					 onramp_u32 difference)
{
	return (onramp_s64)(onramp_s32)(difference - k->anchor) *
	       ONRAMP_MICROSECOND;
}

/*
 * The rule's parameters on a path: a threshold of its own, and the default
 * spread of docs/onramp.md, a fifth of what the threshold leaves for a queue.
 */
static inline struct onramp_config
onramp_path_config(const struct onramp_path *p, const struct onramp_tcp_config *c)
{
	struct onramp_config rule = c->rule;

	rule.threshold = c->threshold;
	if (c->threshold == 0)
		rule.threshold = p->round_trip < c->floor / 2 ?
					 c->floor :
					 onramp_min(2 * p->round_trip,
						    ONRAMP_SPAN_MAX);
	rule.spread = rule.threshold / 5;
	return rule;
}

/**
 * onramp_path_told() - hosts have compared their clocks
 * @p: the path to the peer
 * @now: the time
 * @ahead: the peer's CLOCK_MONOTONIC less ours (ns)
 * @error: by how much that may be wrong (ns)
 *
 * Nothing comes of it if stamps have contradicted it of late.
 */
static inline void onramp_path_told(struct onramp_path *p, onramp_u64 now,
				    onramp_s64 ahead, onramp_u32 error)
{
	struct onramp_known *k = &p->known;

	if (p->clock.since == 0 || now < k->refused)
		return;
	if (k->told == 0) {
		k->turned = now;
		k->nearest[0] = k->nearest[1] = ONRAMP_SPAN_MAX;
		k->trips[0] = k->trips[1] = ONRAMP_SPAN_MAX;
	}
	k->told = now;
	k->ahead = onramp_clock_at(&p->clock, onramp_micro(ahead));
	k->error = error;
}

/* Least values of the last half minute and of the one before: a path changes. */
static inline void onramp_known_least(struct onramp_known *k, onramp_u64 now,
				      onramp_s64 took, onramp_u32 trip)
{
	if (now > k->turned + ONRAMP_TURN) {
		k->turned = now;
		k->nearest[1] = k->nearest[0];
		k->nearest[0] = took;
		k->trips[1] = k->trips[0];
		k->trips[0] = trip;
	}
	if (took < k->nearest[0])
		k->nearest[0] = took;
	k->trips[0] = onramp_min(k->trips[0], trip);
}

/* Whether clocks are told well enough: to a quarter of the threshold. */
static inline int onramp_known_holds(const struct onramp_known *k, onramp_u64 now,
				     onramp_u32 threshold)
{
	return k->told != 0 && now <= k->told + ONRAMP_KNOWN &&
	       k->error <= threshold / 4;
}

/* Whether stamps can be of these clocks: nothing arrives before it was sent. */
static inline int onramp_known_agrees(const struct onramp_known *k, onramp_s64 at,
				      onramp_s64 back)
{
	onramp_s64 error = k->error;

	return at - k->ahead >= -error && k->ahead - back >= -error;
}

/*
 * The delay over that of an empty path, by clocks that are known. That of an
 * empty path is the least one of late. What is first to see a path may see it
 * with a queue: no more than half of the least round trip, if that is less, but
 * by no more than a quarter of the threshold, as ways there and back may differ.
 *
 * Return: -1 if they are not known well enough, or cannot be right.
 */
static inline onramp_s64 onramp_known_delay(struct onramp_known *k,
					    onramp_u64 now, onramp_s64 at,
					    onramp_s64 back, onramp_u32 trip,
					    onramp_u32 threshold)
{
	onramp_s64 took = at - k->ahead, least, half;

	if (!onramp_known_holds(k, now, threshold))
		return -1;
	if (!onramp_known_agrees(k, at, back)) {
		k->told = 0;
		k->refused = now + ONRAMP_STAND_DOWN;
		return -1;
	}
	k->used = now;
	onramp_known_least(k, now, took, trip);
	least = k->nearest[k->nearest[1] < k->nearest[0]];
	half = onramp_min(k->trips[0], k->trips[1]) / 2;
	if (half < least - threshold / 4)
		half = least - threshold / 4;
	return took - (half < least ? half : least);
}

/**
 * onramp_path_release() - when a packet may leave
 * @p: its path
 * @c: the configuration
 * @now: the time
 * @queued: when it was handed over, or was to leave by itself
 *
 * Return: @queued, or later by at most max_hold.
 */
static inline onramp_u64
onramp_path_release(const struct onramp_path *p,
		    const struct onramp_tcp_config *c, onramp_u64 now,
		    onramp_u64 queued)
{
	struct onramp_config rule = onramp_path_config(p, c);

	if (now < p->stand_down || c->drain)
		return queued;
	return onramp_sooner(onramp_release(&p->rule, &rule, now, queued),
			     onramp_after(queued, rule.max_hold));
}

/**
 * onramp_path_leave() - a packet leaves
 * @p: its path
 * @c: the configuration
 * @when: then
 * @queued: when it was handed over; @when if it was not held
 */
static inline void onramp_path_leave(struct onramp_path *p,
				     const struct onramp_tcp_config *c,
				     onramp_u64 when, onramp_u64 queued)
{
	struct onramp_config rule = onramp_path_config(p, c);

	onramp_on_release(&p->rule, &rule, when, queued);
	p->packets++;
	p->last = when;
	if (when > queued) {
		p->held++;
		p->held_ns += when - queued;
	}
}

/**
 * onramp_path_depart() - a packet is handed over
 * @p: its path
 * @c: the configuration
 * @now: the time
 * @queued: when it was to leave by itself; @now or later
 *
 * Return: when it is to leave: @queued, or later by at most max_hold.
 */
static inline onramp_u64
onramp_path_depart(struct onramp_path *p, const struct onramp_tcp_config *c,
		   onramp_u64 now, onramp_u64 queued)
{
	onramp_u64 when = onramp_path_release(p, c, now, queued);

	/* In order; and no longer than it may be, whatever is before. */
	when = onramp_sooner(onramp_later(when, p->last),
			     onramp_after(queued, c->rule.max_hold));
	onramp_path_leave(p, c, when, queued);
	return when;
}

/* Both bounds that an acknowledgement shows, if they are nearer. */
static inline void onramp_window_add(struct onramp_path *p,
				     const struct onramp_stamps *s,
				     onramp_u64 sent, onramp_s64 upper,
				     onramp_s64 lower)
{
	struct onramp_window *w = &p->window;

	if (w->upper_at == 0 || upper < w->upper) {
		w->upper_at = sent;
		w->upper = upper;
	}
	if (w->lower_at == 0 || lower > w->lower) {
		w->lower_at = s->now;
		w->lower = lower;
	}
}

/**
 * onramp_path_observe() - an acknowledgement of new data has come
 * @p: the path to the host that it is from
 * @n: its connection
 * @c: the configuration
 * @s: its stamps
 * @closed: a window that this acknowledgement ends; @upper_at is 0 for none
 *
 * Return: what has become of it: after ONRAMP_TOLD, onramp_path_decide().
 */
static inline enum onramp_reported
onramp_path_observe(struct onramp_path *p, struct onramp_connection *n,
		    const struct onramp_tcp_config *c,
		    const struct onramp_stamps *s, struct onramp_window *closed)
{
	/* Who was first to look at the clock is not first to have the lock. */
	onramp_u64 time = onramp_later(s->now, p->reported);
	onramp_u32 now = (onramp_u32)(s->now / ONRAMP_MICROSECOND);
	onramp_u32 ago = now - s->echo;
	onramp_u32 difference = s->value - s->echo - n->zero;
	struct onramp_clock *k = &p->clock;
	onramp_u64 sent;
	onramp_s64 at, back, least, delay, most, known;
	onramp_u32 threshold;

	closed->upper_at = 0;
	if (ago >= 0x80000000u) {
		/* Stamps are cut to microseconds, so that this is no rounding. */
		p->stand_down = time + ONRAMP_STAND_DOWN;
		return ONRAMP_NOT_KEPT;
	}
	if (ago > ONRAMP_STALE || n->zeros > ONRAMP_ZEROS_MAX)
		return ONRAMP_IGNORED;
	sent = s->now - (onramp_u64)ago * ONRAMP_MICROSECOND;
	if (k->since == 0 || time - p->reported > ONRAMP_IDLE) {
		/* The path may be another one by now, and the clocks have moved. */
		k->least = 0;
		k->rate = 0;
		k->drift = 0;
		p->known.told = 0;
		p->window.upper_at = 0;
		p->window.lower_at = 0;
		p->round_trip = 0;
		k->since = time;
		k->anchor = difference;
	}
	at = onramp_clock_at(k, difference);
	least = onramp_clock_least(k, time, c->drift);
	delay = at - least;
	back = onramp_clock_at(k, s->value - now - n->zero);
	threshold = onramp_path_config(p, c).threshold;
	if ((delay > (onramp_s64)ONRAMP_APART * ONRAMP_MICROSECOND ||
	     delay < -(onramp_s64)ONRAMP_APART * ONRAMP_MICROSECOND) &&
	    !(onramp_known_holds(&p->known, time, threshold) &&
	      onramp_known_agrees(&p->known, at, back))) {
		/* Taken for a packet without a queue: who knows better? */
		n->zero += onramp_micro(delay);
		n->zeros++;
		return ONRAMP_ZEROED;
	}
	if (delay < 0 && n->zeros > 0) {
		n->zero += onramp_micro(delay);
		delay = 0;
	} else if (delay <= 0) {
		k->since = time;
		k->least = at;
		delay = 0;
	}
	/* 0 is no round trip: as long as there is none the floor holds. */
	if (p->round_trip == 0 || s->now - sent < p->round_trip)
		p->round_trip = onramp_span(sent, s->now) | 1;
	/*
	 * A queue delays no more than it adds to the round trip, in which
	 * holding is not. What is more is the clocks', or forged.
	 */
	most = (onramp_s64)onramp_span(sent, s->now) - p->round_trip + c->floor / 2;
	if (delay > most) {
		if (n->zeros == 0) {
			k->since = time;
			k->least = at - most;
		}
		delay = most;
	}
	if (n->zeros == 0) {
		if (p->opened >> ONRAMP_WINDOW_BITS != time >> ONRAMP_WINDOW_BITS) {
			*closed = p->window;
			p->window.upper_at = 0;
			p->window.lower_at = 0;
			p->opened = time;
		}
		onramp_window_add(p, s, sent, at, back);
		known = onramp_known_delay(&p->known, time, at, back,
					   onramp_span(sent, s->now), threshold);
		if (known >= 0)
			delay = known;
	}

	p->reports++;
	p->reported = time;
	p->sent = sent;
	p->delay = onramp_span(0, (onramp_u64)delay);
	return ONRAMP_TOLD;
}

/**
 * onramp_path_decide() - a delay was observed
 * @p: the path
 * @c: the configuration
 */
static inline void onramp_path_decide(struct onramp_path *p,
				      const struct onramp_tcp_config *c)
{
	struct onramp_config rule = onramp_path_config(p, c);

	onramp_on_report(&p->rule, &rule, p->reported, p->sent, p->delay);
	p->threshold = rule.threshold;
}

#endif /* INCAST_ONRAMP_TCP_H */
