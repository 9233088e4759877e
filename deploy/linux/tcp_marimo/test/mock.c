// SPDX-License-Identifier: MIT OR Apache-2.0
/* The functions of mock.h. */
#include "mock.h"

unsigned int mock_failures;
int mock_readers, mock_fail_allocations, mock_locks;
int mock_fail_files, mock_fail_registration;
char mock_log[4096];
struct ipv6_pinfo mock_ipv6;
int mock_kernel = KERNEL_VERSION(7, 2, 12);
u32 tcp_jiffies32 = 1000000;
struct net mock_net = { .ipv4 = { .sysctl_tcp_slow_start_after_idle = 1,
				  .sysctl_tcp_ecn_fallback = 1 } };
struct module mock_module;
struct tcp_congestion_ops *mock_registered;
static struct rcu_head *mock_waiting;

void mock_fail(const char *file, int line, const char *what)
{
	if (mock_failures++ < 20)
		printf("%s:%d: not so: %s\n", file, line, what);
}

void mock_print(const char *format, ...)
{
	size_t used = strlen(mock_log);
	va_list list;

	va_start(list, format);
	vsnprintf(mock_log + used, sizeof(mock_log) - used, format, list);
	va_end(list);
}

/* Digits, all of them, at most one newline after them; in base 16 after 0x. */
int kstrtou32(const char *text, unsigned int base, u32 *result)
{
	u64 value = 0;
	int digits = 0;

	if (*text == '+')
		text++;
	if (base == 16 && text[0] == '0' && (text[1] | 32) == 'x')
		text += 2;
	for (; *text; text++) {
		int digit = *text >= '0' && *text <= '9' ? *text - '0' :
			(*text | 32) >= 'a' && (*text | 32) <= 'f' ?
			(*text | 32) - 'a' + 10 : 99;

		if ((unsigned int)digit >= base)
			break;
		value = value * base + digit;
		digits++;
		if (value > U32_MAX)
			return -34;
	}
	if (*text == '\n')
		text++;
	if (*text || !digits)
		return -EINVAL;
	*result = value;
	return 0;
}

int match_string(const char *const *list, size_t count, const char *text)
{
	size_t i;

	for (i = 0; i < count && list[i]; i++)
		if (!strcmp(list[i], text))
			return i;
	return -EINVAL;
}

int vscnprintf(char *buffer, size_t size, const char *format, va_list list)
{
	int length = vsnprintf(buffer, size, format, list);

	return length < (int)size ? length : (int)size - 1;
}

void *kmalloc(size_t size, int flags)
{
	(void)flags;
	return mock_fail_allocations ? NULL : malloc(size);
}

void kfree(const void *what)
{
	free((void *)what);
}

void mock_kfree_rcu(void *what, struct rcu_head *head)
{
	head->what = what;
	head->next = mock_waiting;
	mock_waiting = head;
}

void mock_grace_period(void)
{
	CHECK(!mock_readers);
	while (mock_waiting) {
		struct rcu_head *head = mock_waiting;

		mock_waiting = head->next;
		free(head->what);
	}
}

void mock_check_reader(const char *file, int line)
{
	if (mock_readers <= 0)
		mock_fail(file, line, "reads an RCU pointer as a reader");
}

void mutex_lock(struct mutex *mutex)
{
	CHECK(!mutex->held);
	mutex->held = 1;
	mock_locks++;
}

void mutex_unlock(struct mutex *mutex)
{
	CHECK(mutex->held);
	mutex->held = 0;
	mock_locks--;
}

int sysfs_create_files(struct kobject *kobject, const struct attribute **list)
{
	if (mock_fail_files)
		return -ENOMEM;
	for (; *list; list++)
		kobject->files++;
	return 0;
}

void sysfs_remove_files(struct kobject *kobject, const struct attribute **list)
{
	for (; *list; list++)
		kobject->files--;
}

int sysfs_emit(char *page, const char *format, ...)
{
	va_list list;
	int length;

	va_start(list, format);
	length = vscnprintf(page, PAGE_SIZE, format, list);
	va_end(list);
	return length;
}

int sysfs_emit_at(char *page, int at, const char *format, ...)
{
	va_list list;
	int length;

	CHECK(at >= 0 && at < PAGE_SIZE);
	va_start(list, format);
	length = vscnprintf(page + at, PAGE_SIZE - at, format, list);
	va_end(list);
	return length;
}

u32 tcp_reno_ssthresh(struct sock *sk)
{
	return max(tcp_sk(sk)->snd_cwnd / 2, 2u);
}

void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	(void)ack;
	tcp_sk(sk)->snd_cwnd += acked;
}

u32 tcp_reno_undo_cwnd(struct sock *sk)
{
	return tcp_sk(sk)->snd_cwnd;
}

int tcp_register_congestion_control(struct tcp_congestion_ops *ops)
{
	if (mock_fail_registration)
		return -EINVAL;
	/* As the kernel does. */
	CHECK(ops->ssthresh && ops->undo_cwnd &&
	      (ops->cong_avoid || ops->cong_control));
	mock_registered = ops;
	return 0;
}

void tcp_unregister_congestion_control(struct tcp_congestion_ops *ops)
{
	CHECK(mock_registered == ops);
	mock_registered = NULL;
}
