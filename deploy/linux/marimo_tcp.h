/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What a TCP needs around marimo.h: recovery, undo, restart after idle, what
 * limits a window, pacing, the receiver's echo of CE, and a look at the peer's.
 *
 * Freestanding integer C without types of any kernel, shared by the module
 * (tcp_marimo) and the BPF object (bpf_marimo). They copy numbers of a socket
 * in and out; what is decided is decided here or in marimo.h.
 * docs/marimo.md, "In a kernel", has the mapping.
 *
 * The host calls, serialised for one connection:
 *  - marimo_tcp_init() when the connection is established
 *  - marimo_tcp_on_ack() at the end of each acknowledgement (cong_control)
 *  - marimo_tcp_on_state() before its recovery state changes (set_state)
 *  - marimo_tcp_on_timeout() when a timeout begins an episode of its own
 *    (CA_EVENT_LOSS), before the change of state
 *  - marimo_tcp_on_undo() when a reduction for a loss was spurious (undo_cwnd)
 *  - marimo_tcp_on_start() when it sends after a pause (CA_EVENT_TX_START)
 *  - marimo_tcp_echo() for each segment of data received
 *
 * Divisions are 32-bit and unsigned: one per acknowledgement for the pacing
 * rate, one more in recovery, and those of marimo.h. No function has more than
 * the five arguments that BPF can pass.
 */
#ifndef INCAST_MARIMO_TCP_H
#define INCAST_MARIMO_TCP_H

#ifdef MARIMO_HEADER_STAGED
#include "marimo.h"
#else
#include "../core/marimo.h"
#endif

/* Recovery states; Linux numbers them alike. */
enum marimo_tcp_state {
	MARIMO_TCP_OPEN = 0,
	MARIMO_TCP_DISORDER = 1,
	MARIMO_TCP_CWR = 2,
	MARIMO_TCP_RECOVERY = 3,
	MARIMO_TCP_LOSS = 4,
};

/* Bits of struct marimo_tcp.flags. */
#define MARIMO_TCP_CE 1u /* the last segment received carried CE */
#define MARIMO_TCP_UNDO 2u /* the undo fields hold a state to go back to */
#define MARIMO_TCP_EXPIRED 4u /* a timeout begins an episode of its own */
#define MARIMO_TCP_RUN 8u /* the last acknowledgement carried an echo */
#define MARIMO_TCP_SAFE 16u /* progress without further losses (RFC 9937) */
#define MARIMO_TCP_SEEN 32u /* a mark has been echoed, once at least */
#define MARIMO_TCP_DOUBT 192u /* a test of ECN: enum marimo_tcp_doubt */

/*
 * A loss before any mark puts ECN into doubt: the queue that was full should
 * have marked long before. Somebody may take marks off the packets, or the
 * peer may not know that ECN was negotiated (a listener that answered with a
 * SYN cookie). Hosts that can mark packets themselves test it with CE on what
 * they send next, which must be echoed (RFC 9002, section 8.3; RFC 8311 has
 * the nonce of RFC 3540 replaced by such tests); until that is acknowledged no
 * mark counts. Two tests in succession without an echo are an answer, as the
 * acknowledgement with the only one may be lost. Hosts that cannot mark take
 * the eighth loss before any mark for one: some losses are no congestion.
 */
enum marimo_tcp_doubt {
	MARIMO_TCP_NO_DOUBT = 0,
	MARIMO_TCP_TEST = 64, /* to be tested */
	MARIMO_TCP_TESTING = 128, /* what leaves carries CE */
	MARIMO_TCP_TESTED = 192, /* that is on its way */
};

/* Losses before any mark, or tests without an echo, at which ECN has failed. */
#define MARIMO_TCP_LOSSES 8u
#define MARIMO_TCP_TESTS 2u

/*
 * Who can, sends again without ECT from the second timeout in a row on, until
 * the host has recovered (RFC 3168, section 6.1.5, has that for every
 * retransmission; RFC 8257 has retransmissions marked as other packets are). If
 * that comes through, and data with ECT then times out, it is the third.
 */
#define MARIMO_TCP_AGAIN_NOT_ECT 2u

/* ECN field of what is sent: struct marimo_tcp_decision.codepoint. */
enum marimo_tcp_codepoint {
	MARIMO_TCP_SEND_ECT = 0,
	MARIMO_TCP_SEND_CE = 1,
	MARIMO_TCP_SEND_NOT_ECT = 2,
};

/* What is known of how the peer echoes CE: struct marimo_tcp.peer. */
#define MARIMO_TCP_PEER_LATCHES 32u /* suspected: an error once in 2^32 */

#define MARIMO_TCP_NO_THRESHOLD 0x7fffffffu /* Linux: TCP_INFINITE_SSTHRESH */

/*
 * max_increase of the rule "settling" in packets, unless increase is larger.
 * The simulator has BDP/16; hosts know no BDP and take that of 64 packets.
 */
#define MARIMO_TCP_SETTLING_INCREASE 4

