#!/usr/bin/env python3
"""Makes the RDB files of this directory, and digests.txt, which says what they hold.

    python3 tests/rdb/generate.py <redis-server of 7.0> <valkey-server of 9>

What today's servers write is written by them, from the commands below. What they no longer write
(ziplists, zipmaps, scores as text, times in seconds, versions 1 to 9) is put together here, byte by
byte as the comments say, and then loaded by the Redis that was given: its DEBUG DIGEST, not ours, is
what digests.txt records. Deadlines lie in the year 2100.
"""

import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
YEAR_2100_MS = 4102444800000


class Server:
    """A server on a free port, in a directory of its own."""

    def __init__(self, binary, rdb=None):
        self.dir = tempfile.mkdtemp()
        if rdb:
            shutil.copy(rdb, os.path.join(self.dir, "dump.rdb"))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", self.dir]
        options += ["--enable-debug-command", "yes"]
        self.process = subprocess.Popen([binary] + options, stdout=subprocess.DEVNULL)
        for _ in range(100):
            try:
                self.socket = socket.create_connection(("127.0.0.1", port))
                break
            except OSError:
                time.sleep(0.05)
        self.replies = self.socket.makefile("rb")

    def call(self, *args):
        args = [arg if isinstance(arg, bytes) else str(arg).encode() for arg in args]
        request = b"*%d\r\n" % len(args)
        for arg in args:
            request += b"$%d\r\n%s\r\n" % (len(arg), arg)
        self.socket.sendall(request)
        return self.read()

    def read(self):
        line = self.replies.readline()[:-2]
        kind, rest = line[:1], line[1:]
        if kind == b"$":
            return None if rest == b"-1" else self.replies.read(int(rest) + 2)[:-2]
        if kind == b"*":
            return [self.read() for _ in range(int(rest))]
        assert kind != b"-", line
        return line

    def digest(self):
        return self.call("DEBUG", "DIGEST").decode().lstrip("+")

    def end(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.dir)


def fill(server, is_valkey):
    """Every type in every encoding that the server has."""
    call = server.call
    call("SET", "text", "hello"), call("SET", "empty", "")
    call("SET", "int8", -5), call("SET", "int16", 3000), call("SET", "int32", -2000000000)
    call("SET", "int64", 2**62), call("SET", "compressible", "abc" * 500)
    call("SET", "expiring", "later", "PXAT", YEAR_2100_MS)
    call("SET", b"\x00\xff binary", bytes(range(256)))
    call("RPUSH", "list:small", "a", 1, "-70000", 2**40, "z" * 100)
    for at in range(0, 3000, 100):
        call("RPUSH", "list:large", *["element:%d" % n for n in range(at, at + 100)])
    call("RPUSH", "list:long", "x" * 20000, "short", "y" * 9000)
    call("SADD", "set:ints", 1, -40000, 2**33)
    call("SADD", "set:small", "a", "b", 3)
    call("SADD", "set:large", *["member:%d" % n for n in range(700)])
    call("SADD", "set:manyints", *range(1000))
    call("ZADD", "zset:small", 1, "one", 2.5, "two and a half", "-inf", "least", 1e20, "large")
    call("ZADD", "zset:large", *[x for n in range(500) for x in (n / 8, "member:%d" % n)])
    call("HSET", "hash:small", "f", "v", "number", 42, "long", "w" * 60)
    call("HSET", "hash:large", *[x for n in range(700) for x in ("field:%d" % n, n)])
    call("HSET", "hash:long", "f", "v" * 500)
    for n in range(1, 250):
        call("XADD", "stream", "%d-%d" % (n, n), "name", n, "other", "text")
    call("XADD", "stream", "1000-0", "own", "names", "only", "here")
    call("XDEL", "stream", "7-7", "200-200")
    call("XGROUP", "CREATE", "stream", "group", "0")
    call("XREADGROUP", "GROUP", "group", "alice", "COUNT", 5, "STREAMS", "stream", ">")
    call("XREADGROUP", "GROUP", "group", "bob", "COUNT", 3, "STREAMS", "stream", ">")
    call("XACK", "stream", "group", "2-2")
    call("XGROUP", "CREATE", "stream", "idle", "$")
    call("XADD", "stream:empty", "5-5", "a", "b"), call("XDEL", "stream:empty", "5-5")
    call("PFADD", "hyperloglog", *range(100)), call("SETBIT", "bits", 1000, 1)
    if is_valkey:
        call("HSET", "hash:ttl", "stays", 1, "goes", 2)
        call("HPEXPIREAT", "hash:ttl", YEAR_2100_MS, "FIELDS", 1, "goes")
        call("HSET", "hash:ttl:large", *[x for n in range(700) for x in ("field:%d" % n, n)])
        call("HPEXPIREAT", "hash:ttl:large", YEAR_2100_MS + 5, "FIELDS", 2, "field:3", "field:4")
    call("SELECT", 3), call("SET", "elsewhere", "in database 3"), call("SELECT", 0)
    call("FUNCTION", "LOAD", "#!lua name=lib\nredis.register_function('f', function() return 7 end)")


def length(number):
    if number < 64:
        return bytes([number])
    if number < 16384:
        return struct.pack(">H", 0x4000 | number)
    return b"\x80" + struct.pack(">I", number)


