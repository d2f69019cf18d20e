// A session of Jedis, in both protocols: the list of ../README.md. RUSSET_PORT says where the server is.
// With RUSSET_TLS the connections are encrypted, with the stores of keys that Java was started with.

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Function;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisClientConfig;
import redis.clients.jedis.JedisPubSub;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.Response;
import redis.clients.jedis.StreamEntryID;
import redis.clients.jedis.Transaction;
import redis.clients.jedis.args.GeoUnit;
import redis.clients.jedis.args.ListDirection;
import redis.clients.jedis.csc.CacheConfig;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.exceptions.JedisNoScriptException;
import redis.clients.jedis.params.ScanParams;
import redis.clients.jedis.params.SetParams;
import redis.clients.jedis.params.XReadGroupParams;
import redis.clients.jedis.params.XReadParams;
import redis.clients.jedis.resps.ScanResult;
import redis.clients.jedis.resps.Tuple;

public class JedisSession {
    static final HostAndPort ADDRESS =
            new HostAndPort("localhost", Integer.parseInt(System.getenv("RUSSET_PORT")));
    static final boolean IS_ENCRYPTED = System.getenv("RUSSET_TLS") != null;
    static final int WAIT_SECONDS = 10;
    static final String SCRIPT =
            "redis.call('SET', KEYS[1], ARGV[1]) return {KEYS[1], redis.call('GET', KEYS[1]), 7}";
    static final String LIBRARY = """
            #!lua name=session
            redis.register_function('keep', function(keys, args)
              return redis.call('SET', keys[1], args[1])
            end)
            redis.register_function{
              function_name = 'kept', flags = {'no-writes'},
              callback = function(keys) return redis.call('GET', keys[1]) end
            }""";

    static void check(boolean holds, Object seen) {
        if (!holds) {
            throw new AssertionError("unexpected: " + seen);
        }
    }

    static void equal(Object seen, Object expected) {
        check(expected.equals(seen), seen + " instead of " + expected);
    }

    static void refused(String text, Runnable call) {
        try {
            call.run();
        } catch (JedisDataException refusal) {
            check(refusal.getMessage().contains(text), refusal);
            return;
        }
        throw new AssertionError("not refused: " + text);
    }

    static Jedis connect(RedisProtocol protocol) {
        return new Jedis(ADDRESS, config(protocol));
    }

    static JedisClientConfig config(RedisProtocol protocol) {
        return DefaultJedisClientConfig.builder().protocol(protocol).ssl(IS_ENCRYPTED)
                .blockingSocketTimeoutMillis(2 * WAIT_SECONDS * 1000).build();
    }

    static void strings(Jedis client) {
        equal(client.set("k", "v", SetParams.setParams().nx().px(60_000)), "OK");
        check(client.set("k", "w", SetParams.setParams().nx()) == null, "NX");
        check(client.pttl("k") > 0, "a time to live");
        equal(client.incrBy("n", 5), 5L);
        equal(client.incrByFloat("n", 0.5), 5.5);
        equal(client.mset("a", "1", "b", "2"), "OK");
        equal(client.mget("a", "b"), List.of("1", "2"));
        refused("not an integer", () -> client.incr("k"));
        List<String> found = new ArrayList<>();
        String cursor = ScanParams.SCAN_POINTER_START;
        do {
            ScanResult<String> page = client.scan(cursor, new ScanParams().match("[ab]").count(1));
            found.addAll(page.getResult());
            cursor = page.getCursor();
        } while (!cursor.equals(ScanParams.SCAN_POINTER_START));
        equal(found.stream().sorted().toList(), List.of("a", "b"));
        equal(client.setbit("bits", 7, true), false);
        equal(client.bitcount("bits"), 1L);
        equal(client.bitfield("bits", "SET", "u8", "8", "200", "GET", "u8", "8"), List.of(0L, 200L));
        equal(client.pfadd("visitors", "x", "y", "x"), 1L);
        equal(client.pfcount("visitors"), 2L);
    }