/**
 * struct marimo_tcp - state of one connection
 * @core: the algorithm
 * @delivered: packets delivered that @core has been told of, modulo 2^32
 * @delivered_ce: how many of them were marked, modulo 2^32
 * @una: position up to which everything was acknowledged last time
 * @echo_next: what the receiver expected after the segment before
 * @prr_start: packets delivered when recovery began
 * @prr_last: packets delivered when it last chose a window
 * @prr_sent: packets sent when recovery began
 * @prr_flight: packets in the window of data when recovery began (RecoverFS),
 *	65535 if there are more
 * @mss: bytes of a packet, as of the last time
 * @undo_window: @core's window before the reduction that may be undone
 * @undo_threshold: its threshold
 * @undo_rho: its load
 * @run_end: first position never sent when the run of echoes began: where the
 *	segment with CWR begins; before any mark, where the test of ECN began
 *	or ends
 * @cwr_end: first position never sent when the host entered CWR
 * @flags: MARIMO_TCP_CE and so on
 * @undo_flags: @core's flags before that reduction
 * @peer: evidence that the peer latches its echo, in bits
 * @run_bits: what the run of echoes under way can add to it; before any mark,
 *	how often ECN was found not to work
 */
struct marimo_tcp {
	struct marimo core;
	marimo_u32 delivered;
	marimo_u32 delivered_ce;
	marimo_u32 una;
	marimo_u32 echo_next;
	marimo_u32 prr_start;
	marimo_u32 prr_last;
	marimo_u32 prr_sent;
	__UINT16_TYPE__ prr_flight;
	__UINT16_TYPE__ mss;
	marimo_u32 undo_window;
	marimo_u32 undo_threshold;
	marimo_u32 undo_rho;
	marimo_u32 run_end;
	marimo_u32 cwr_end;
	marimo_u8 flags;
	marimo_u8 undo_flags;
	marimo_u8 peer;
	marimo_u8 run_bits;
};

/* ICSK_CA_PRIV_SIZE of Linux. */
_Static_assert(sizeof(struct marimo_tcp) <= 104, "a socket has 104 bytes");

/**
 * struct marimo_tcp_sample - a socket as it is now
 * @delivered: packets delivered so far, modulo 2^32
 * @delivered_ce: how many of them were echoed as marked, modulo 2^32
 * @una: everything below has been acknowledged
 * @next: first position never sent
 * @flight: packets between @una and @next
 * @pipe: packets in flight (RFC 6675): without those acknowledged or lost
 * @sent: packets sent so far with retransmissions, modulo 2^32
 * @lost: packets that this acknowledgement newly shows to be lost
 * @window: the socket's congestion window
 * @threshold: the socket's slow start threshold
 * @peak: most packets out in the last window of data
 * @clamp: largest window that the socket may have
 * @mss: bytes of a packet
 * @srtt: smoothed round trip in 1/8 microseconds, 0 if there is none yet
 * @receive_next: position that its receiving side expects
 * @idle: time since it last sent data, in any unit
 * @timeout: its retransmission timeout in the same unit
 * @state: enum marimo_tcp_state, before a change
 * @becomes: the state it changes to
 * @limited: the window held back data in the last window of data
 * @exact: the echo is exact by protocol (AccECN)
 * @restart: windows are to shrink while it is idle
 * @marks: the host can put CE on what it sends
 * @plain: what it sends again can be without ECT
 *
 * @receive_next is for marimo_tcp_init() only, @becomes for
 * marimo_tcp_on_state(), @idle, @timeout and @restart for
 * marimo_tcp_on_start().
 */
struct marimo_tcp_sample {
	marimo_u32 delivered;
	marimo_u32 delivered_ce;
	marimo_u32 una;
	marimo_u32 next;
	marimo_u32 flight;
	marimo_u32 pipe;
	marimo_u32 sent;
	marimo_u32 lost;
	marimo_u32 window;
	marimo_u32 threshold;
	marimo_u32 peak;
	marimo_u32 clamp;
	marimo_u32 mss;
	marimo_u32 srtt;
	marimo_u32 receive_next;
	marimo_u32 idle;
	marimo_u32 timeout;
	marimo_u8 state;
	marimo_u8 becomes;
	marimo_u8 limited;
	marimo_u8 exact;
	marimo_u8 restart;
	marimo_u8 marks;
	marimo_u8 plain;
};

/* Bits of struct marimo_tcp_decision.events: what @core was told, in order. */
#define MARIMO_TCP_DID_ACK 1u /* marimo_on_ack() with @ack */
#define MARIMO_TCP_DID_LOSS 2u /* marimo_on_loss() with @ack's positions */
#define MARIMO_TCP_DID_TIMEOUT 4u /* marimo_on_timeout() with @ack's next */
#define MARIMO_TCP_DID_IDLE 8u /* marimo_on_idle() with @ack's next */
#define MARIMO_TCP_DID_RESTART 16u /* window and threshold set, after idle */
#define MARIMO_TCP_DID_UNDO 32u /* window, threshold and load set back */
#define MARIMO_TCP_DID_EPOCH 64u /* an epoch ended */
#define MARIMO_TCP_DID_SUSPECT 128u /* the peer's echo was found inflated */
#define MARIMO_TCP_DID_INIT 256u /* marimo_init(), window and threshold set */
#define MARIMO_TCP_DID_RESIZE 512u /* first of all, windows: packets grew */
#define MARIMO_TCP_DID_FAIL 1024u /* ECN has failed: another's connection */
#define MARIMO_TCP_DID_FAIL_ECT 2048u /* as what has ECT does not arrive */

