// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Says to the kernel each second that its clock is right, as a daemon of PTP
 * does (linuxptp's phc2sys), until it is killed. For the guest, whose hosts all
 * have that one clock.
 */
#include <sys/timex.h>
#include <unistd.h>

int main(void)
{
	for (;;) {
		struct timex clock = { .modes = ADJ_STATUS | ADJ_MAXERROR };

		if (adjtimex(&clock) < 0)
			return 1;
		sleep(1);
	}
}
