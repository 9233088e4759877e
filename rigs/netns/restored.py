"""Two ends of a connection whose receiver is checkpointed and restored (TCP_REPAIR of tcp(7), as CRIU does it): no option of it
restores that ECN was negotiated. restored.py receive ADDRESS PORT BYTES FILE | send ADDRESS PORT BYTES FILE"""
import json
import os
import socket
import struct
import sys
import time

REPAIR, QUEUE, SEQUENCE, OPTIONS, TIMESTAMP, WINDOW = 19, 20, 21, 22, 24, 29
RECEIVED, SENT = 1, 2
MAXSEG, INFO, CONGESTION = 2, 11, 13
FIRST = 1_000_000


def number(connection, option):
    return connection.getsockopt(socket.IPPROTO_TCP, option) & 0xFFFFFFFF


def put(connection, option, value):
    if isinstance(value, int):
        value = struct.pack("=I", value)
    connection.setsockopt(socket.IPPROTO_TCP, option, value)


def restored(connection):
    """A socket that goes on where this one was."""
    put(connection, REPAIR, 1)
    info = connection.getsockopt(socket.IPPROTO_TCP, INFO, 104)
    scales = info[6] & 15 | info[6] >> 4 << 16
    options = [(2, number(connection, MAXSEG)), (3, scales), (4, 0), (8, 0)]
    stamp, window = number(connection, TIMESTAMP), connection.getsockopt(socket.IPPROTO_TCP, WINDOW, 20)
    sequences = {}
    for queue in (RECEIVED, SENT):
        put(connection, QUEUE, queue)
        sequences[queue] = number(connection, SEQUENCE)
    own, peer = connection.getsockname(), connection.getpeername()
    connection.close()
    other = socket.socket()
    other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    put(other, REPAIR, 1)
    other.bind(own)
    for queue, sequence in sequences.items():
        put(other, QUEUE, queue)
        put(other, SEQUENCE, sequence)
    other.connect(peer)
    put(other, OPTIONS, b"".join(struct.pack("=II", *option) for option in options))
    put(other, TIMESTAMP, stamp)
    put(other, WINDOW, window)
    put(other, REPAIR, 0)
    return other


what, address, port, size, file = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
if what == "receive":
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    put(listener, CONGESTION, b"bpf_marimo")
    listener.bind((address, port))
    listener.listen()
    open(f"{file}.listens", "w").close()
    connection, _ = listener.accept()
    listener.close()
    got = 0
    while got < size:
        data = connection.recv(min(1 << 18, (FIRST if got < FIRST else size) - got))
        if not data:
            break
        got += len(data)
        if got == FIRST:
            # Nothing is on its way: the sender waits for the file.
            time.sleep(0.5)
            connection = restored(connection)
            open(file, "w").close()
    print(json.dumps({"received": got}))
else:
    connection = socket.socket()
    put(connection, CONGESTION, b"bpf_marimo")
    connection.connect((address, port))
    connection.sendall(b"x" * FIRST)
    while not os.path.exists(file):
        time.sleep(0.05)
    before = connection.getsockopt(socket.IPPROTO_TCP, INFO, 232)
    connection.sendall(b"x" * (size - FIRST))
    after = connection.getsockopt(socket.IPPROTO_TCP, INFO, 232)
    name = connection.getsockopt(socket.IPPROTO_TCP, CONGESTION, 16).split(b"\0")[0].decode()
    marked = [struct.unpack_from("=L", info, 196)[0] for info in (before, after)]
    print(json.dumps({"marked_before": marked[0], "marked_after": marked[1] - marked[0], "congestion": name}))
    connection.close()