/**
 * struct marimo_tcp_decision - what the socket is to be
 * @ack: what @core was told, so that a run can be replayed
 * @pacing: bytes per second, 0 while there is no round trip to go by
 * @window: its congestion window
 * @threshold: its slow start threshold
 * @events: MARIMO_TCP_DID_ACK and so on
 * @codepoint: enum marimo_tcp_codepoint, of data from now on
 */
struct marimo_tcp_decision {
	struct marimo_ack ack;
	marimo_u64 pacing;
	marimo_u32 window;
	marimo_u32 threshold;
	marimo_u32 events;
	marimo_u32 codepoint;
};

/**
 * marimo_tcp_begun() - whether marimo_tcp_init() has been called
 * @m: the connection
 *
 * Hosts call congestion controls for sockets that are still connecting, and
 * clear their state when one disconnects. Nothing below may be called then.
 *
 * Return: whether it has.
 */
static inline int marimo_tcp_begun(const struct marimo_tcp *m)
{
	return m->core.window != 0;
}

/* a - b, but not below 0. */
static inline marimo_u32 marimo_tcp_over(marimo_u32 a, marimo_u32 b)
{
	return a > b ? a - b : 0;
}

/* Whole packets of the algorithm's window, no fewer than its floor. */
static inline marimo_u32 marimo_tcp_packets(const struct marimo_tcp *m,
					    const struct marimo_config *c)
{
	return marimo_max(m->core.window >> 16,
			  (c->min_window + MARIMO_ONE - 1) >> 16);
}

static inline __UINT16_TYPE__ marimo_tcp_u16(marimo_u32 a)
{
	return (__UINT16_TYPE__)marimo_min(a, MARIMO_PACKETS_MAX);
}

/*
 * Packets may have grown: a probe has found a larger MTU, or the peer's window
 * has opened beyond two small packets. Linux scales its own window, too.
 *
 * Return: MARIMO_TCP_DID_RESIZE if windows have become fewer packets.
 */
static inline marimo_u32 marimo_tcp_resize(struct marimo_tcp *m,
					   const struct marimo_tcp_sample *in)
{
	marimo_u32 before = m->mss;
	marimo_u32 ratio;

	m->mss = marimo_tcp_u16(in->mss);
	ratio = marimo_on_mtu(&m->core, before, m->mss);
	if (ratio == MARIMO_ONE)
		return 0;
	m->undo_window = marimo_scaled(m->undo_window, ratio);
	m->undo_threshold = marimo_scaled(m->undo_threshold, ratio);
	return MARIMO_TCP_DID_RESIZE;
}

/* The threshold as sockets count it. RFC 5681: no less than two packets. */
static inline marimo_u32 marimo_tcp_threshold(const struct marimo_tcp *m)
{
	if (m->core.threshold == MARIMO_NEVER)
		return MARIMO_TCP_NO_THRESHOLD;
	return marimo_max(m->core.threshold >> 16, 2);
}

/**
 * marimo_tcp_rate() - bytes per second of so many bytes per round trip
 * @bytes: bytes
 * @quarters: times as many quarters, at most 8
 * @srtt: round trip in 1/8 microseconds
 *
 * bytes * quarters / 4 * 8000000 / srtt without a 64-bit division: the round
 * trip is cut to its 16 leading bits, d, and 2^32 / d taken as a 32-bit
 * quotient. Within 2^-14 of the exact rate.
 *
 * Return: the rate; 0 if there is no round trip.
 */
static inline marimo_u64 marimo_tcp_rate(marimo_u32 bytes, marimo_u32 quarters,
					 marimo_u32 srtt)
{
	marimo_u32 zeros = 0;
	marimo_u64 scale, rate;

	if (!srtt)
		return 0;
	/* No count of leading zeros: a call to a library on some machines. */
	if (!(srtt >> 16)) {
		srtt <<= 16;
		zeros += 16;
	}
	if (!(srtt >> 24)) {
		srtt <<= 8;
		zeros += 8;
	}
	if (!(srtt >> 28)) {
		srtt <<= 4;
		zeros += 4;
	}
	if (!(srtt >> 30)) {
		srtt <<= 2;
		zeros += 2;
	}
	if (!(srtt >> 31)) {
		srtt <<= 1;
		zeros += 1;
	}
	scale = ((marimo_u64)8000000u * (0xffffffffu / (srtt >> 16))) >> 16;
	rate = ((((marimo_u64)bytes * quarters) >> 2) * scale) >> 1;
	/* By 31 - zeros: a variable 64-bit shift may be a call, too. */
	if (!(zeros & 16))
		rate >>= 16;
	if (!(zeros & 8))
		rate >>= 8;
	if (!(zeros & 4))
		rate >>= 4;
	if (!(zeros & 2))
		rate >>= 2;
	if (!(zeros & 1))
		rate >>= 1;
	return rate;
}