    static void collections(Jedis client) {
        equal(client.rpush("list", "x", "y", "z"), 3L);
        equal(client.lrange("list", 0, -1), List.of("x", "y", "z"));
        equal(client.lmove("list", "other", ListDirection.RIGHT, ListDirection.LEFT), "z");
        equal(client.lmpop(ListDirection.LEFT, 2, "list").getValue(), List.of("x", "y"));

        equal(client.hset("hash", Map.of("f", "1", "g", "two")), 2L);
        equal(client.hgetAll("hash"), Map.of("f", "1", "g", "two"));
        equal(client.hincrBy("hash", "f", 4), 5L);
        equal(client.hexpire("hash", 60, "f", "none"), List.of(1L, -2L));

        equal(client.sadd("s1", "a", "b", "c"), 3L);
        equal(client.sadd("s2", "b", "c", "d"), 3L);
        equal(client.sinter("s1", "s2"), Set.of("b", "c"));
        equal(client.sunionstore("s3", "s1", "s2"), 4L);
        equal(client.smismember("s1", "a", "d"), List.of(true, false));

        equal(client.zadd("zset", Map.of("a", 1.0, "b", 2.5, "c", 3.0)), 3L);
        equal(client.zrangeWithScores("zset", 0, -1),
                List.of(new Tuple("a", 1.0), new Tuple("b", 2.5), new Tuple("c", 3.0)));
        equal(client.zrangeByScore("zset", "(1", "+inf"), List.of("b", "c"));
        equal(client.zincrby("zset", 10, "a"), 11.0);
        equal(client.zrank("zset", "a"), 2L);
        equal(client.zpopmin("zset"), new Tuple("b", 2.5));

        equal(client.geoadd("places", 13.361389, 38.115556, "Palermo"), 1L);
        equal(client.geoadd("places", 15.087269, 37.502669, "Catania"), 1L);
        double distance = client.geodist("places", "Palermo", "Catania", GeoUnit.KM);
        check(Math.abs(distance - 166.2742) < 0.001, distance);
    }

    static void streams(Jedis client) {
        equal(client.xadd("stream", new StreamEntryID(1, 1), Map.of("f", "1")), new StreamEntryID(1, 1));
        equal(client.xadd("stream", new StreamEntryID(1, 2), Map.of("f", "2")), new StreamEntryID(1, 2));
        equal(client.xrange("stream", "-", "+", 1).get(0).getFields(), Map.of("f", "1"));
        equal(client.xgroupCreate("stream", "group", new StreamEntryID(0, 0), false), "OK");
        var read = client.xreadGroup("group", "me", XReadGroupParams.xReadGroupParams().count(1),
                Map.of("stream", StreamEntryID.XREADGROUP_UNDELIVERED_ENTRY));
        equal(read.get(0).getKey(), "stream");
        equal(read.get(0).getValue().get(0).getID(), new StreamEntryID(1, 1));
        equal(client.xpending("stream", "group").getTotal(), 1L);
        equal(client.xack("stream", "group", new StreamEntryID(1, 1)), 1L);
    }

    static void scripts(Jedis client) {
        equal(client.eval(SCRIPT, 1, "s", "value"), List.of("s", "value", 7L));
        String digest = client.scriptLoad(SCRIPT);
        equal(client.evalsha(digest, 1, "s", "again"), List.of("s", "again", 7L));
        client.scriptFlush();
        try {
            client.evalsha(digest, 1, "s", "third");
            throw new AssertionError("an unknown script ran");
        } catch (JedisNoScriptException refusal) {
            check(refusal.getMessage().startsWith("NOSCRIPT"), refusal);
        }
        refused("no such thing", () -> client.eval("return redis.error_reply('ERR no such thing')"));
        equal(client.functionLoadReplace(LIBRARY), "session");
        equal(client.fcall("keep", List.of("f"), List.of("value")), "OK");
        equal(client.fcallReadonly("kept", List.of("f"), List.of()), "value");
        refused("write flag", () -> client.fcallReadonly("keep", List.of("f"), List.of("x")));
        equal(client.functionList().get(0).getLibraryName(), "session");
        equal(client.functionDelete("session"), "OK");
    }

    static void pipelinesAndTransactions(Jedis client, Jedis other) {
        Pipeline pipeline = client.pipelined();
        List<Response<Long>> counts = new ArrayList<>();
        for (int i = 0; i < 200; i++) {
            counts.add(pipeline.incr("counter"));
        }
        pipeline.sync();
        for (int i = 0; i < 200; i++) {
            equal(counts.get(i).get(), i + 1L);
        }

        client.set("a", "1");
        Transaction transaction = client.multi();
        transaction.incr("a");
        transaction.get("a");
        equal(transaction.exec(), List.of(2L, "2"));

        client.watch("a");
        other.incr("a");
        Transaction doomed = client.multi();
        doomed.get("a");
        check(doomed.exec() == null, "a watched key was changed");
    }

