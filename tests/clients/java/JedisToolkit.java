// Jedis's part in workflows that it shares with a Rust program and other clients: functions of
// functions/russet.lua, called by FCALL. `shared` in tests/toolkit runs it, and adds all up.

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.params.SetParams;

public class JedisToolkit {
    static final String APP = System.getenv("TOOLKIT_APP");
    static final String HOUR_MS = "3600000";
    static final String YEAR_MS = String.valueOf(365L * 24 * 3_600_000);
    static Jedis client;

    record Reply(String status, Map<String, Object> fields) {}

    static Reply call(String function, List<String> keys, String... args) {
        List<?> reply = (List<?>) text(client.fcall("russet_v1_" + function, keys, List.of(args)));
        Map<String, Object> fields = new HashMap<>();
        for (int at = 1; at < reply.size(); at += 2) {
            fields.put((String) reply.get(at), reply.get(at + 1));
        }
        return new Reply((String) reply.get(0), fields);
    }

    // Texts may come as bytes.
    static Object text(Object value) {
        if (value instanceof byte[] bytes) {
            return new String(bytes, StandardCharsets.UTF_8);
        }
        if (value instanceof List<?> list) {
            List<Object> texts = new ArrayList<>();
            list.forEach(item -> texts.add(text(item)));
            return texts;
        }
        return value;
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

    static void limit() {
        String prefix = APP + ":limit:v1:{user}:";
        for (int number = 0; number < 60; number++) {
            List<String> keys = List.of(prefix + "request:" + random(), prefix + "window:api/hourly");
            Reply reply = call("limit_check", keys, "60000", random(), "TAKE", "1", "WINDOW", "80", YEAR_MS, "0");
            if (reply.status().equals("ALLOWED")) {
                System.out.println("admitted");
            } else {
                check(reply.status().equals("DENIED"), reply);
            }
        }
    }

    static void sale() {
        String prefix = APP + ":sale:v1:{sale}:";
        for (int number = 0; number < 40; number++) {
            String user = "java-" + number;
            List<String> keys = parts(prefix, "request:" + user, "sale", "orders", "holds", "outbox");
            // Sent twice, as after a lost reply: one order, and the same one.
            String order = random();
            Reply reply = call("sale_buy", keys, "60000", user, order);
            Reply again = call("sale_buy", keys, "60000", user, order);
            if (reply.status().equals("ORDERED")) {
                check(reply.equals(again), again);
                System.out.println("sold " + reply.fields().get("order"));
            } else {
                check(reply.status().equals("SOLD_OUT"), reply);
            }
        }
    }

    static void queue() {
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

    static void lease() {
        List<String> keys = List.of(APP + ":lease:v1:{report}:holder");
        String total = APP + ":shared:v1:{report}:total";
        for (int turns = 0; turns < 15; ) {
            String token = random();
            if (!call("lease_acquire", keys, token, "60000", "60000").status().equals("HELD")) {
                continue;
            }
            String before = client.get(total);
            long now = (before == null ? 0 : Long.parseLong(before)) + 1;
            client.set(total, String.valueOf(now), SetParams.setParams().px(3_600_000));
            Reply released = call("lease_release", keys, token, "60000");
            check(released.status().equals("RELEASED"), released);
            System.out.println("held " + now);
            turns++;
        }
    }

    public static void main(String[] args) throws Exception {
        client = new Jedis("127.0.0.1", Integer.parseInt(System.getenv("RUSSET_PORT")));
        limit();
        sale();
        queue();
        idempotency();
        lease();
        client.close();
    }
}