/*
 * Pacing: twice the window per round trip while it doubles, so that pacing
 * does not hold growth back, otherwise 5/4 of it, so that what comes late
 * catches up. Linux has 2 and 6/5.
 */
static inline marimo_u64 marimo_tcp_pacing(const struct marimo_tcp *m,
					   const struct marimo_tcp_sample *in,
					   marimo_u32 window)
{
	marimo_u32 packets = marimo_max(window, in->pipe);

	return marimo_tcp_rate(marimo_min(packets, MARIMO_PACKETS_MAX) *
				       marimo_min(in->mss, 65535u),
			       m->core.flags & MARIMO_SLOW_START ? 8 : 5,
			       in->srtt);
}

/**
 * marimo_tcp_min_tso_segs() - least packets of one offloaded bundle
 * @m: the connection
 *
 * A bundle is marked and queued as a whole.
 *
 * Return: two packets unless they would be half of the window.
 */
static inline marimo_u32 marimo_tcp_min_tso_segs(const struct marimo_tcp *m)
{
	return m->core.window < 5 * MARIMO_ONE ? 1 : 2;
}

/*
 * Proportional rate reduction (RFC 6937): the window during recovery. Above
 * the target packets leave in proportion to those delivered; below it they
 * catch up, with the slow start bound while recovery makes progress without
 * further losses (what RFC 9937 calls a safe acknowledgement), else with the
 * conservative bound. The first retransmission leaves at once.
 */
static inline marimo_u32 marimo_tcp_prr(struct marimo_tcp *m,
					const struct marimo_tcp_sample *in,
					marimo_u32 target)
{
	marimo_u32 delivered = in->delivered - m->prr_start;
	marimo_u32 newly = in->delivered - m->prr_last;
	marimo_u32 sent = in->sent - m->prr_sent;
	marimo_u32 product, send;

	m->prr_last = in->delivered;
	target = marimo_min(target, MARIMO_PACKETS_MAX);
	if (in->pipe > target) {
		/*
		 * Past 65535 packets delivered it sends nothing until the
		 * pipe has drained to the target.
		 */
		product = marimo_min(delivered, MARIMO_PACKETS_MAX) * target;
		send = product / m->prr_flight;
		send += product % m->prr_flight != 0;
		send = marimo_tcp_over(send, sent);
	} else {
		send = marimo_tcp_over(delivered, sent);
		if (m->flags & MARIMO_TCP_SAFE)
			send = marimo_max(send, newly) + 1;
		send = marimo_min(send, target - in->pipe);
	}
	if (!sent)
		send = marimo_max(send, 1);
	return in->pipe + send;
}

/* Whether what is sent again after a timeout leaves without ECT. */
static inline int marimo_tcp_again_not_ect(const struct marimo_tcp *m,
					   const struct marimo_tcp_sample *in)
{
	return in->plain && m->core.ect_timeouts >= MARIMO_TCP_AGAIN_NOT_ECT;
}

/* The ECN field of what is sent in this state. */
static inline marimo_u32
marimo_tcp_codepoint(const struct marimo_tcp *m,
		     const struct marimo_tcp_sample *in)
{
	if (in->state == MARIMO_TCP_LOSS && marimo_tcp_again_not_ect(m, in))
		return MARIMO_TCP_SEND_NOT_ECT;
	if (in->marks && (m->flags & MARIMO_TCP_DOUBT) == MARIMO_TCP_TESTING)
		return MARIMO_TCP_SEND_CE;
	return MARIMO_TCP_SEND_ECT;
}

/*
 * What the socket is to be, from the algorithm's window. After a timeout the
 * window starts at one packet, elsewhere the floor holds.
 */
static inline void marimo_tcp_decide(struct marimo_tcp *m,
				     const struct marimo_config *c,
				     const struct marimo_tcp_sample *in,
				     struct marimo_tcp_decision *out)
{
	marimo_u32 window = marimo_tcp_packets(m, c);

	if (in->state == MARIMO_TCP_RECOVERY)
		window = marimo_tcp_prr(m, in, window);
	else if (in->state == MARIMO_TCP_LOSS)
		window = marimo_max(m->core.window >> 16, 1);
	out->window = marimo_max(marimo_min(window, in->clamp), 1);
	out->threshold = marimo_tcp_threshold(m);
	out->pacing = marimo_tcp_pacing(m, in, out->window);
	out->codepoint = marimo_tcp_codepoint(m, in);
}

static inline void marimo_tcp_set_doubt(struct marimo_tcp *m, marimo_u32 doubt)
{
	m->flags = (marimo_u8)((m->flags & ~MARIMO_TCP_DOUBT) | doubt);
}

/* One more reason to think that ECN does not work; before any mark. */
static inline void marimo_tcp_suspect(struct marimo_tcp *m, marimo_u32 most,
				      struct marimo_tcp_decision *out)
{
	m->run_bits++;
	if (m->run_bits < most)
		return;
	m->run_bits = 0;
	marimo_tcp_set_doubt(m, MARIMO_TCP_NO_DOUBT);
	out->events |= MARIMO_TCP_DID_FAIL;
}

