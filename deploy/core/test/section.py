#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The instructions of one section of a BPF object as an array of C, for kernel.h. They must need nothing from outside of it.
usage: section.py OBJECT SECTION"""

import struct
import sys

path, wanted = sys.argv[1:]
with open(path, "rb") as file:
    data = file.read()
if data[:6] != b"\x7fELF\x02\x01":
    sys.exit(f"{path} is no ELF object of 64 bits, the lowest byte first")
start, = struct.unpack_from("<Q", data, 40)
size, count, names = struct.unpack_from("<HHH", data, 58)
# elf(5): name, kind, flags, address, offset, size.
headers = [struct.unpack_from("<IIQQQQ", data, start + size * number) for number in range(count)]
text = headers[names][4]
sections = {}
for name, kind, _, _, offset, length in headers:
    end = data.index(b"\0", text + name)
    sections[data[text + name:end].decode()] = data[offset:offset + length] if kind == 1 else b""
if not sections.get(wanted):
    sys.exit(f"{path} has no instructions in {wanted}")
for name in (f".rel{wanted}", f".rela{wanted}"):
    if name in sections:
        sys.exit(f"{path}: {wanted} needs something from outside of it ({name})")
code = sections[wanted]
print(f"static u64 program[] = {{ /* {len(code) // 8} instructions */")
for at in range(0, len(code), 32):
    print("\t" + " ".join(f"{number:#018x}," for number in struct.unpack_from(f"<{len(code[at:at + 32]) // 8}Q", code, at)))
print("};")
