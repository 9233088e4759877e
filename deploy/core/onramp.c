/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * onramp.h as functions with external names, for callers in other languages
 * and for tests of what the compiler makes of it.
 */
#include "onramp.h"

/* Sizes of the structs, so that a caller can check its own declarations. */
const onramp_u32 incast_onramp_sizes[2] = {
	sizeof(struct onramp),
	sizeof(struct onramp_config),
};

onramp_u32 incast_onramp_config_valid(const struct onramp_config *config);
void incast_onramp_init(struct onramp *o);
onramp_u64 incast_onramp_release(const struct onramp *o,
				 const struct onramp_config *config,
				 onramp_u64 now, onramp_u64 queued);
void incast_onramp_on_release(struct onramp *o,
			      const struct onramp_config *config,
			      onramp_u64 now, onramp_u64 queued);
void incast_onramp_on_report(struct onramp *o,
			     const struct onramp_config *config, onramp_u64 now,
			     onramp_u64 sent, onramp_s64 delay);

onramp_u32 incast_onramp_config_valid(const struct onramp_config *config)
{
	return onramp_config_valid(config) != 0;
}

void incast_onramp_init(struct onramp *o)
{
	onramp_init(o);
}

onramp_u64 incast_onramp_release(const struct onramp *o,
				 const struct onramp_config *config,
				 onramp_u64 now, onramp_u64 queued)
{
	return onramp_release(o, config, now, queued);
}

void incast_onramp_on_release(struct onramp *o,
			      const struct onramp_config *config,
			      onramp_u64 now, onramp_u64 queued)
{
	onramp_on_release(o, config, now, queued);
}

void incast_onramp_on_report(struct onramp *o,
			     const struct onramp_config *config, onramp_u64 now,
			     onramp_u64 sent, onramp_s64 delay)
{
	onramp_on_report(o, config, now, sent, delay);
}
