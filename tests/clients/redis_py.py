"""A session of redis-py, in both protocols: the list of README.md. RUSSET_PORT says where the server is.
With RUSSET_TLS, a directory of certificates, the connections are encrypted and show one."""

import os
import threading
import time

import redis
from redis.cache import CacheConfig

PORT = int(os.environ["RUSSET_PORT"])
TLS = os.environ.get("RUSSET_TLS")
WAIT_SECONDS = 10

SCRIPT = "redis.call('SET', KEYS[1], ARGV[1]) return {KEYS[1], redis.call('GET', KEYS[1]), 7}"
LIBRARY = """#!lua name=session
redis.register_function('keep', function(keys, args)
  return redis.call('SET', keys[1], args[1])
end)
redis.register_function{
  function_name = 'kept', flags = {'no-writes'},
  callback = function(keys) return redis.call('GET', keys[1]) end
}"""


def connect(protocol, **options):
    if TLS:
        options |= {
            "ssl": True,
            "ssl_ca_certs": f"{TLS}/ca.crt",
            "ssl_certfile": f"{TLS}/client.crt",
            "ssl_keyfile": f"{TLS}/client.key",
        }
    return redis.Redis(port=PORT, protocol=protocol, decode_responses=True, **options)


def equal(seen, expected):
    assert seen == expected, f"{seen!r} instead of {expected!r}"


def refused(text, call, *words):
    try:
        call(*words)
    except redis.ResponseError as error:
        assert text in str(error), error
        return
    raise AssertionError(f"not refused: {words}")


def strings(client):
    assert client.set("k", "v", px=60_000, nx=True) is True
    assert client.set("k", "w", nx=True) is None
    equal(client.set("k", "w", keepttl=True, get=True), "v")
    assert 0 < client.pttl("k") <= 60_000
    equal(client.incrby("n", 5), 5)
    equal(client.incrbyfloat("n", 0.5), 5.5)
    assert client.mset({"a": 1, "b": 2})
    equal(client.mget("a", "b", "none"), ["1", "2", None])
    equal(sorted(client.scan_iter(match="[ab]", count=1)), ["a", "b"])
    refused("not an integer", client.incr, "k")
    assert client.persist("k") and client.ttl("k") == -1
    equal(client.getdel("k"), "w")
    equal(client.exists("k", "a"), 1)


def bits_and_sketches(client):
    equal(client.setbit("bits", 7, 1), 0)
    equal(client.bitcount("bits"), 1)
    equal(client.bitfield("bits").set("u8", 8, 200).get("u8", 8).execute(), [0, 200])
    equal(client.pfadd("visitors", "x", "y", "x"), 1)
    equal(client.pfcount("visitors"), 2)


def lists(client):
    equal(client.rpush("list", "x", "y", "z"), 3)
    equal(client.lrange("list", 0, -1), ["x", "y", "z"])
    equal(client.lpos("list", "z"), 2)
    equal(client.lmove("list", "other", "RIGHT", "LEFT"), "z")
    equal(client.lmpop(1, "list", direction="LEFT", count=2), ["list", ["x", "y"]])


def hashes(client):
    equal(client.hset("hash", mapping={"f": "1", "g": "two"}), 2)
    equal(client.hgetall("hash"), {"f": "1", "g": "two"})
    equal(client.hincrby("hash", "f", 4), 5)
    equal(client.hmget("hash", "f", "none"), ["5", None])
    equal(client.hexpire("hash", 60, "f", "none"), [1, -2])
    assert 0 < client.httl("hash", "f")[0] <= 60
    equal(client.hdel("hash", "f", "g"), 2)


def sets(client):
    equal(client.sadd("s1", "a", "b", "c"), 3)
    equal(client.sadd("s2", "b", "c", "d"), 3)
    equal(client.sinter("s1", "s2"), {"b", "c"})
    equal(client.sunionstore("s3", "s1", "s2"), 4)
    equal(list(client.smismember("s1", "a", "d")), [1, 0])


def sorted_sets(client, protocol):
    equal(client.zadd("zset", {"a": 1, "b": 2.5, "c": 3}), 3)
    pairs = client.zrange("zset", 0, -1, withscores=True)
    equal([tuple(pair) for pair in pairs], [("a", 1.0), ("b", 2.5), ("c", 3.0)])
    equal(client.zrangebyscore("zset", "(1", "+inf"), ["b", "c"])
    equal(client.zincrby("zset", 10, "a"), 11.0)
    equal(client.zrank("zset", "a"), 2)
    popped = client.zpopmin("zset")
    equal(list(popped[0]) if protocol == 2 else popped, ["b", 2.5])


def places(client):
    equal(client.geoadd("places", (13.361389, 38.115556, "Palermo", 15.087269, 37.502669, "Catania")), 2)
    assert abs(client.geodist("places", "Palermo", "Catania", "km") - 166.2742) < 0.001
    near = client.geosearch("places", longitude=15, latitude=37, radius=100, unit="km")
    equal(near, ["Catania"])


def streams(client):
    first = client.xadd("stream", {"f": "1"}, id="1-1")
    second = client.xadd("stream", {"f": "2"}, id="1-2")
    equal((first, second, client.xlen("stream")), ("1-1", "1-2", 2))
    equal(client.xrange("stream", "-", "+", count=1), [("1-1", {"f": "1"})])
    assert client.xgroup_create("stream", "group", id="0")
    read = client.xreadgroup("group", "me", {"stream": ">"}, count=1)
    if isinstance(read, dict):
        read = [(name, entries) for name, entries in read.items()]
    name, entries = read[0]
    while entries and isinstance(entries[0], list):
        entries = entries[0]
    equal((name, [(id, fields) for id, fields in entries]), ("stream", [("1-1", {"f": "1"})]))
    equal(client.xpending("stream", "group")["pending"], 1)
    equal(client.xack("stream", "group", "1-1"), 1)


