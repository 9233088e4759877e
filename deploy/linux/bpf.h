/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What BPF programs of this tree share: types, maps, bit fields. A build needs
 * no header of a kernel.
 */
#ifndef INCAST_BPF_H
#define INCAST_BPF_H

typedef __UINT8_TYPE__ u8;
typedef __UINT16_TYPE__ u16;
typedef __UINT32_TYPE__ u32;
typedef __UINT64_TYPE__ u64;
typedef __INT32_TYPE__ s32;
typedef __INT64_TYPE__ s64;
typedef _Bool bool;

#define SEC(name) __attribute__((section(name), used))
#define ALWAYS_INLINE inline __attribute__((always_inline))
#define NOINLINE __attribute__((noinline))

/* A map's definition: types and numbers are read from its BTF. */
#define MAP_NUMBER(name, value) int(*name)[value]
#define MAP_TYPE(name, value) typeof(value) *name

static void *(*const bpf_map_lookup_elem)(void *map, const void *key) =
	(void *)1;
static u64 (*const bpf_ktime_get_ns)(void) = (void *)5;

/*
 * Value of a bit field. Its place is asked of the loader, as the compiler would
 * fix the shifts of the layout below.
 */
#define FIELD_INFO(field, what) __builtin_preserve_field_info(field, what)
#define BITS(field_of, field)                                                 \
	({                                                                    \
		const u8 *place = (const u8 *)(field_of) +                    \
				  FIELD_INFO((field_of)->field, 0);           \
		u64 bits = 0;                                                 \
		switch (FIELD_INFO((field_of)->field, 1)) {                   \
		case 1:                                                       \
			bits = *place;                                        \
			break;                                                \
		case 2:                                                       \
			bits = *(const u16 *)place;                           \
			break;                                                \
		case 4:                                                       \
			bits = *(const u32 *)place;                           \
			break;                                                \
		case 8:                                                       \
			bits = *(const u64 *)place;                           \
			break;                                                \
		}                                                             \
		bits <<= FIELD_INFO((field_of)->field, 4);                    \
		bits >>= FIELD_INFO((field_of)->field, 5);                    \
		bits;                                                         \
	})

#endif /* INCAST_BPF_H */