/* A loss or a timeout, maybe that of a test. */
static inline void marimo_tcp_doubt(struct marimo_tcp *m,
				    const struct marimo_tcp_sample *in,
				    struct marimo_tcp_decision *out)
{
	if ((m->flags & MARIMO_TCP_SEEN) || in->exact)
		return;
	if (in->marks)
		marimo_tcp_set_doubt(m, MARIMO_TCP_TEST);
	else
		marimo_tcp_suspect(m, MARIMO_TCP_LOSSES, out);
}

/*
 * Packets were delivered. Of a host that has sent again without ECT, data sent
 * after the timeout, or a mark, says that one with ECT was.
 */
static inline void marimo_tcp_arrived(struct marimo_tcp *m,
				      const struct marimo_tcp_sample *in,
				      marimo_u32 marked)
{
	if (marked || !marimo_tcp_again_not_ect(m, in) ||
	    marimo_before(m->core.cut_end, in->una))
		marimo_on_ect_acked(&m->core);
}

/*
 * A timeout, before the algorithm is told. What has been sent again without
 * ECT, and was not acknowledged either, says nothing about ECT.
 */
static inline void marimo_tcp_expired(struct marimo_tcp *m,
				      const struct marimo_tcp_sample *in,
				      struct marimo_tcp_decision *out)
{
	if (marimo_tcp_again_not_ect(m, in) && (m->core.flags & MARIMO_TIMEOUT))
		return;
	if (marimo_on_ect_timeout(&m->core))
		out->events |= MARIMO_TCP_DID_FAIL | MARIMO_TCP_DID_FAIL_ECT;
}

/*
 * What an acknowledgement says of ECN.
 *
 * Return: how many of the marks count.
 */
static inline marimo_u32 marimo_tcp_test(struct marimo_tcp *m,
					 const struct marimo_tcp_sample *in,
					 marimo_u32 marked,
					 struct marimo_tcp_decision *out)
{
	marimo_u32 doubt = m->flags & MARIMO_TCP_DOUBT;

	if (marked && !(m->flags & MARIMO_TCP_SEEN)) {
		m->flags |= MARIMO_TCP_SEEN;
		m->run_bits = 0;
	}
	switch (doubt) {
	case MARIMO_TCP_NO_DOUBT:
		return marked;
	case MARIMO_TCP_TEST:
		if (m->flags & MARIMO_TCP_SEEN) {
			marimo_tcp_set_doubt(m, MARIMO_TCP_NO_DOUBT);
		} else if (in->state <= MARIMO_TCP_DISORDER) {
			m->run_end = in->next;
			marimo_tcp_set_doubt(m, MARIMO_TCP_TESTING);
		}
		return marked;
	case MARIMO_TCP_TESTING:
		if (in->next != m->run_end) {
			m->run_end = in->next;
			marimo_tcp_set_doubt(m, MARIMO_TCP_TESTED);
		}
		return 0;
	default:
		if (marimo_before(in->una, m->run_end))
			return 0;
		if (m->flags & MARIMO_TCP_SEEN) {
			marimo_tcp_set_doubt(m, MARIMO_TCP_NO_DOUBT);
		} else {
			marimo_tcp_set_doubt(m, MARIMO_TCP_TEST);
			marimo_tcp_suspect(m, MARIMO_TCP_TESTS, out);
		}
		return 0;
	}
}

/**
 * marimo_tcp_latched() - whether the peer seems to echo as RFC 3168 says
 * @m: the connection
 *
 * Such a receiver repeats the echo until it sees CWR, so that the share of
 * marks is too large.
 *
 * Return: whether it does.
 */
static inline int marimo_tcp_latched(const struct marimo_tcp *m)
{
	return m->peer >= MARIMO_TCP_PEER_LATCHES;
}

/*
 * A receiver of RFC 3168 goes on echoing until the segment with CWR arrives,
 * the first one sent after its first echo; one of RFC 8257 stops wherever CE
 * does. A run of echoes that ends before that segment is acknowledged is thus
 * of the second kind. One that ends with exactly that acknowledgement may be
 * of the first: with n packets ahead of the segment no more than one in n + 1
 * of an exact receiver's runs that end so early ends there, which makes
 * log2(n + 1) bits of evidence. Later ends say nothing.
 */
static inline void marimo_tcp_judge(struct marimo_tcp *m,
				    const struct marimo_tcp_sample *in,
				    marimo_u32 marked,
				    struct marimo_tcp_decision *out)
{
	marimo_u32 bits = 0;

	if (in->exact)
		return;
	if (marked) {
		if (m->flags & MARIMO_TCP_RUN)
			return;
		m->flags |= MARIMO_TCP_RUN;
		m->run_end = in->next;
		/* Holes hide where CWR has got to. */
		if (in->state == MARIMO_TCP_OPEN || in->state == MARIMO_TCP_CWR)
			while (bits < 6 && (in->flight + 1) >> (bits + 1))
				bits++;
		m->run_bits = (marimo_u8)bits;
	} else if (m->flags & MARIMO_TCP_RUN) {
		m->flags &= (marimo_u8)~MARIMO_TCP_RUN;
		if (!m->run_bits || (in->state != MARIMO_TCP_OPEN &&
				     in->state != MARIMO_TCP_CWR))
			return;
		if (!marimo_before(m->run_end, in->una)) {
			m->peer = 0;
		} else if (!marimo_before(m->run_end, m->una) &&
			   !marimo_tcp_latched(m)) {
			m->peer += m->run_bits;
			if (marimo_tcp_latched(m))
				out->events |= MARIMO_TCP_DID_SUSPECT;
		}
	}
}

