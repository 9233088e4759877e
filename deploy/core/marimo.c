/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * marimo.h as functions with external names, for callers in other languages
 * and for tests of what the compiler makes of it.
 */
#include "marimo.h"

/* Sizes of the structs, so that a caller can check its own declarations. */
const marimo_u32 incast_marimo_sizes[4] = {
	sizeof(struct marimo),
	sizeof(struct marimo_config),
	sizeof(struct marimo_table),
	sizeof(struct marimo_ack),
};

marimo_u32 incast_marimo_table_fault(const struct marimo_table *table,
				     const struct marimo_config *config);
marimo_u32 incast_marimo_table_checksum(const struct marimo_table *table);
marimo_u32 incast_marimo_config_valid(const struct marimo_config *config);
marimo_u32 incast_marimo_load(const struct marimo_table *table,
			      marimo_u32 share);
void incast_marimo_init(struct marimo *m, const struct marimo_config *config,
			const struct marimo_table *table);
void incast_marimo_on_ack(struct marimo *m, const struct marimo_config *config,
			  const struct marimo_table *table,
			  const struct marimo_ack *ack);
void incast_marimo_on_loss(struct marimo *m,
			   const struct marimo_config *config,
			   marimo_u32 position, marimo_u32 next);
void incast_marimo_on_timeout(struct marimo *m,
			      const struct marimo_config *config,
			      marimo_u32 next);
void incast_marimo_on_idle(struct marimo *m, marimo_u32 next);
void incast_marimo_on_mtu(struct marimo *m, marimo_u32 before,
			  marimo_u32 after);

marimo_u32 incast_marimo_table_fault(const struct marimo_table *table,
				     const struct marimo_config *config)
{
	return marimo_table_fault(table, config);
}

marimo_u32 incast_marimo_table_checksum(const struct marimo_table *table)
{
	return marimo_table_checksum(table);
}

marimo_u32 incast_marimo_config_valid(const struct marimo_config *config)
{
	return marimo_config_valid(config) != 0;
}

marimo_u32 incast_marimo_load(const struct marimo_table *table,
			      marimo_u32 share)
{
	return marimo_load(table, marimo_min(share, MARIMO_ONE));
}

void incast_marimo_init(struct marimo *m, const struct marimo_config *config,
			const struct marimo_table *table)
{
	marimo_init(m, config, table);
}

void incast_marimo_on_ack(struct marimo *m, const struct marimo_config *config,
			  const struct marimo_table *table,
			  const struct marimo_ack *ack)
{
	marimo_on_ack(m, config, table, ack);
}

void incast_marimo_on_loss(struct marimo *m,
			   const struct marimo_config *config,
			   marimo_u32 position, marimo_u32 next)
{
	marimo_on_loss(m, config, position, next);
}

void incast_marimo_on_timeout(struct marimo *m,
			      const struct marimo_config *config,
			      marimo_u32 next)
{
	marimo_on_timeout(m, config, next);
}

void incast_marimo_on_idle(struct marimo *m, marimo_u32 next)
{
	marimo_on_idle(m, next);
}

void incast_marimo_on_mtu(struct marimo *m, marimo_u32 before, marimo_u32 after)
{
	marimo_on_mtu(m, before, after);
}