def string(text):
    text = text.encode() if isinstance(text, str) else text
    return length(len(text)) + text


def ziplist(elements):
    """See crates/persistence/src/rdb/ziplist.rs."""
    body, previous, tail = b"", 0, 10
    for element in elements:
        tail = 10 + len(body)
        entry = bytes([previous]) if previous < 254 else b"\xfe" + struct.pack("<I", previous)
        if isinstance(element, int):
            for tag, form, bits in ((0xFE, "<b", 8), (0xC0, "<h", 16), (0xD0, "<i", 32), (0xE0, "<q", 64)):
                if -(1 << bits - 1) <= element < 1 << bits - 1:
                    small = 0 <= element <= 12
                    entry += bytes([0xF1 + element]) if small else bytes([tag]) + struct.pack(form, element)
                    break
        else:
            text = element.encode()
            if len(text) < 64:
                entry += bytes([len(text)]) + text
            else:
                entry += struct.pack(">H", 0x4000 | len(text)) + text
        body, previous = body + entry, len(entry)
    return struct.pack("<IIH", 11 + len(body), tail, len(elements)) + body + b"\xff"


def zipmap(pairs):
    """See crates/persistence/src/rdb/zipmap.rs."""
    out = bytes([len(pairs)])
    for name, value in pairs:
        out += bytes([len(name)]) + name.encode() + bytes([len(value), 1]) + value.encode() + b"\x00"
    return out + b"\xff"


def crc64(data):
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ 0x95AC9329AC4BC9B5 if crc & 1 else crc >> 1
    return crc


def old_file(version):
    """A file as servers of long ago wrote it: version 1 for those before 2.4, and so on."""
    out = b"REDIS%04d" % version
    if version >= 7:
        out += b"\xfa" + string("redis-ver") + string("3.2.0")
    out += b"\xfe\x00"
    if version >= 7:
        out += b"\xfb\x09\x01"  # so many keys, so many that expire
    out += b"\x00" + string("text") + string("hello") + b"\x00" + string("number") + b"\xc1\x2c\x01"
    # Seconds, as all had it before version 3; milliseconds since.
    expiry = b"\xfd" + struct.pack("<i", 2000000000)
    if version >= 3:
        expiry = b"\xfc" + struct.pack("<q", YEAR_2100_MS)
    out += expiry + b"\x00" + string("expiring") + string("later")
    # Compressed: "a", then a copy of 19 from one byte back.
    out += b"\x00" + string("compressed") + b"\xc3\x05\x14\x00a\xe0\x0a\x00"
    out += b"\x01" + string("list") + length(3) + string("a") + string("b") + b"\xc0\x05"
    out += b"\x02" + string("set") + length(2) + string("x") + string("y")
    # Scores as text; 254 is infinity.
    out += b"\x03" + string("zset") + length(3)
    out += string("m") + b"\x031.5" + string("n") + b"\xfe" + string("o") + b"\x02-3"
    out += b"\x04" + string("hash") + length(1) + string("f") + string("v")
    out += b"\x09" + string("zipmap") + string(zipmap([("f", "v"), ("g", "12")]))
    if version >= 2:
        texts = ["a", 1, 12, 13, -1, 300, -70000, 2**40, "t" * 100, "u" * 300, "end"]
        out += b"\x0a" + string("list:ziplist") + string(ziplist(texts))
        intset = struct.pack("<IIhhh", 2, 3, -7, 0, 900)
        out += b"\x0b" + string("set:intset") + string(intset)
        out += b"\x0c" + string("zset:ziplist") + string(ziplist(["a", -1, "b", "2.5", "c", 7]))
    if version >= 4:
        out += b"\x0d" + string("hash:ziplist") + string(ziplist(["f", "v", "number", 42]))
    if version >= 7:
        nodes = [ziplist(["a", "b"]), ziplist([3, "d" * 70])]
        out += b"\x0e" + string("list:quicklist") + length(2) + b"".join(map(string, nodes))
    if version >= 8:
        out += b"\x05" + string("zset:binary") + length(1) + string("m") + struct.pack("<d", -0.5)
    if version >= 9:
        out += b"\xf8" + length(100) + b"\x00" + string("idle") + string("v")
        out += b"\xf9\x07" + b"\x00" + string("used") + string("v")
    out += b"\xff"
    return out + (struct.pack("<Q", crc64(out)) if version >= 5 else b"")


def main(redis, valkey):
    digests = []
    for name, binary, is_valkey in (("redis-7.0", redis, False), ("valkey-9", valkey, True)):
        server = Server(binary)
        fill(server, is_valkey)
        server.call("SAVE")
        shutil.copy(os.path.join(server.dir, "dump.rdb"), os.path.join(HERE, name + ".rdb"))
        digests.append((name, server.digest()))
        server.end()
    for version in range(1, 10):
        name = "version-%d" % version
        path = os.path.join(HERE, name + ".rdb")
        with open(path, "wb") as file:
            file.write(old_file(version))
        server = Server(redis, path)
        digests.append((name, server.digest()))
        server.end()
    with open(os.path.join(HERE, "digests.txt"), "w") as file:
        file.write("# Made by generate.py: the file, and what a real server's DEBUG DIGEST says of it.\n")
        file.writelines("%s %s\n" % pair for pair in digests)


if __name__ == "__main__":
    main(*sys.argv[1:])
