// SPDX-License-Identifier: MIT OR Apache-2.0
/* The table f, which may change under connections, and the counters. */
#include "connection.h"

static char *file_of(const struct marimo_table *table, char *text)
{
	char *at = text + sprintf(text, "# a comment\n\nmarimo-f 1\n");
	u32 i;

	for (i = 0; i < MARIMO_KNOTS; i++)
		at += sprintf(at, "%u\n", table->knots[i]);
	at += sprintf(at, "checksum %08x\n", marimo_table_checksum(table));
	return at;
}

static struct marimo_table linear_table(void)
{
	struct marimo_table table;
	u32 i;

	for (i = 0; i < MARIMO_KNOTS; i++)
		table.knots[i] = 39322 + 39321 * i / 64;
	return table;
}

static ssize_t store(const char *text, size_t length)
{
	/* The text need not end with a zero: a copy of its exact size. */
	char *copy = malloc(length ? length : 1);
	ssize_t result;

	memcpy(copy, text, length);
	result = marimo_table_attribute.store(NULL, NULL, copy, length);
	free(copy);
	EQUAL(mock_locks, 0);
	return result;
}

static void expect_refusal(const char *text, size_t length, const char *reason)
{
	struct marimo_table before = marimo_f->table;
	char page[PAGE_SIZE];

	EQUAL(store(text, length), -EINVAL);
	marimo_table_error_attribute.show(NULL, NULL, page);
	if (!strstr(page, reason)) {
		printf("found \"%s\", expected \"%s\"\n", page, reason);
		mock_fail(__FILE__, __LINE__, "the reason is said");
	}
	CHECK(!memcmp(&before, &marimo_f->table, sizeof(before)));
}

static void test_bundled_table(const char *path)
{
	char text[8192], page[PAGE_SIZE], knots[PAGE_SIZE];
	struct marimo_table before = marimo_f->table;
	FILE *file = fopen(path, "r");
	size_t length;

	if (!file) {
		mock_fail(path, 0, "can be opened");
		return;
	}
	length = fread(text, 1, sizeof(text), file);
	fclose(file);
	CHECK(length < PAGE_SIZE);
	/* What incast calibrate wrote is what the module starts with. */
	EQUAL(store(text, length), length);
	CHECK(!memcmp(&before, &marimo_f->table, sizeof(before)));
	marimo_table_error_attribute.show(NULL, NULL, page);
	EQUAL(strcmp(page, "\n"), 0);
	/* Reading gives the same form, without the comments. */
	marimo_table_attribute.show(NULL, NULL, page);
	text[length] = 0;
	strcpy(knots, strstr(text, "marimo-f 1\n"));
	EQUAL(strcmp(page, knots), 0);
	EQUAL(store(page, strlen(page)), strlen(page));
	mock_grace_period();
}

static void test_table_is_used(void)
{
	struct marimo_table table = linear_table(), before = marimo_f->table;
	struct tcp_sock *tp;
	char text[PAGE_SIZE];
	u32 i;

	EQUAL(store(text, file_of(&table, text) - text),
	      file_of(&table, text) - text);
	tp = make_socket(TCP_ECN_OK);
	EQUAL(state(tp)->core.rho, 39322);
	/* f(1) = 1.2 in the first epoch, twice in a row. */
	for (i = 0; i < 10; i++)
		rounds(tp, 1, never);
	/* Even with half of everything marked this f stays in its band. */
	for (i = 0; i < MARIMO_KNOTS; i++)
		table.knots[i] = i < 64 ? 40000 : 70000;
	EQUAL(store(text, file_of(&table, text) - text),
	      file_of(&table, text) - text);
	mock_grace_period();
	rounds(tp, 1, every_second);
	for (i = 0; i < 10; i++) {
		rounds(tp, 1, every_second);
		CHECK(state(tp)->core.rho < 58982);
	}
	CHECK(state(tp)->core.rho >= 39322 && state(tp)->core.rho <= 40000);
	/* While this one says that the path is overloaded. */
	for (i = 0; i < MARIMO_KNOTS; i++)
		table.knots[i] = i < 8 ? 40000 : 500000;
	EQUAL(store(text, file_of(&table, text) - text),
	      file_of(&table, text) - text);
	mock_grace_period();
	rounds(tp, 30, every_second);
	EQUAL(tp->snd_cwnd, 2);
	close_socket(tp);
	EQUAL(store(text, file_of(&before, text) - text),
	      file_of(&before, text) - text);
	mock_grace_period();
}

