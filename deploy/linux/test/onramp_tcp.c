// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * onramp_tcp.h: cases that can be followed by hand, a model of a path with a
 * clock of its own, and random calls, forged ones among them.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../onramp_tcp.h"

#define MS 1000000ull
#define SECOND 1000000000ull
#define HOLD (5 * MS)

static int failed;

#define CHECK(condition)                                                      \
	do {                                                                  \
		if (!(condition)) {                                           \
			printf("onramp_tcp: line %d: %s\n", __LINE__, #condition); \
			failed = 1;                                           \
		}                                                             \
	} while (0)

static const struct onramp_tcp_config defaults = {
	.rule = { .max_hold = HOLD, .quantum = 1, .small_quantum = 1,
		  .beta = 49152, .reference = 9842, .gain = 16384, .step = 32768,
		  .variant = ONRAMP_PAPER, .release = ONRAMP_PACED },
	.floor = 50000,
	.drift = 107374,
};

static unsigned long long seed = 1;

static unsigned long long draw(void)
{
	/* Marsaglia, "Xorshift RNGs", 2003. */
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* The peer's clock: it began at another time and runs at another rate. */
static onramp_u32 peer(onramp_u64 now, double ppm)
{
	return (onramp_u32)(987654321ull + now / 1000 +
			    (long long)((double)now * ppm * 1e-9));
}

/* A packet that took so long, and whose acknowledgement took 50 us. */
static enum onramp_reported answer(struct onramp_path *p,
				   struct onramp_connection *n,
				   const struct onramp_tcp_config *c,
				   onramp_u64 sent, onramp_u64 delay, double ppm,
				   struct onramp_window *closed)
{
	struct onramp_stamps s = { .now = sent + delay + 50000,
				   .value = peer(sent + delay, ppm),
				   .echo = (onramp_u32)(sent / 1000) };
	enum onramp_reported reported = onramp_path_observe(p, n, c, &s, closed);

	if (reported == ONRAMP_TOLD)
		onramp_path_decide(p, c);
	return reported;
}

static void by_hand(void)
{
	struct onramp_path p = { 0 };
	struct onramp_connection n = { 0 }, other = { 0 };
	struct onramp_window closed;
	struct onramp_stamps late;
	const struct onramp_tcp_config *c = &defaults;
	onramp_u64 at = 3 * SECOND;

	CHECK(onramp_tcp_config_valid(c));
	/* The first packet is taken for one without a queue. */
	CHECK(answer(&p, &n, c, at, 150000, 0, &closed) == ONRAMP_TOLD);
	CHECK(p.delay == 0 && p.round_trip == 200001);
	CHECK(p.threshold == 400002);
	CHECK(onramp_path_depart(&p, c, at, at) == at);
	/* A faster one shows that it was not; then both differ by what they do. */
	answer(&p, &n, c, at + MS, 20000, 0, &closed);
	CHECK(p.delay == 0 && p.round_trip == 70001);
	answer(&p, &n, c, at + 2 * MS, 100000, 0, &closed);
	/* Drift of 100 ppm in 1.1 ms is 110 ns; stamps are whole microseconds. */
	CHECK(p.delay >= 79000 && p.delay <= 81000);
	CHECK(onramp_path_depart(&p, c, at + 3 * MS, at + 3 * MS) == at + 3 * MS);
	/* 400 us are 260 over the threshold of twice the round trip. */
	answer(&p, &n, c, at + 4 * MS, 420000, 0, &closed);
	CHECK(p.threshold == 140002 && p.delay > 398000 && p.delay < 402000);
	CHECK(p.rule.pause_until > at + 4 * MS + 470000 + 250000);
	CHECK(onramp_path_depart(&p, c, at + 5 * MS, at + 5 * MS) >= at + 5 * MS);

	/* Another connection has stamps of its own, and its first packet is its zero. */
	late = (struct onramp_stamps){ .now = at + 6 * MS, .value = 12345,
				       .echo = (onramp_u32)((at + 5 * MS) / 1000) };
	CHECK(onramp_path_observe(&p, &other, c, &late, &closed) == ONRAMP_ZEROED);
	late.now += 100000;
	late.echo += 90; /* 10 us less than before: it was not the fastest */
	late.value += 80;
	CHECK(onramp_path_observe(&p, &other, c, &late, &closed) == ONRAMP_TOLD);
	CHECK(p.delay == 0);
	/* Stamps that jump again and again are in another unit. */
	for (int i = 0; i < 5; i++) {
		late.value += 10000000;
		onramp_path_observe(&p, &other, c, &late, &closed);
	}
	CHECK(onramp_path_observe(&p, &other, c, &late, &closed) == ONRAMP_IGNORED);

	/* Too old to be about anything; and answered before it was to leave. */
	late.echo -= 2000000;
	CHECK(onramp_path_observe(&p, &n, c, &late, &closed) == ONRAMP_IGNORED);
	late.echo = (onramp_u32)(late.now / 1000) + 10;
	CHECK(onramp_path_observe(&p, &n, c, &late, &closed) == ONRAMP_NOT_KEPT);
	answer(&p, &n, c, late.now, 900000, 0, &closed);
	CHECK(onramp_path_depart(&p, c, late.now + MS, late.now + MS) == late.now + MS);
}

/* Largest delay that is seen without a queue, in the last two of ten seconds. */
static onramp_u32 largest(double ppm, int estimated)
{
	struct onramp_path p = { 0 };
	struct onramp_connection n = { 0 };
	struct onramp_window closed;
	onramp_u32 most = 0;
	int windows = 0;

	for (onramp_u64 at = SECOND; at < 11 * SECOND; at += 100000) {
		answer(&p, &n, &defaults, at, 20000, ppm, &closed);
		windows += closed.upper_at != 0;
		if (estimated && at == 2 * SECOND)
			onramp_clock_estimated(&p.clock, at,
					       (int)(ppm * 1073.741824), 5369);
		if (at > 9 * SECOND && p.delay > most)
			most = p.delay;
	}
	CHECK(windows >= 36 && windows <= 38);
	return most;
}

static void clocks(void)
{
	/* Faster by what is allowed for, slower, and by more: half of the floor. */
	CHECK(largest(90, 0) <= 2000);
	CHECK(largest(-90, 0) <= 2000);
	CHECK(largest(300, 0) > 20000 && largest(300, 0) <= 26000);
	CHECK(largest(300, 1) <= 2000);
}

/* What stamps tell of a path of 20 us each way, for three seconds. */
struct told {
	onramp_u32 first, last, refused;
};

/*
 * The path is seen first with a queue, which stays. The hosts have compared
 * their clocks every second, and are wrong by an offset.
 */
static struct told compared(const struct onramp_tcp_config *c, onramp_u64 queue,
			    onramp_s64 wrong, onramp_u32 error)
{
	struct onramp_path p = { 0 };
	struct onramp_connection n = { 0 };
	struct onramp_window closed;
	struct told told = { 0 };

	for (onramp_u64 at = SECOND; at < 4 * SECOND; at += 100000) {
		onramp_u64 came = at + 20000 + queue;
		struct onramp_stamps s = { .now = came + 20000,
					   .value = peer(came, 0.1),
					   .echo = (onramp_u32)(at / 1000) };

		if (at % SECOND == 100000)
			onramp_path_told(&p, at,
					  (onramp_s64)(987654321000ll + (double)at * 1e-7) + wrong,
					  error);
		CHECK(onramp_path_observe(&p, &n, c, &s, &closed) == ONRAMP_TOLD);
		if (at == SECOND + 200000)
			told.first = p.delay;
	}
	told.last = p.delay;
	told.refused = p.known.refused != 0;
	return told;
}

static void differences(void)
{
	struct onramp_tcp_config c = defaults;
	struct told told;

	/* The queue is seen, but for the half that is taken for the way back; and stays. */
	told = compared(&c, 200000, 0, 0);
	CHECK(told.first >= 99000 && told.first <= 101000);
	CHECK(told.last >= 99000 && told.last <= 101000 && !told.refused);
	/* An error within what is said of it. */
	told = compared(&c, 200000, -20000, 20000);
	CHECK(told.first >= 118000 && told.first <= 121000 && !told.refused);
	/* No more of it than a quarter of the threshold: ways may differ. */
	c.threshold = 100000;
	told = compared(&c, 200000, 0, 0);
	CHECK(told.first >= 24000 && told.first <= 26000);
	CHECK(told.last >= 24000 && told.last <= 26000 && !told.refused);
	/* More than a quarter of the threshold: as if nothing was said. */
	told = compared(&c, 200000, 0, 25001);
	CHECK(told.first <= 1000 && !told.refused);
	/* A clock that was set by a second, whatever it says of its error. */
	told = compared(&c, 200000, 1000000000, 1000);
	CHECK(told.first <= 1000 && told.last <= 1000 && told.refused);
	told = compared(&c, 200000, -1000000000, 1000);
	CHECK(told.first <= 1000 && told.last <= 1000 && told.refused);
	/* Nothing arrives before it was sent, either way. */
	told = compared(&c, 0, 45000, 10000);
	CHECK(told.first <= 1000 && told.refused);
	told = compared(&c, 0, -45000, 10000);
	CHECK(told.first <= 1000 && told.refused);
	/* Without a queue nothing is seen that is none. */
	told = compared(&c, 0, 15000, 25000);
	CHECK(told.first <= 1000 && told.last <= 1000 && !told.refused);
	told = compared(&c, 0, -15000, 25000);
	CHECK(told.first >= 14000 && told.first <= 16000 && !told.refused);
}

/*
 * Delay at the end of two minutes by clocks that are known to 5 us, on a path of
 * 20 us each way that becomes longer after one second, or of which one stamp is
 * forged then. What both do passes.
 */
static void ending(onramp_u64 longer, onramp_s32 forged_value, onramp_u32 forged_echo)
{
	struct onramp_tcp_config c = defaults;
	struct onramp_path p = { 0 };
	struct onramp_connection n = { 0 };
	struct onramp_window closed;
	onramp_u32 after = 0;

	c.threshold = 60000;
	for (onramp_u64 at = SECOND; at < 121 * SECOND; at += 500000) {
		onramp_u64 way = 20000 + (at >= 2 * SECOND ? longer : 0);
		struct onramp_stamps s = { .now = at + way + 20000,
					   .value = peer(at + way, 0),
					   .echo = (onramp_u32)(at / 1000) };

		if (at % SECOND == 500000)
			onramp_path_told(&p, at, 987654321000ll, 5000);
		if (at == 2 * SECOND) {
			s.value += (onramp_u32)forged_value;
			s.echo += forged_echo;
		}
		onramp_path_observe(&p, &n, &c, &s, &closed);
		if (at == 3 * SECOND)
			after = p.delay;
	}
	CHECK(after >= (longer ? longer - 1000 : 10000) && after <= (longer ? longer : 20000) + 5000);
	/* The way there is now longer than the way back. */
	CHECK(p.delay <= (longer ? c.threshold / 4 : 1000) && p.known.used == p.reported);
}

/* A delay of 300 ms is one, and no other clock, if clocks are known. */
static void standing_still(int known)
{
	struct onramp_path p = { 0 };
	struct onramp_connection n = { 0 };
	struct onramp_window closed;

	answer(&p, &n, &defaults, SECOND, 20000, 0, &closed);
	if (known)
		onramp_path_told(&p, SECOND + MS / 2, 987654321000ll, 2000);
	answer(&p, &n, &defaults, SECOND + MS, 20000, 0, &closed);
	CHECK(answer(&p, &n, &defaults, SECOND + 2 * MS, 300 * MS, 0, &closed) ==
	      (known ? ONRAMP_TOLD : ONRAMP_ZEROED));
	CHECK(!known || (p.delay > 290 * MS && p.delay <= 300 * MS));
	/* Stamps of another clock are another one's, and do not contradict it. */
	n.zeros = 0;
	CHECK(answer(&p, &n, &defaults, SECOND + 400 * MS, 20000, 1e6, &closed) == ONRAMP_ZEROED);
	CHECK(p.known.refused == 0);
}

/* One that is older than the last, and one that is forged, are soon nothing. */
static void passing(void)
{
	struct onramp_path p = { 0 };
	struct onramp_connection n = { 0 };
	struct onramp_window closed;
	struct onramp_stamps s;
	onramp_u64 at = 9 * SECOND;

	answer(&p, &n, &defaults, at, 20000, 0, &closed);
	answer(&p, &n, &defaults, at + MS, 20000, 0, &closed);
	answer(&p, &n, &defaults, at + MS - 5000, 20000, 0, &closed);
	CHECK(p.round_trip == 70001 && p.clock.anchor != 0);
	answer(&p, &n, &defaults, at + 2 * MS, 200000, 0, &closed);
	CHECK(p.delay > 179000 && p.delay < 181000);
	/* 200 ms too low: the least difference is. */
	at += 3 * MS;
	s = (struct onramp_stamps){ .now = at + 70000,
				    .value = peer(at, 0) - 200000,
				    .echo = (onramp_u32)(at / 1000) };
	CHECK(onramp_path_observe(&p, &n, &defaults, &s, &closed) == ONRAMP_TOLD);
	answer(&p, &n, &defaults, at + MS, 20000, 0, &closed);
	CHECK(p.delay <= 25001);
	answer(&p, &n, &defaults, at + 2 * MS, 120000, 0, &closed);
	CHECK(p.delay > 99000 && p.delay < 126000);
}

/* Whatever comes: no packet is kept longer than it may, or overtakes another. */
static void forged(void)
{
	for (int run = 0; run < 400; run++) {
		struct onramp_tcp_config c = defaults;
		struct onramp_path p = { 0 };
		struct onramp_connection n[3] = { { 0 } };
		struct onramp_window closed;
		onramp_u64 now = draw() >> (run % 40), newest = 0;

		c.threshold = run % 3 ? (onramp_u32)(draw() % 1000000) : 0;
		c.rule.variant = (onramp_u8)(draw() % 3);
		c.rule.release = (onramp_u8)(draw() % 2);
		now = now % (1ull << 62) + 1;
		for (int call = 0; call < 3000; call++) {
			struct onramp_stamps s;
			onramp_u64 when;

			now += draw() % 100 ? draw() % 200000 : draw() % (2 * SECOND);
			/* Another processor may have been first. */
			s.now = now - (now > MS ? draw() % MS : 0);
			s.echo = (onramp_u32)(s.now / 1000) - (onramp_u32)(draw() % 1000);
			s.value = s.echo + 777 + (onramp_u32)(draw() % 5000);
			if (draw() % 20 == 0)
				s.value = (onramp_u32)draw();
			if (draw() % 500 == 0)
				s.echo = (onramp_u32)draw();
			if (run % 2 && draw() % 50 == 0)
				onramp_path_told(&p, now, draw() % 9 ? (onramp_s64)draw() : INT64_MIN,
						  (onramp_u32)(draw() >> (32 + draw() % 32)));
			else if (run % 2 && draw() % 50 == 0)
				onramp_path_told(&p, now, 777000,
						  (onramp_u32)draw() % 30000);
			if (onramp_path_observe(&p, &n[draw() % 3], &c, &s, &closed) ==
			    ONRAMP_TOLD)
				onramp_path_decide(&p, &c);
			when = onramp_path_depart(&p, &c, now, now);
			if (when < now || when > now + HOLD || when < newest) {
				printf("onramp_tcp: run %d, call %d: a packet of %llu leaves at %llu, behind %llu\n",
				       run, call, (unsigned long long)now,
				       (unsigned long long)when,
				       (unsigned long long)newest);
				failed = 1;
				return;
			}
			newest = when;
		}
	}
}

/* An acknowledgement is of the packet in which it ends, wherever in it. */
static void departures(void)
{
	struct onramp_left left = { .count = 0 };
	struct onramp_span span;
	onramp_u32 at = 0, i, first = 0u - 3000u;

	CHECK(!onramp_left_find(&left, 1, &at));
	/* Twenty packets of 1,000 octets, of which the fourth begins at 0; a FIN. */
	for (i = 0; i < 20; i++) {
		span = (struct onramp_span){ first + 1000 * i, first + 1000 * (i + 1), 100 + i };
		onramp_left_add(&left, &span);
	}
	span = (struct onramp_span){ span.end, span.end + 1, 200 };
	onramp_left_add(&left, &span);
	/* The last sixteen are kept. */
	CHECK(!onramp_left_find(&left, first + 5000, &at));
	CHECK(onramp_left_find(&left, first + 5001, &at) && at == 105);
	CHECK(onramp_left_find(&left, first + 6000, &at) && at == 105);
	CHECK(onramp_left_find(&left, first + 6001, &at) && at == 106);
	CHECK(onramp_left_find(&left, span.end, &at) && at == 200);
	CHECK(!onramp_left_find(&left, span.end + 1, &at));
	left.count = 0;
	for (i = 0; i < 5; i++) {
		span = (struct onramp_span){ first + 1000 * i, first + 1000 * (i + 1), 100 + i };
		onramp_left_add(&left, &span);
	}
	/* Over the end of sequence numbers. */
	CHECK(!onramp_left_find(&left, first, &at));
	CHECK(onramp_left_find(&left, 0, &at) && at == 102);
	CHECK(onramp_left_find(&left, 1, &at) && at == 103);
	/* Half of one packet and half of another. */
	left.spans[0].first = first + 9000;
	CHECK(!onramp_left_find(&left, first + 500, &at));
}

int main(void)
{
	departures();
	by_hand();
	clocks();
	differences();
	standing_still(0);
	standing_still(1);
	ending(200000, 0, 0);
	/* Within the error of the clocks, 4 us before it was sent; a round trip of 1 us. */
	ending(0, -24, 0);
	ending(0, 39 - 20, 39);
	passing();
	forged();
	if (!failed)
		printf("onramp_tcp: stamps, clocks and 1,200,000 random calls\n");
	return failed;
}