/*
 * Whether the window is what limits the connection (RFC 7661's question). In
 * slow start it may become twice what was used, as less than a window is out
 * while acknowledgements come back.
 */
static inline marimo_u32 marimo_tcp_limited(const struct marimo_tcp *m,
					    const struct marimo_tcp_sample *in)
{
	if ((m->core.window >> 16) >= in->clamp)
		return 0;
	if (in->limited)
		return 1;
	return (m->core.flags & MARIMO_SLOW_START) &&
	       in->window < 2 * in->peak;
}

/* Tells the algorithm what was delivered since it was told last. */
static inline void marimo_tcp_deliver(struct marimo_tcp *m,
				      const struct marimo_config *c,
				      const struct marimo_table *table,
				      const struct marimo_tcp_sample *in,
				      struct marimo_tcp_decision *out)
{
	marimo_u32 packets = in->delivered - m->delivered;
	marimo_u32 marked = in->delivered_ce - m->delivered_ce;
	marimo_u32 epochs = m->core.epochs;

	out->ack.packets = 0;
	out->ack.marked = 0;
	out->ack.acked = 0;
	out->ack.position = in->una;
	out->ack.next = in->next;
	out->ack.limited = 0;
	out->events = marimo_tcp_resize(m, in);
	m->flags &= (marimo_u8)~MARIMO_TCP_SAFE;
	if (in->una != m->una && !in->lost)
		m->flags |= MARIMO_TCP_SAFE;
	/* Marks without packets (AccECN) wait for the packets. */
	if (!packets && in->una == m->una)
		return;
	if (packets) {
		marimo_tcp_arrived(m, in, marked);
		marked = marimo_tcp_test(m, in, marked, out);
		marimo_tcp_judge(m, in, marked, out);
	}
	out->ack.packets = packets;
	out->ack.marked = packets ? marimo_min(marked, packets) : 0;
	/* As Linux: what is acknowledged selectively only does not grow it. */
	out->ack.acked = in->una == m->una ? 0 : packets;
	out->ack.limited = marimo_tcp_limited(m, in);
	marimo_on_ack(&m->core, c, table, &out->ack);
	out->events |= MARIMO_TCP_DID_ACK;
	if (m->core.epochs != epochs)
		out->events |= MARIMO_TCP_DID_EPOCH;
	m->una = in->una;
	m->delivered = in->delivered;
	if (packets)
		m->delivered_ce = in->delivered_ce;
}

/**
 * marimo_tcp_init() - a connection is established, or changes to Marimo
 * @m: its state
 * @c: a valid configuration
 * @table: a table without fault
 * @in: the socket; its window and threshold are where the connection starts,
 *	so that what a route says of initial windows holds
 * @out: what the socket is to be
 */
static inline void marimo_tcp_init(struct marimo_tcp *m,
				   const struct marimo_config *c,
				   const struct marimo_table *table,
				   const struct marimo_tcp_sample *in,
				   struct marimo_tcp_decision *out)
{
	marimo_init(&m->core, c, table);
	m->core.window = marimo_max(in->window, 1);
	m->core.window = marimo_min(m->core.window, c->max_window >> 16) << 16;
	if (in->threshold < MARIMO_PACKETS_MAX) {
		m->core.threshold = in->threshold << 16;
		if (m->core.window >= m->core.threshold)
			m->core.flags = 0;
	}
	if (!(m->core.flags & MARIMO_SLOW_START)) {
		marimo_hold(&m->core);
		marimo_grow(&m->core, c);
	}
	m->delivered = in->delivered;
	m->delivered_ce = in->delivered_ce;
	m->una = in->una;
	m->echo_next = in->receive_next;
	m->prr_start = in->delivered;
	m->prr_last = in->delivered;
	m->prr_sent = in->sent;
	m->prr_flight = marimo_tcp_u16(marimo_max(in->flight, 1));
	m->mss = marimo_tcp_u16(in->mss);
	m->undo_window = 0;
	m->undo_threshold = 0;
	m->undo_rho = 0;
	m->run_end = in->next;
	m->cwr_end = in->next;
	m->flags = 0;
	m->undo_flags = 0;
	m->peer = 0;
	m->run_bits = 0;
	out->ack.packets = 0;
	out->ack.marked = 0;
	out->ack.acked = 0;
	out->ack.position = in->una;
	out->ack.next = in->next;
	out->ack.limited = 0;
	out->events = MARIMO_TCP_DID_INIT;
	marimo_tcp_decide(m, c, in, out);
}

/**
 * marimo_tcp_on_ack() - an acknowledgement has been processed
 * @m: the connection
 * @c: its configuration
 * @table: f
 * @in: the socket
 * @out: what it is to be
 */