/* A table with its own checksum in this form is refused. */
static void expect_spelling(const struct marimo_table *table, const char *form)
{
	char text[2 * PAGE_SIZE];
	char *at;

	file_of(table, text);
	at = strstr(text, "\nchecksum ") + 1;
	at += sprintf(at, form, marimo_table_checksum(table));
	expect_refusal(text, at - text, "expected \"checksum ");
}

static void test_bad_tables(void)
{
	struct marimo_table table = linear_table();
	char text[PAGE_SIZE], broken[2 * PAGE_SIZE];
	size_t length = file_of(&table, text) - text, cut;
	int refused = atomic_read(&marimo_counters.refused);
	char *place;

	expect_refusal("", 0, "line 0: expected \"marimo-f 1\"");
	expect_refusal("# only a comment", 16, "line 1: expected");
	/* Cut anywhere but after the checksum. */
	for (cut = 0; cut < length - 1; cut++)
		expect_refusal(text, cut, "line ");
	EQUAL(store(text, length - 1), length - 1);
	EQUAL(store(text, length), length);
	/* Too much. */
	memcpy(broken, text, length);
	memcpy(broken + length, "1\n", 2);
	expect_refusal(broken, length + 2, "the end after the checksum");
	EQUAL(store(broken, length), length);
	/* Another format. */
	memcpy(broken, text, length);
	place = strstr(text, "marimo-f 1") - text + broken;
	place[9] = '2';
	expect_refusal(broken, length, "line 3: expected \"marimo-f 1\"");
	/* One digit of a knot: another table. */
	memcpy(broken, text, length);
	place = memchr(broken + 25, '6', length - 25);
	*place = '7';
	expect_refusal(broken, length, "checksum");
	/* One digit of the checksum. */
	memcpy(broken, text, length);
	broken[length - 2] = broken[length - 2] == '0' ? '1' : '0';
	expect_refusal(broken, length, "expected \"checksum ");
	/* Another spelling of the right number: more digits, a prefix, a sign. */
	expect_spelling(&table, "checksum 0%08x\n");
	expect_spelling(&table, "checksum 0x%08x\n");
	expect_spelling(&table, "checksum +%08x\n");
	expect_spelling(&table, "checksum  %08x\n");
	/* No number, a signed one, one beyond 32 bits, an overlong line. */
	memcpy(broken, "marimo-f 1\nx\n", 13);
	expect_refusal(broken, 13, "line 2: expected a load");
	memcpy(broken, "marimo-f 1\n+5\n", 14);
	expect_refusal(broken, 14, "line 2: expected a load");
	memcpy(broken, "marimo-f 1\n-5\n", 14);
	expect_refusal(broken, 14, "line 2: expected a load");
	memcpy(broken, "marimo-f 1\n4294967296\n", 22);
	expect_refusal(broken, 22, "line 2: expected a load");
	memcpy(broken, "marimo-f 1\n5 6\n", 15);
	expect_refusal(broken, 15, "line 2: expected a load");
	memcpy(broken, "marimo-f 1\n5\0" "6\n", 15);
	expect_refusal(broken, 15, "line 2: expected a load");
	memcpy(broken, "marimo-f 1\n", 11);
	memset(broken + 11, '1', PAGE_SIZE);
	expect_refusal(broken, 11 + PAGE_SIZE, "line 2: expected a load");
	memset(broken, 'a', PAGE_SIZE);
	expect_refusal(broken, PAGE_SIZE, "line 1: expected");
	/* Sound text, unsound f. */
	table.knots[7] = 100;
	expect_refusal(text, file_of(&table, text) - text,
		       "line 11: f(7/64) = 100");
	table = linear_table();
	table.knots[0] = table.knots[1] = 58982;
	table.knots[0] = 58982;
	expect_refusal(text, file_of(&table, text) - text, "line ");
	table = linear_table();
	table.knots[64] = 8 * MARIMO_ONE + 1;
	expect_refusal(text, file_of(&table, text) - text,
		       "line 68: f(64/64) = 524289");
	memset(&table, 0, sizeof(table));
	expect_refusal(text, file_of(&table, text) - text, "f(64/64) = 0");
	CHECK(strstr(mock_log, "table refused, the old one stays"));
	CHECK(atomic_read(&marimo_counters.refused) > refused + 300);
	/* No memory: an error, and the old table stays. */
	table = linear_table();
	mock_fail_allocations = 1;
	EQUAL(store(text, file_of(&table, text) - text), -ENOMEM);
	mock_fail_allocations = 0;
	mock_grace_period();
}

