"""A session of redis-py, in both protocols. RUSSET_PORT says where the server is."""

import os
import threading

import redis

PORT = int(os.environ["RUSSET_PORT"])


def session(protocol):
    client = redis.Redis(port=PORT, protocol=protocol, decode_responses=True)
    client.flushall()
    assert client.ping()
    assert client.info("server")["server_name"] == "russet"

    # Strings, options and expiry.
    assert client.set("k", "v", px=60_000, nx=True) is True
    assert client.set("k", "w", nx=True) is None
    assert client.set("k", "w", keepttl=True, get=True) == "v"
    assert 0 < client.pttl("k") <= 60_000
    assert client.incrby("n", 5) == 5 and client.incrbyfloat("n", 0.5) == 5.5
    assert client.mset({"a": 1, "b": 2}) and client.mget("a", "b", "none") == ["1", "2", None]
    assert sorted(client.scan_iter(match="[ab]", count=1)) == ["a", "b"]
    try:
        client.incr("k")
        raise AssertionError("INCR of a word is refused")
    except redis.ResponseError as error:
        assert "not an integer" in str(error)

    # Bits and lists.
    assert client.setbit("bits", 7, 1) == 0 and client.bitcount("bits") == 1
    assert client.rpush("list", "x", "y", "z") == 3
    assert client.lrange("list", 0, -1) == ["x", "y", "z"]
    assert client.lpos("list", "z") == 2 and client.lmove("list", "other", "RIGHT", "LEFT") == "z"

    # Pipelines and transactions.
    with client.pipeline(transaction=False) as pipe:
        for index in range(200):
            pipe.set(f"p{index}", index)
        assert pipe.execute() == [True] * 200
    with client.pipeline() as pipe:
        pipe.watch("a")
        pipe.multi()
        pipe.incr("a")
        pipe.get("a")
        assert pipe.execute() == [2, "2"]
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

    blocking(client, protocol)
    messages(client, protocol)
    client.close()


def blocking(client, protocol):
    answers = []
    other = redis.Redis(port=PORT, protocol=protocol, decode_responses=True)
    waiter = threading.Thread(target=lambda: answers.append(other.blpop(["queue"], timeout=10)))
    waiter.start()
    while client.info("clients")["blocked_clients"] == 0:
        pass
    assert client.rpush("queue", "job") == 1
    waiter.join(10)
    assert answers and list(answers[0]) == ["queue", "job"], answers
    assert client.blpop(["queue"], timeout=0.05) is None


def messages(client, protocol):
    listener = redis.Redis(port=PORT, protocol=protocol, decode_responses=True).pubsub()
    listener.subscribe("news")
    listener.psubscribe("w*")
    for _ in range(2):
        assert listener.get_message(timeout=5)["type"].endswith("subscribe")
    assert client.publish("news", "hello") == 1 and client.publish("weather", "rain") == 1
    first, second = listener.get_message(timeout=5), listener.get_message(timeout=5)
    assert (first["type"], first["data"]) == ("message", "hello"), first
    assert (second["type"], second["data"]) == ("pmessage", "rain"), second
    listener.close()


for version in (2, 3):
    session(version)
    print(f"redis-py {redis.__version__} over RESP{version}: ok")
