// The limit, lock and delayed queue of Redisson on a running server, to set beside the toolkit's
// own figures: operations per second, and the server's CPU for each, from the scheduler's books.
// Run by hand; bench/README.md says how. Arguments: ports of the servers, measured in turn.

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RBlockingQueue;
import org.redisson.api.RDelayedQueue;
import org.redisson.api.RLock;
import org.redisson.api.RRateLimiter;
import org.redisson.api.RateType;
import org.redisson.api.RedissonClient;
import org.redisson.api.redisnode.RedisNode;
import org.redisson.api.redisnode.RedisNodes;
import org.redisson.config.Config;

public class RedissonBench {
    static final int OPERATIONS = 20_000;
    static final int WARM_UP = 2_000;
    /** A multiple of the calls at once, so that no two of them meet on a lock. */
    static final int SUBJECTS = 1_008;
    static final int ROUNDS = Integer.getInteger("rounds", 5);
    static final int[] AT_ONCE = {1, 16};

    interface Operation {
        void run(int number) throws Exception;
    }

    /** What makes an operation possible, and the operation. */
    record Work(String name, Runnable prepare, Operation operation) {}

    record Server(String port, long pid, RedissonClient client) {}

    record Measured(double perSecond, double cpuMicros) {}

    public static void main(String[] ports) throws Exception {
        List<Server> servers = new ArrayList<>();
        for (String port : ports) {
            servers.add(connect(port));
        }
        System.out.println("| operation | at once | port | operations/s | server CPU µs |");
        System.out.println("|---|---:|---:|---:|---:|");
        for (int index = 0; index < works(servers.get(0)).size(); index++) {
            for (int atOnce : AT_ONCE) {
                measure(servers, index, atOnce);
            }
        }
        servers.forEach(server -> server.client().shutdown());
    }

    static Server connect(String port) {
        Config config = new Config();
        config.useSingleServer().setAddress("redis://127.0.0.1:" + port);
        RedissonClient client = Redisson.create(config);
        RedisNode node = client.getRedisNodes(RedisNodes.SINGLE).getInstance();
        Map<String, String> info = node.info(RedisNode.InfoSection.SERVER);
        return new Server(port, Long.parseLong(info.get("process_id")), client);
    }

    /** Rounds in which each server runs once, in rotating order; the median of each. */
    static void measure(List<Server> servers, int index, int atOnce) throws Exception {
        double[][] rates = new double[servers.size()][ROUNDS];
        double[][] costs = new double[servers.size()][ROUNDS];
        for (int round = 0; round < ROUNDS; round++) {
            for (int turn = 0; turn < servers.size(); turn++) {
                int at = (turn + round) % servers.size();
                Measured measured = once(servers.get(at), index, atOnce);
                rates[at][round] = measured.perSecond();
                costs[at][round] = measured.cpuMicros();
            }
        }
        for (int at = 0; at < servers.size(); at++) {
            String name = works(servers.get(at)).get(index).name();
            System.out.printf("| %s | %d | %s | %.0f | %.2f |%n",
                name, atOnce, servers.get(at).port(), median(rates[at]), median(costs[at]));
        }
    }

    static Measured once(Server server, int index, int atOnce) throws Exception {
        Work work = works(server).get(index);
        work.prepare().run();
        run(work, WARM_UP, atOnce);
        long cpu = cpuNanos(server.pid());
        long start = System.nanoTime();
        run(work, OPERATIONS, atOnce);
        double seconds = (System.nanoTime() - start) / 1e9;
        double micros = (cpuNanos(server.pid()) - cpu) / 1e3 / OPERATIONS;
        return new Measured(OPERATIONS / seconds, micros);
    }

    static void run(Work work, int operations, int atOnce) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(atOnce);
        List<Future<Void>> running = new ArrayList<>();
        for (int thread = 0; thread < atOnce; thread++) {
            int first = thread;
            running.add(threads.submit(() -> {
                for (int number = first; number < operations; number += atOnce) {
                    work.operation().run(number);
                }
                return null;
            }));
        }
        for (Future<Void> future : running) {
            future.get();
        }
        threads.shutdown();
    }

    static List<Work> works(Server server) {
        RedissonClient client = server.client();
        RRateLimiter limiter = client.getRateLimiter("bench:limit");
        RBlockingQueue<String> queue = client.getBlockingQueue("bench:queue");
        return List.of(
            new Work("RRateLimiter.tryAcquire",
                () -> limiter.trySetRate(RateType.OVERALL, 100_000_000, Duration.ofHours(1)),
                number -> check(limiter.tryAcquire(1))),
            new Work("RLock: tryLock and unlock", () -> {}, number -> {
                RLock lock = client.getLock("bench:lock:" + number % SUBJECTS);
                check(lock.tryLock(0, 3600, TimeUnit.SECONDS));
                lock.unlock();
            }),
            new Work("RDelayedQueue: poll of a due job", () -> fill(client, queue),
                number -> check(queue.poll() != null)));
    }

    /** Jobs without a delay, which Redisson moves to their queue by and by. */
    static void fill(RedissonClient client, RBlockingQueue<String> queue) {
        RDelayedQueue<String> delayed = client.getDelayedQueue(queue);
        int wanted = OPERATIONS + WARM_UP;
        for (int number = queue.size(); number < wanted; number++) {
            delayed.offer("payload", 0, TimeUnit.MILLISECONDS);
        }
        while (queue.size() < wanted) {
            Thread.yield();
        }
        delayed.destroy();
    }

    static void check(boolean isSo) {
        if (!isSo) {
            throw new AssertionError("an operation that must succeed did not");
        }
    }

    /** Time on a core, over all threads of the server. */
    static long cpuNanos(long pid) throws IOException {
        long total = 0;
        try (var threads = Files.newDirectoryStream(Path.of("/proc/" + pid + "/task"))) {
            for (Path thread : threads) {
                String books = Files.readString(thread.resolve("schedstat"));
                total += Long.parseLong(books.split(" ")[0]);
            }
        }
        return total;
    }

    static double median(double[] values) {
        double[] sorted = values.clone();
        Arrays.sort(sorted);
        return sorted[sorted.length / 2];
    }
}