def scripts(client):
    equal(client.eval(SCRIPT, 1, "s", "value"), ["s", "value", 7])
    script = client.register_script(SCRIPT)
    client.script_flush()
    equal(script(keys=["s"], args=["again"]), ["s", "again", 7])
    equal(client.evalsha(script.sha, 1, "s", "third"), ["s", "third", 7])
    refused("no such thing", client.eval, "return redis.error_reply('ERR no such thing')", 0)


def functions(client):
    equal(client.function_load(LIBRARY, replace=True), "session")
    equal(client.fcall("keep", 1, "f", "value"), "OK")
    equal(client.fcall_ro("kept", 1, "f"), "value")
    refused("Can not execute a script with write flag", client.fcall_ro, "keep", 1, "f", "x")
    equal(len(client.function_list()), 1)
    assert client.function_delete("session")


def pipelines_and_transactions(client):
    with client.pipeline(transaction=False) as pipe:
        for index in range(200):
            pipe.set(f"p{index}", index)
        equal(pipe.execute(), [True] * 200)
    client.set("a", 1)
    with client.pipeline() as pipe:
        pipe.watch("a")
        pipe.multi()
        pipe.incr("a")
        pipe.get("a")
        equal(pipe.execute(), [2, "2"])
    with client.pipeline() as pipe:
        pipe.watch("a")
        client.incr("a")
        pipe.multi()
        pipe.get("a")
        try:
            pipe.execute()
            raise AssertionError("a watched key was changed")
        except redis.WatchError:
            pass


def served(client, protocol, blocking_call, feed):
    """What a blocking call on another connection answers when it is fed."""
    answers = []
    other = connect(protocol)
    waiter = threading.Thread(target=lambda: answers.append(blocking_call(other)))
    waiter.start()
    deadline = time.monotonic() + WAIT_SECONDS
    while client.info("clients")["blocked_clients"] == 0:
        assert time.monotonic() < deadline, "nobody is blocked"
    feed()
    waiter.join(WAIT_SECONDS)
    other.close()
    assert answers, "not served"
    return answers[0]


def blocking(client, protocol):
    popped = served(client, protocol, lambda other: other.blpop(["queue"], timeout=WAIT_SECONDS),
                    lambda: client.rpush("queue", "job"))
    equal(list(popped), ["queue", "job"])
    popped = served(client, protocol, lambda other: other.bzpopmin(["scores"], timeout=WAIT_SECONDS),
                    lambda: client.zadd("scores", {"m": 1.5}))
    equal(list(popped), ["scores", "m", 1.5])
    moved = served(client, protocol, lambda other: other.blmove("from", "to", WAIT_SECONDS),
                   lambda: client.rpush("from", "x"))
    equal((moved, client.lrange("to", 0, -1)), ("x", ["x"]))
    read = served(client, protocol, lambda other: other.xread({"events": "$"}, block=WAIT_SECONDS * 1000),
                  lambda: client.xadd("events", {"f": "v"}, id="5-1"))
    assert "5-1" in str(read), read
    assert client.blpop(["queue"], timeout=0.05) is None


def messages(client, protocol):
    listener = connect(protocol).pubsub()
    listener.subscribe("news")
    listener.psubscribe("w*")
    listener.ssubscribe("shard")
    for _ in range(3):
        assert listener.get_message(timeout=WAIT_SECONDS)["type"].endswith("subscribe")
    equal((client.publish("news", "hello"), client.publish("weather", "rain")), (1, 1))
    equal(client.spublish("shard", "piece"), 1)
    heard = [listener.get_message(timeout=WAIT_SECONDS) for _ in range(3)]
    equal([(message["type"], message["channel"], message["data"]) for message in heard],
          [("message", "news", "hello"), ("pmessage", "weather", "rain"), ("smessage", "shard", "piece")])
    equal(client.pubsub_numsub("news"), [("news", 1)])
    listener.close()


def caching(client):
    """The client's own cache, over CLIENT TRACKING: a value that another client changes is read again."""
    reader = connect(3, cache_config=CacheConfig())
    client.set("cached", "1")
    equal([reader.get("cached") for _ in range(3)], ["1", "1", "1"])
    equal(reader.get_cache().size, 1)
    for change, expected in [(lambda: client.set("cached", "2"), "2"), (client.flushall, None)]:
        change()
        deadline = time.monotonic() + WAIT_SECONDS
        while reader.get("cached") != expected:
            assert time.monotonic() < deadline, "the cache was not invalidated"
    reader.close()


def session(protocol):
    client = connect(protocol)
    client.flushall()
    assert client.ping()
    equal(client.info("server")["server_name"], "russet")
    strings(client)
    bits_and_sketches(client)
    lists(client)
    hashes(client)
    sets(client)
    sorted_sets(client, protocol)
    places(client)
    streams(client)
    scripts(client)
    functions(client)
    pipelines_and_transactions(client)
    blocking(client, protocol)
    messages(client, protocol)
    if protocol == 3:
        caching(client)
    client.close()


for version in (2, 3):
    session(version)
    print(f"redis-py {redis.__version__} over RESP{version}: ok")
