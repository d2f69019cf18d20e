// Lettuce's part in workflows that it shares with a Rust program and other clients: functions of
// functions/russet.lua, called by FCALL. `shared` in tests/toolkit runs it, and adds all up.
//
// Calls of limit and sale are all sent before the first reply is waited for, as Lettuce is made for.

import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisURI;
import io.lettuce.core.ScriptOutputType;
import io.lettuce.core.SetArgs;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.async.RedisAsyncCommands;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.UUID;

public class LettuceToolkit {
    static final String APP = System.getenv("TOOLKIT_APP");
    static final String HOUR_MS = "3600000";
    static final String YEAR_MS = String.valueOf(365L * 24 * 3_600_000);
    static RedisAsyncCommands<String, String> client;

    record Reply(String status, Map<String, Object> fields) {}

    static RedisFuture<List<Object>> send(String function, List<String> keys, String... args) {
        return client.fcall("russet_v1_" + function, ScriptOutputType.MULTI, keys.toArray(String[]::new), args);
    }

    static Reply reply(RedisFuture<List<Object>> sent) throws Exception {
        List<Object> reply = sent.get();
        Map<String, Object> fields = new HashMap<>();
        for (int at = 1; at < reply.size(); at += 2) {
            fields.put((String) reply.get(at), reply.get(at + 1));
        }
        return new Reply((String) reply.get(0), fields);
    }

    static Reply call(String function, List<String> keys, String... args) throws Exception {
        return reply(send(function, keys, args));
    }

    static String random() {
        return UUID.randomUUID().toString().replace("-", "");
    }

    static String digest(String text) throws Exception {
        byte[] digest = MessageDigest.getInstance("SHA-256").digest(text.getBytes(StandardCharsets.UTF_8));
        return HexFormat.of().formatHex(digest);
    }

    static void check(boolean isSo, Object what) {
        if (!isSo) {
            throw new AssertionError(what);
        }
    }

    static List<String> parts(String prefix, String... names) {
        List<String> keys = new ArrayList<>();
        for (String name : names) {
            keys.add(prefix + name);
        }
        return keys;
    }

    static void limit() throws Exception {
        String prefix = APP + ":limit:v1:{user}:";
        List<RedisFuture<List<Object>>> sent = new ArrayList<>();
        for (int number = 0; number < 60; number++) {
            List<String> keys = List.of(prefix + "request:" + random(), prefix + "window:api/hourly");
            sent.add(send("limit_check", keys, "60000", random(), "TAKE", "1", "WINDOW", "80", YEAR_MS, "0"));
        }
        for (RedisFuture<List<Object>> one : sent) {
            Reply reply = reply(one);
            if (reply.status().equals("ALLOWED")) {
                System.out.println("admitted");
            } else {
                check(reply.status().equals("DENIED"), reply);
            }
        }
    }

    static void sale() throws Exception {
        String prefix = APP + ":sale:v1:{sale}:";
        List<List<RedisFuture<List<Object>>>> sent = new ArrayList<>();
        for (int number = 0; number < 40; number++) {
            String user = "lettuce-" + number;
            List<String> keys = parts(prefix, "request:" + user, "sale", "orders", "holds", "outbox");
            // Sent twice, as after a lost reply: one order, and the same one.
            String order = random();
            sent.add(List.of(
                    send("sale_buy", keys, "60000", user, order), send("sale_buy", keys, "60000", user, order)));
        }
        for (List<RedisFuture<List<Object>>> both : sent) {
            Reply reply = reply(both.get(0));
            if (reply.status().equals("ORDERED")) {
                Reply again = reply(both.get(1));
                check(reply.equals(again), again);
                System.out.println("sold " + reply.fields().get("order"));
            } else {
                check(reply.status().equals("SOLD_OUT"), reply);
            }
        }
    }

    static void queue() throws Exception {
        String prefix = APP + ":jobs:v1:{jobs}:";
        while (true) {
            List<String> keys = parts(prefix, "request", "meta", "jobs", "ready", "delayed", "taken",
                    "parked", "dead", "graves");
            Reply reply = call("jobs_claim", keys, "0", random(), "2", HOUR_MS, "10", "0", HOUR_MS, "0", "100");
            if (reply.status().equals("EMPTY")) {
                return;
            }
            for (Object item : (List<?>) reply.fields().get("jobs")) {
                List<?> job = (List<?>) item;
                List<String> own = parts(prefix, "request", "meta", "jobs", "ready", "taken", "parked");
                if (call("jobs_ack", own, "0", (String) job.get(3)).status().equals("ACKED")) {
                    System.out.println("acked " + job.get(1));
                }
            }
        }
    }

    static void idempotency() throws Exception {
        String fingerprint = digest("the request");
        for (int number = 0; number < 20; number++) {
            String scope = "{order:acme:" + digest(String.valueOf(number)).substring(0, 32) + "}";
            List<String> keys = List.of(APP + ":idempotency:v1:" + scope + ":record");
            String owner = random();
            String status = call("idempotency_claim", keys, owner, fingerprint, HOUR_MS, HOUR_MS).status();
            if (status.equals("CLAIMED")) {
                System.out.println("ran " + number);
                Reply kept = call("idempotency_complete", keys, owner, String.valueOf(number), HOUR_MS);
                check(kept.status().equals("KEPT"), kept);
            } else {
                check(status.equals("REPLAY") || status.equals("IN_FLIGHT"), status);
            }
        }
    }

    static void lease() throws Exception {
        List<String> keys = List.of(APP + ":lease:v1:{report}:holder");
        String total = APP + ":shared:v1:{report}:total";
        for (int turns = 0; turns < 15; ) {
            String token = random();
            if (!call("lease_acquire", keys, token, "60000", "60000").status().equals("HELD")) {
                continue;
            }
            String before = client.get(total).get();
            long now = (before == null ? 0 : Long.parseLong(before)) + 1;
            client.set(total, String.valueOf(now), SetArgs.Builder.px(3_600_000)).get();
            Reply released = call("lease_release", keys, token, "60000");
            check(released.status().equals("RELEASED"), released);
            System.out.println("held " + now);
            turns++;
        }
    }

    public static void main(String[] args) throws Exception {
        int port = Integer.parseInt(System.getenv("RUSSET_PORT"));
        RedisURI uri = RedisURI.builder().withHost("127.0.0.1").withPort(port).withTimeout(Duration.ofSeconds(60)).build();
        RedisClient lettuce = RedisClient.create(uri);
        try (StatefulRedisConnection<String, String> connection = lettuce.connect()) {
            client = connection.async();
            limit();
            sale();
            queue();
            idempotency();
            lease();
        } finally {
            lettuce.shutdown();
        }
    }
}
