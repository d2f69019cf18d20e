// A session of Lettuce, in both protocols: the list of ../README.md. RUSSET_PORT says where the server is.

import io.lettuce.core.ClientOptions;
import io.lettuce.core.Consumer;
import io.lettuce.core.GeoArgs;
import io.lettuce.core.KeyScanCursor;
import io.lettuce.core.KeyValue;
import io.lettuce.core.LMPopArgs;
import io.lettuce.core.LMoveArgs;
import io.lettuce.core.Limit;
import io.lettuce.core.Range;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisNoScriptException;
import io.lettuce.core.RedisURI;
import io.lettuce.core.ScanArgs;
import io.lettuce.core.ScanCursor;
import io.lettuce.core.ScoredValue;
import io.lettuce.core.ScriptOutputType;
import io.lettuce.core.SetArgs;
import io.lettuce.core.TrackingArgs;
import io.lettuce.core.TransactionResult;
import io.lettuce.core.XAddArgs;
import io.lettuce.core.XReadArgs;
import io.lettuce.core.XReadArgs.StreamOffset;
import io.lettuce.core.BitFieldArgs;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.async.RedisAsyncCommands;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.protocol.ProtocolVersion;
import io.lettuce.core.pubsub.RedisPubSubAdapter;
import io.lettuce.core.pubsub.StatefulRedisPubSubConnection;
import io.lettuce.core.support.caching.CacheAccessor;
import io.lettuce.core.support.caching.ClientSideCaching;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;