/* Anything at all may be written to the attribute. */
static void test_random_tables(void)
{
	struct marimo_table table = linear_table(), before;
	char text[PAGE_SIZE];
	size_t length = file_of(&table, text) - text;
	u32 i, accepted = 0;

	EQUAL(store(text, length), length);
	before = marimo_f->table;
	for (i = 0; i < 20000; i++) {
		char broken[PAGE_SIZE];
		u32 changes = 1 + draw(4);

		memcpy(broken, text, length);
		while (changes--)
			broken[draw(length)] = draw(256);
		accepted += store(broken, length) > 0;
		CHECK(!memcmp(&before, &marimo_f->table, sizeof(before)));
		mock_grace_period();
	}
	/* Only the comment may change. */
	CHECK(accepted < 2000);
}

static void test_churn(void)
{
	struct tcp_sock *sockets[1000] = { NULL };
	struct marimo_table table = linear_table();
	int connections = atomic_read(&marimo_counters.connections);
	char text[PAGE_SIZE];
	u32 step, born = 0;

	for (step = 0; step < 60000; step++) {
		u32 at = draw(1000);
		struct tcp_sock *tp = sockets[at];

		if (step % 500 == 499) {
			table.knots[draw(64)] += 1;
			if (marimo_table_fault(&table, &marimo_config))
				table = linear_table();
			CHECK(store(text, file_of(&table, text) - text) > 0);
			if (step % 2000 == 1999)
				mock_grace_period();
		}
		if (!tp) {
			sockets[at] = make_socket(draw(10) ? TCP_ECN_OK : 0);
			born++;
			continue;
		}
		if (tp->icsk.icsk_ca_ops != &marimo || draw(20) == 0) {
			close_socket(tp);
			sockets[at] = NULL;
			continue;
		}
		fill(tp);
		switch (draw(8)) {
		case 0:
			enter_recovery(tp, min(tp->packets_out - 1, 3u));
			control(tp, 1);
			tp->delivered += tp->packets_out - tp->sacked_out;
			tp->snd_una = tp->snd_nxt;
			tp->packets_out = tp->sacked_out = tp->lost_out = 0;
			set_state(tp, TCP_CA_Open);
			control(tp, 0);
			break;
		case 1:
			timeout(tp);
			tp->lost_out = 0;
			acknowledge(tp, tp->packets_out, false);
			set_state(tp, TCP_CA_Open);
			control(tp, 0);
			break;
		case 2:
			tcp_jiffies32 += draw(200);
			break;
		default:
			acknowledge(tp, 1 + draw(tp->packets_out), draw(2));
		}
		/* After losses without any mark it is Reno's. */
		CHECK(tp->snd_cwnd >= 2 || tp->icsk.icsk_ca_ops != &marimo ||
		      tp->icsk.icsk_ca_state == TCP_CA_Loss || tp->icsk.icsk_ca_state ==
		      TCP_CA_Recovery);
		CHECK(state(tp)->core.rho <= MARIMO_LOAD_MAX);
	}
	CHECK(born > 1000);
	for (step = 0; step < 1000; step++)
		if (sockets[step])
			close_socket(sockets[step]);
	EQUAL(atomic_read(&marimo_counters.connections), connections);
	mock_grace_period();
}

static void test_counters(void)
{
	char page[PAGE_SIZE];

	marimo_counters_attribute.show(NULL, NULL, page);
	CHECK(!strncmp(page, "connections 0\nfallbacks ", 24));
	CHECK(strstr(page, "\nlatched "));
}

static void run_table(const char *path)
{
	RUN(test_bundled_table, path);
	RUN(test_table_is_used);
	RUN(test_bad_tables);
	RUN(test_random_tables);
	RUN(test_churn);
	RUN(test_counters);
}