    // What a call that blocks answers when it is fed.
    static <T> T served(Jedis client, Jedis other, Function<Jedis, T> call, Runnable feed) {
        FutureTask<T> task = new FutureTask<>(() -> call.apply(other));
        new Thread(task).start();
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(WAIT_SECONDS);
        while (client.info("clients").contains("blocked_clients:0\r")) {
            check(System.nanoTime() < deadline, "nobody is blocked");
        }
        feed.run();
        try {
            return task.get(WAIT_SECONDS, TimeUnit.SECONDS);
        } catch (InterruptedException | ExecutionException | TimeoutException failure) {
            throw new AssertionError("not served", failure);
        }
    }

    static void waits(Jedis client, Jedis other) {
        equal(served(client, other, waiter -> waiter.blpop(WAIT_SECONDS, "queue"),
                () -> client.rpush("queue", "job")), List.of("queue", "job"));
        var popped = served(client, other, waiter -> waiter.bzpopmin(WAIT_SECONDS, "scores"),
                () -> client.zadd("scores", 1.5, "m"));
        equal(popped.getValue(), new Tuple("m", 1.5));
        equal(served(client, other,
                waiter -> waiter.blmove("from", "to", ListDirection.LEFT, ListDirection.RIGHT, WAIT_SECONDS),
                () -> client.rpush("from", "x")), "x");
        var read = served(client, other,
                waiter -> waiter.xread(XReadParams.xReadParams().block(WAIT_SECONDS * 1000),
                        Map.of("events", StreamEntryID.XREAD_NEW_ENTRY)),
                () -> client.xadd("events", new StreamEntryID(5, 1), Map.of("f", "v")));
        equal(read.get(0).getValue().get(0).getID(), new StreamEntryID(5, 1));
        check(client.blpop(0.05, "queue") == null, "a timeout");
    }

    static void messages(Jedis client, Jedis listener) throws InterruptedException {
        LinkedBlockingQueue<String> heard = new LinkedBlockingQueue<>();
        CountDownLatch listening = new CountDownLatch(2);
        JedisPubSub ears = new JedisPubSub() {
            @Override
            public void onSubscribe(String channel, int count) {
                psubscribe("w*");
                listening.countDown();
            }

            @Override
            public void onPSubscribe(String pattern, int count) {
                listening.countDown();
            }

            @Override
            public void onMessage(String channel, String message) {
                heard.add(channel + " " + message);
            }

            @Override
            public void onPMessage(String pattern, String channel, String message) {
                heard.add(pattern + " " + channel + " " + message);
            }
        };
        Thread thread = new Thread(() -> listener.subscribe(ears, "news"));
        thread.start();
        check(listening.await(WAIT_SECONDS, TimeUnit.SECONDS), "a subscription");
        equal(client.publish("news", "hello"), 1L);
        equal(client.publish("weather", "rain"), 1L);
        equal(heard.poll(WAIT_SECONDS, TimeUnit.SECONDS), "news hello");
        equal(heard.poll(WAIT_SECONDS, TimeUnit.SECONDS), "w* weather rain");
        ears.unsubscribe();
        ears.punsubscribe();
        thread.join(WAIT_SECONDS * 1000);
        check(!thread.isAlive(), "the listener's end");
    }

    /** The client's own cache, over CLIENT TRACKING: what another client changes is read again. */
    static void caching(Jedis client) {
        try (var reader = RedisClient.builder().hostAndPort(ADDRESS).clientConfig(config(RedisProtocol.RESP3))
                .cacheConfig(CacheConfig.builder().maxSize(100).build()).build()) {
            client.set("cached", "1");
            for (int time = 0; time < 3; time++) {
                equal(reader.get("cached"), "1");
            }
            equal(reader.getCache().getStats().getHitCount(), 2L);
            client.set("cached", "2");
            becomes(reader, "2");
            client.flushAll();
            becomes(reader, null);
        }
    }

    static void becomes(RedisClient reader, String expected) {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(WAIT_SECONDS);
        while (!Objects.equals(reader.get("cached"), expected)) {
            check(System.nanoTime() < deadline, "an old value in the cache");
        }
    }

    public static void main(String[] words) throws InterruptedException {
        for (RedisProtocol protocol : List.of(RedisProtocol.RESP2, RedisProtocol.RESP3)) {
            try (Jedis client = connect(protocol); Jedis other = connect(protocol)) {
                client.flushAll();
                equal(client.ping(), "PONG");
                check(client.info("server").contains("server_name:russet"), "INFO");
                strings(client);
                collections(client);
                streams(client);
                scripts(client);
                pipelinesAndTransactions(client, other);
                waits(client, other);
                messages(client, other);
                if (protocol == RedisProtocol.RESP3) {
                    caching(client);
                }
                System.out.println("Jedis over " + protocol + ": ok");
            }
        }
    }
}