public class LettuceSession {
    static final int PORT = Integer.parseInt(System.getenv("RUSSET_PORT"));
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
        } catch (RedisCommandExecutionException refusal) {
            check(refusal.getMessage().contains(text), refusal);
            return;
        }
        throw new AssertionError("not refused: " + text);
    }

    static void strings(RedisCommands<String, String> client) {
        equal(client.set("k", "v", SetArgs.Builder.nx().px(60_000)), "OK");
        check(client.set("k", "w", SetArgs.Builder.nx()) == null, "NX");
        check(client.pttl("k") > 0, "a time to live");
        equal(client.incrby("n", 5), 5L);
        equal(client.incrbyfloat("n", 0.5), 5.5);
        equal(client.mset(Map.of("a", "1", "b", "2")), "OK");
        equal(client.mget("a", "b"), List.of(KeyValue.just("a", "1"), KeyValue.just("b", "2")));
        refused("not an integer", () -> client.incr("k"));
        List<String> found = new ArrayList<>();
        ScanArgs page = ScanArgs.Builder.matches("[ab]").limit(1);
        KeyScanCursor<String> cursor = client.scan(page);
        found.addAll(cursor.getKeys());
        while (!cursor.isFinished()) {
            cursor = client.scan(ScanCursor.of(cursor.getCursor()), page);
            found.addAll(cursor.getKeys());
        }
        equal(found.stream().sorted().toList(), List.of("a", "b"));
        equal(client.setbit("bits", 7, 1), 0L);
        equal(client.bitcount("bits"), 1L);
        BitFieldArgs fields = BitFieldArgs.Builder
                .set(BitFieldArgs.unsigned(8), 8, 200).get(BitFieldArgs.unsigned(8), 8);
        equal(client.bitfield("bits", fields), List.of(0L, 200L));
        equal(client.pfadd("visitors", "x", "y", "x"), 1L);
        equal(client.pfcount("visitors"), 2L);
    }

    static void collections(RedisCommands<String, String> client) {
        equal(client.rpush("list", "x", "y", "z"), 3L);
        equal(client.lrange("list", 0, -1), List.of("x", "y", "z"));
        equal(client.lmove("list", "other", LMoveArgs.Builder.rightLeft()), "z");
        equal(client.lmpop(LMPopArgs.Builder.left().count(2), "list").getValue(), List.of("x", "y"));

        equal(client.hset("hash", Map.of("f", "1", "g", "two")), 2L);
        equal(client.hgetall("hash"), Map.of("f", "1", "g", "two"));
        equal(client.hincrby("hash", "f", 4), 5L);
        equal(client.hexpire("hash", 60, "f", "none"), List.of(1L, -2L));

        equal(client.sadd("s1", "a", "b", "c"), 3L);
        equal(client.sadd("s2", "b", "c", "d"), 3L);
        equal(client.sinter("s1", "s2"), Set.of("b", "c"));
        equal(client.sunionstore("s3", "s1", "s2"), 4L);
        equal(client.smismember("s1", "a", "d"), List.of(true, false));

        equal(client.zadd("zset", 1.0, "a", 2.5, "b", 3.0, "c"), 3L);
        equal(client.zrangeWithScores("zset", 0, -1),
                List.of(ScoredValue.just(1, "a"), ScoredValue.just(2.5, "b"), ScoredValue.just(3, "c")));
        Range<Double> above = Range.from(Range.Boundary.excluding(1.0), Range.Boundary.unbounded());
        equal(client.zrangebyscore("zset", above), List.of("b", "c"));
        equal(client.zincrby("zset", 10, "a"), 11.0);
        equal(client.zrank("zset", "a"), 2L);
        equal(client.zpopmin("zset"), ScoredValue.just(2.5, "b"));

        equal(client.geoadd("places", 13.361389, 38.115556, "Palermo"), 1L);
        equal(client.geoadd("places", 15.087269, 37.502669, "Catania"), 1L);
        double distance = client.geodist("places", "Palermo", "Catania", GeoArgs.Unit.km);
        check(Math.abs(distance - 166.2742) < 0.001, distance);
    }

    static void streams(RedisCommands<String, String> client) {
        equal(client.xadd("stream", XAddArgs.Builder.maxlen(100).id("1-1"), Map.of("f", "1")), "1-1");
        equal(client.xadd("stream", XAddArgs.Builder.maxlen(100).id("1-2"), Map.of("f", "2")), "1-2");
        var entries = client.xrange("stream", Range.unbounded(), Limit.from(1));
        equal(entries.get(0).getBody(), Map.of("f", "1"));
        equal(client.xgroupCreate(StreamOffset.from("stream", "0"), "group"), "OK");
        var read = client.xreadgroup(Consumer.from("group", "me"), XReadArgs.Builder.count(1),
                StreamOffset.lastConsumed("stream"));
        equal(read.get(0).getId(), "1-1");
        equal(client.xpending("stream", "group").getCount(), 1L);
        equal(client.xack("stream", "group", "1-1"), 1L);
    }

    static void scripts(RedisCommands<String, String> client) {
        String[] keys = {"s"};
        equal(client.eval(SCRIPT, ScriptOutputType.MULTI, keys, "value"), List.of("s", "value", 7L));
        String digest = client.scriptLoad(SCRIPT);
        equal(client.evalsha(digest, ScriptOutputType.MULTI, keys, "again"), List.of("s", "again", 7L));
        client.scriptFlush();
        try {
            client.evalsha(digest, ScriptOutputType.MULTI, keys, "third");
            throw new AssertionError("an unknown script ran");
        } catch (RedisNoScriptException refusal) {
            check(refusal.getMessage().startsWith("NOSCRIPT"), refusal);
        }
        refused("no such thing", () ->
                client.eval("return redis.error_reply('ERR no such thing')", ScriptOutputType.STATUS));
        equal(client.functionLoad(LIBRARY, true), "session");
        String[] one = {"f"};
        equal(client.fcall("keep", ScriptOutputType.STATUS, one, "value"), "OK");
        equal(client.fcallReadOnly("kept", ScriptOutputType.VALUE, one), "value");
        refused("write flag", () -> client.fcallReadOnly("keep", ScriptOutputType.STATUS, one, "x"));
        equal(client.functionList().size(), 1);
        equal(client.functionFlush(io.lettuce.core.FlushMode.SYNC), "OK");
    }

    static void pipelinesAndTransactions(StatefulRedisConnection<String, String> connection,
            RedisCommands<String, String> other) throws Exception {
        RedisAsyncCommands<String, String> async = connection.async();
        connection.setAutoFlushCommands(false);
        List<RedisFuture<Long>> counts = new ArrayList<>();
        for (int i = 0; i < 200; i++) {
            counts.add(async.incr("counter"));
        }
        connection.flushCommands();
        connection.setAutoFlushCommands(true);
        for (int i = 0; i < 200; i++) {
            equal(counts.get(i).get(WAIT_SECONDS, TimeUnit.SECONDS), i + 1L);
        }

        RedisCommands<String, String> client = connection.sync();
        client.set("a", "1");
        client.multi();
        client.incr("a");
        client.get("a");
        TransactionResult done = client.exec();
        equal(List.of(done.get(0), done.get(1)), List.of(2L, "2"));

        client.watch("a");
        other.incr("a");
        client.multi();
        client.get("a");
        check(client.exec().wasDiscarded(), "a watched key was changed");
    }

    // What a call that blocks answers when it is fed.
    static <T> T served(RedisCommands<String, String> client, RedisFuture<T> call, Runnable feed)
            throws Exception {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(WAIT_SECONDS);
        while (client.info("clients").contains("blocked_clients:0\r")) {
            check(System.nanoTime() < deadline, "nobody is blocked");
        }
        feed.run();
        return call.get(WAIT_SECONDS, TimeUnit.SECONDS);
    }

    static void waits(RedisCommands<String, String> client, RedisAsyncCommands<String, String> other)
            throws Exception {
        equal(served(client, other.blpop(WAIT_SECONDS, "queue"), () -> client.rpush("queue", "job")),
                KeyValue.just("queue", "job"));
        equal(served(client, other.bzpopmin(WAIT_SECONDS, "scores"), () -> client.zadd("scores", 1.5, "m")),
                KeyValue.just("scores", ScoredValue.just(1.5, "m")));
        equal(served(client, other.blmove("from", "to", LMoveArgs.Builder.leftRight(), WAIT_SECONDS),
                () -> client.rpush("from", "x")), "x");
        var read = served(client, other.xread(XReadArgs.Builder.block(WAIT_SECONDS * 1000),
                StreamOffset.latest("events")),
                () -> client.xadd("events", new XAddArgs().id("5-1"), Map.of("f", "v")));
        equal(read.get(0).getId(), "5-1");
        check(other.blpop(0.05, "queue").get(WAIT_SECONDS, TimeUnit.SECONDS) == null, "a timeout");
    }

    static void messages(RedisCommands<String, String> client,
            StatefulRedisPubSubConnection<String, String> listener) throws InterruptedException {
        LinkedBlockingQueue<String> heard = new LinkedBlockingQueue<>();
        listener.addListener(new RedisPubSubAdapter<>() {
            @Override
            public void message(String channel, String message) {
                heard.add(channel + " " + message);
            }

            @Override
            public void message(String pattern, String channel, String message) {
                heard.add(pattern + " " + channel + " " + message);
            }

            @Override
            public void smessage(String channel, String message) {
                heard.add("shard: " + channel + " " + message);
            }
        });
        listener.sync().subscribe("news");
        listener.sync().psubscribe("w*");
        listener.sync().ssubscribe("shard");
        equal(client.publish("news", "hello"), 1L);
        equal(client.publish("weather", "rain"), 1L);
        equal(client.spublish("shard", "piece"), 1L);
        equal(heard.poll(WAIT_SECONDS, TimeUnit.SECONDS), "news hello");
        equal(heard.poll(WAIT_SECONDS, TimeUnit.SECONDS), "w* weather rain");
        equal(heard.poll(WAIT_SECONDS, TimeUnit.SECONDS), "shard: shard piece");
    }

    /** The client's own cache, over CLIENT TRACKING: what another client changes is read again. */
    static void caching(RedisCommands<String, String> client, StatefulRedisConnection<String, String> reader) {
        Map<String, String> cache = new ConcurrentHashMap<>();
        var cached = ClientSideCaching.enable(CacheAccessor.forMap(cache), reader, TrackingArgs.Builder.enabled());
        client.set("cached", "1");
        equal(cached.get("cached"), "1");
        equal(cache, Map.of("cached", "1"));
        client.set("cached", "2");
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(WAIT_SECONDS);
        while (!"2".equals(cached.get("cached"))) {
            check(System.nanoTime() < deadline, "an old value in the cache");
        }
    }

    static void session(ProtocolVersion protocol) throws Exception {
        RedisURI address = RedisURI.builder().withHost("127.0.0.1").withPort(PORT)
                .withTimeout(Duration.ofSeconds(2 * WAIT_SECONDS)).build();
        RedisClient factory = RedisClient.create(address);
        factory.setOptions(ClientOptions.builder().protocolVersion(protocol).build());
        try (var connection = factory.connect(); var other = factory.connect();
                var listener = factory.connectPubSub()) {
            RedisCommands<String, String> client = connection.sync();
            client.flushall();
            equal(client.ping(), "PONG");
            check(client.info("server").contains("server_name:russet"), "INFO");
            strings(client);
            collections(client);
            streams(client);
            scripts(client);
            pipelinesAndTransactions(connection, other.sync());
            waits(client, other.async());
            messages(client, listener);
            if (protocol == ProtocolVersion.RESP3) {
                caching(client, other);
            }
            System.out.println("Lettuce over " + protocol + ": ok");
        } finally {
            factory.shutdown(0, WAIT_SECONDS, TimeUnit.SECONDS);
        }
    }

    public static void main(String[] words) throws Exception {
        session(ProtocolVersion.RESP2);
        session(ProtocolVersion.RESP3);
    }
}