static inline void marimo_tcp_on_ack(struct marimo_tcp *m,
				     const struct marimo_config *c,
				     const struct marimo_table *table,
				     const struct marimo_tcp_sample *in,
				     struct marimo_tcp_decision *out)
{
	marimo_tcp_deliver(m, c, table, in, out);
	marimo_tcp_decide(m, c, in, out);
}

/* Where to go back to should the reduction that follows prove spurious. */
static inline void marimo_tcp_remember(struct marimo_tcp *m)
{
	m->undo_window = m->core.window;
	m->undo_threshold = m->core.threshold;
	m->undo_rho = m->core.rho;
	m->undo_flags = m->core.flags;
	m->flags |= MARIMO_TCP_UNDO;
}

/**
 * marimo_tcp_on_timeout() - a timeout begins an episode of its own
 * @m: the connection
 *
 * The change to MARIMO_TCP_LOSS follows.
 */
static inline void marimo_tcp_on_timeout(struct marimo_tcp *m)
{
	marimo_tcp_remember(m);
	m->flags |= MARIMO_TCP_EXPIRED;
}

/**
 * marimo_tcp_on_state() - the socket's recovery state is about to change
 * @m: the connection
 * @c: its configuration
 * @table: f
 * @in: the socket; afterwards its state is the new one
 * @out: what it is to be
 *
 * Return: whether @out holds: a loss or a timeout was answered.
 */
static inline int marimo_tcp_on_state(struct marimo_tcp *m,
				      const struct marimo_config *c,
				      const struct marimo_table *table,
				      struct marimo_tcp_sample *in,
				      struct marimo_tcp_decision *out)
{
	marimo_u32 before = m->delivered;
	marimo_u32 expired = m->flags & MARIMO_TCP_EXPIRED;

	if (in->becomes == MARIMO_TCP_RECOVERY &&
	    in->state != MARIMO_TCP_RECOVERY) {
		/* The acknowledgement that shows the loss comes first. */
		marimo_tcp_deliver(m, c, table, in, out);
		marimo_tcp_remember(m);
		marimo_on_loss(&m->core, c, in->una, in->next);
		marimo_tcp_doubt(m, in, out);
		out->events |= MARIMO_TCP_DID_LOSS;
		m->prr_start = before;
		m->prr_last = before;
		m->prr_sent = in->sent;
		m->prr_flight = marimo_tcp_u16(marimo_max(in->flight, 1));
		in->state = in->becomes;
		marimo_tcp_decide(m, c, in, out);
		/* So that the same acknowledgement still counts as new. */
		m->prr_last = before;
		return 1;
	}
	if (in->becomes == MARIMO_TCP_CWR)
		m->cwr_end = in->next;
	if (in->state == MARIMO_TCP_CWR && in->becomes <= MARIMO_TCP_DISORDER &&
	    !marimo_before(m->cwr_end, in->una)) {
		/*
		 * Marks keep the host in CWR until more than cwr_end is
		 * acknowledged. It leaves at once after a probe has repaired
		 * a loss that nobody else has seen (RFC 8985, section 7.4).
		 */
		marimo_tcp_deliver(m, c, table, in, out);
		marimo_on_loss(&m->core, c, in->una, in->next);
		marimo_tcp_doubt(m, in, out);
		out->events |= MARIMO_TCP_DID_LOSS;
		in->state = in->becomes;
		marimo_tcp_decide(m, c, in, out);
		return 1;
	}
	if (in->becomes != MARIMO_TCP_LOSS)
		return 0;
	m->flags &= (marimo_u8)~MARIMO_TCP_EXPIRED;
	/*
	 * A change of the MTU enters this state too, to send again what is
	 * too large, and leaves the window alone. A timeout has announced
	 * itself, unless it came within an episode; then the host has already
	 * taken the window down to one packet beyond the pipe.
	 */
	if (!expired && in->state != MARIMO_TCP_LOSS &&
	    (in->state <= MARIMO_TCP_DISORDER || in->window > in->pipe + 1))
		return 0;
	marimo_tcp_deliver(m, c, table, in, out);
	marimo_tcp_expired(m, in, out);
	marimo_on_timeout(&m->core, c, in->next);
	/* Of an episode, which may take many timeouts, one. */
	if (expired)
		marimo_tcp_doubt(m, in, out);
	out->events |= MARIMO_TCP_DID_TIMEOUT;
	in->state = in->becomes;
	marimo_tcp_decide(m, c, in, out);
	/* What is still on its way is not lost: Linux lets it be. */
	out->window = marimo_min(marimo_max(out->window, in->pipe + 1),
				 marimo_max(in->clamp, 1));
	return 1;
}

/**
 * marimo_tcp_on_undo() - the last reduction for a loss was spurious
 * @m: the connection
 * @c: its configuration
 *
 * Hosts do not undo once a mark has been echoed. No epoch waits for the effect
 * of the reduction, and growth goes on as after the first epoch that allows it.
 *
 * Return: the window to have.
 */
