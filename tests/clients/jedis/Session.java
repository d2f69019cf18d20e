// A session of Jedis, in both protocols. RUSSET_PORT says where the server is.

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisPubSub;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.Response;
import redis.clients.jedis.Transaction;
import redis.clients.jedis.args.ListDirection;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.params.SetParams;

public class Session {
    static final HostAndPort ADDRESS =
            new HostAndPort("127.0.0.1", Integer.parseInt(System.getenv("RUSSET_PORT")));

    static void check(boolean holds, Object seen) {
        if (!holds) {
            throw new AssertionError("unexpected: " + seen);
        }
    }

    static void equal(Object seen, Object expected) {
        check(expected.equals(seen), seen + " instead of " + expected);
    }

    static Jedis connect(RedisProtocol protocol) {
        return new Jedis(ADDRESS, DefaultJedisClientConfig.builder().protocol(protocol).build());
    }

    static void stringsAndLists(Jedis client) {
        equal(client.set("k", "v", SetParams.setParams().nx().px(60_000)), "OK");
        check(client.set("k", "w", SetParams.setParams().nx()) == null, "NX");
        check(client.pttl("k") > 0, "a time to live");
        equal(client.incrBy("n", 5), 5L);
        equal(client.incrByFloat("n", 0.5), 5.5);
        equal(client.mset("a", "1", "b", "2"), "OK");
        equal(client.mget("a", "b"), List.of("1", "2"));
        equal(client.rpush("list", "x", "y", "z"), 3L);
        equal(client.lrange("list", 0, -1), List.of("x", "y", "z"));
        equal(client.lmove("list", "other", ListDirection.RIGHT, ListDirection.LEFT), "z");
        equal(client.blpop(1, "list"), List.of("list", "x"));
        try {
            client.incr("k");
            throw new AssertionError("INCR of a word is refused");
        } catch (JedisDataException refusal) {
            check(refusal.getMessage().contains("not an integer"), refusal);
        }
    }

    static void pipelinesAndTransactions(Jedis client, Jedis other) {
        Pipeline pipeline = client.pipelined();
        List<Response<Long>> counts = new ArrayList<>();
        for (int i = 0; i < 200; i++) {
            counts.add(pipeline.incr("counter"));
        }
        pipeline.sync();
        equal(counts.get(199).get(), 200L);

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

    static void messages(Jedis client, Jedis listener) throws InterruptedException {
        LinkedBlockingQueue<String> heard = new LinkedBlockingQueue<>();
        CountDownLatch listening = new CountDownLatch(1);
        JedisPubSub ears = new JedisPubSub() {
            @Override
            public void onSubscribe(String channel, int count) {
                listening.countDown();
            }

            @Override
            public void onMessage(String channel, String message) {
                heard.add(channel + " " + message);
            }
        };
        Thread thread = new Thread(() -> listener.subscribe(ears, "news"));
        thread.start();
        check(listening.await(10, TimeUnit.SECONDS), "a subscription");
        equal(client.publish("news", "hello"), 1L);
        equal(heard.poll(10, TimeUnit.SECONDS), "news hello");
        ears.unsubscribe();
        thread.join(10_000);
        check(!thread.isAlive(), "the listener's end");
    }

    public static void main(String[] words) throws InterruptedException {
        for (RedisProtocol protocol : List.of(RedisProtocol.RESP2, RedisProtocol.RESP3)) {
            try (Jedis client = connect(protocol); Jedis other = connect(protocol)) {
                client.flushAll();
                equal(client.ping(), "PONG");
                check(client.info("server").contains("server_name:russet"), "INFO");
                stringsAndLists(client);
                pipelinesAndTransactions(client, other);
                messages(client, other);
                System.out.println("Jedis over " + protocol + ": ok");
            }
        }
    }
}