static inline marimo_u32 marimo_tcp_on_undo(struct marimo_tcp *m,
					    const struct marimo_config *c)
{
	if (m->flags & MARIMO_TCP_UNDO) {
		m->flags &= (marimo_u8)~MARIMO_TCP_UNDO;
		/* It was no loss. */
		if (!(m->flags & MARIMO_TCP_SEEN) && m->run_bits &&
		    !(m->flags & MARIMO_TCP_DOUBT))
			m->run_bits--;
		m->core.window = marimo_max(m->core.window, m->undo_window);
		m->core.threshold = marimo_max(m->core.threshold,
					       m->undo_threshold);
		m->core.rho = m->undo_rho;
		m->core.flags &= (marimo_u8)~(MARIMO_CUT | MARIMO_LOSS |
					      MARIMO_TIMEOUT |
					      MARIMO_SLOW_START);
		m->core.flags |= m->undo_flags & MARIMO_SLOW_START;
		m->core.settling = 0;
		marimo_hold(&m->core);
		if (!(m->core.flags & MARIMO_SLOW_START) &&
		    m->core.rho < c->increase_below)
			marimo_grow(&m->core, c);
	}
	return marimo_tcp_packets(m, c);
}

/**
 * marimo_tcp_on_start() - data is sent with nothing unacknowledged
 * @m: the connection
 * @c: its configuration
 * @in: the socket
 * @out: what it is to be
 *
 * After more than one timeout the epoch under way is forgotten. With restart
 * the window is halved per timeout, down to the initial one, and slow start
 * goes back to three quarters of what it was; the first slow start, which has
 * no threshold yet, stays without one (RFC 2861).
 *
 * Return: whether @out holds.
 */
static inline int marimo_tcp_on_start(struct marimo_tcp *m,
				      const struct marimo_config *c,
				      const struct marimo_tcp_sample *in,
				      struct marimo_tcp_decision *out)
{
	marimo_u32 window, least, back, step, resized;
	marimo_u32 idle = in->idle;

	/* A retransmission into an empty pipe is no start. */
	if (in->flight || !in->timeout || idle <= in->timeout)
		return 0;
	resized = marimo_tcp_resize(m, in);
	window = m->core.window;
	least = marimo_min(c->initial_window, window);
	back = window - (window >> 2);
	out->ack.packets = 0;
	out->ack.marked = 0;
	out->ack.acked = 0;
	out->ack.position = in->una;
	out->ack.next = in->next;
	out->ack.limited = 0;
	out->events = MARIMO_TCP_DID_IDLE | resized;
	/* Nobody can tell what of a whole window carried CE. */
	if ((m->flags & MARIMO_TCP_DOUBT) == MARIMO_TCP_TESTING)
		marimo_tcp_set_doubt(m, MARIMO_TCP_TEST);
	marimo_on_idle(&m->core, in->next);
	if (in->restart) {
		/* 65535 packets halve to none in 16 steps. */
		for (step = 0; step < 16 && idle > in->timeout; step++) {
			window >>= 1;
			idle -= in->timeout;
		}
		window = marimo_max(window, least);
		if (window < m->core.window) {
			if (m->core.threshold == MARIMO_NEVER &&
			    !(m->core.flags & MARIMO_SLOW_START))
				m->core.threshold = 0;
			m->core.threshold = marimo_max(m->core.threshold, back);
			m->core.window = window;
			if (window < m->core.threshold)
				m->core.flags |= MARIMO_SLOW_START;
			out->events |= MARIMO_TCP_DID_RESTART;
		}
	}
	marimo_tcp_decide(m, c, in, out);
	return 1;
}

/* What the receiving side is to do: bits of marimo_tcp_echo()'s result. */
#define MARIMO_TCP_ECHO 1u /* acknowledgements from now on carry ECE */
#define MARIMO_TCP_ECHO_BEFORE 2u /* but this one, at once, up to @before */
#define MARIMO_TCP_ECHO_WAS 4u /* which itself carries ECE */
#define MARIMO_TCP_ECHO_NOW 8u /* acknowledge this segment at once */

/**
 * marimo_tcp_echo() - a segment with data has arrived (RFC 8257, section 3.2)
 * @m: the connection
 * @ce: it carries CE
 * @receive_next: what is expected after it
 * @pending: an acknowledgement of earlier segments is being delayed
 * @before: set to what was expected before it
 *
 * When CE changes, what came before is acknowledged with what it carried, and
 * this segment at once with what it carries: of two acknowledgements, that the
 * RFC allows, each is exact.
 *
 * Return: MARIMO_TCP_ECHO and so on.
 */
static inline marimo_u32 marimo_tcp_echo(struct marimo_tcp *m, marimo_u32 ce,
					 marimo_u32 receive_next,
					 marimo_u32 pending, marimo_u32 *before)
{
	marimo_u32 was = m->flags & MARIMO_TCP_CE;
	marimo_u32 what = 0;

	*before = m->echo_next;
	if (!was != !ce) {
		what = MARIMO_TCP_ECHO_NOW;
		if (pending)
			what |= MARIMO_TCP_ECHO_BEFORE;
		if (was)
			what |= MARIMO_TCP_ECHO_WAS;
	}
	if (ce) {
		what |= MARIMO_TCP_ECHO;
		m->flags |= MARIMO_TCP_CE;
	} else {
		m->flags &= (marimo_u8)~MARIMO_TCP_CE;
	}
	m->echo_next = receive_next;
	return what;
}

#endif /* INCAST_MARIMO_TCP_H */
