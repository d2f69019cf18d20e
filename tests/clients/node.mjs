// A session each of ioredis and node-redis: the list of README.md. RUSSET_PORT says where the server is.

import assert from "node:assert";
import { createRequire } from "node:module";
import Redis from "ioredis";
import { createClient } from "redis";

const port = Number(process.env.RUSSET_PORT);
const require = createRequire(import.meta.url);
const version = (name) => require(`${name}/package.json`).version;
const WAIT_SECONDS = 10;
const same = assert.deepEqual;

const SCRIPT = "redis.call('SET', KEYS[1], ARGV[1]) return {KEYS[1], redis.call('GET', KEYS[1]), 7}";
const LIBRARY = `#!lua name=session
redis.register_function('keep', function(keys, args)
  return redis.call('SET', keys[1], args[1])
end)
redis.register_function{
  function_name = 'kept', flags = {'no-writes'},
  callback = function(keys) return redis.call('GET', keys[1]) end
}`;

// What a call that blocks answers when it is fed; `info` asks for the text of INFO clients.
async function served(info, call, feed) {
  const answer = call();
  const deadline = Date.now() + WAIT_SECONDS * 1000;
  while (/blocked_clients:0\r/.test(await info())) {
    assert.ok(Date.now() < deadline, "nobody is blocked");
  }
  await feed();
  return answer;
}

// ioredis -----------------------------------------------------------------------------------------

async function ioredisTypes(client) {
  same(await client.set("k", "v", "PX", 60000, "NX"), "OK");
  same(await client.set("k", "w", "NX"), null);
  assert.ok((await client.pttl("k")) > 0);
  same([await client.incrby("n", 5), await client.incrbyfloat("n", 0.5)], [5, "5.5"]);
  same([await client.mset("a", 1, "b", 2), await client.mget("a", "b", "none")], ["OK", ["1", "2", null]]);
  await assert.rejects(client.incr("k"), /not an integer/);
  const found = [];
  for await (const page of client.scanStream({ match: "[ab]", count: 1 })) found.push(...page);
  same(found.sort(), ["a", "b"]);

  same([await client.setbit("bits", 7, 1), await client.bitcount("bits")], [0, 1]);
  same(await client.bitfield("bits", "SET", "u8", 8, 200, "GET", "u8", 8), [0, 200]);
  same([await client.pfadd("visitors", "x", "y", "x"), await client.pfcount("visitors")], [1, 2]);

  same([await client.rpush("list", "x", "y", "z"), await client.lrange("list", 0, -1)], [3, ["x", "y", "z"]]);
  same(await client.lmove("list", "other", "RIGHT", "LEFT"), "z");
  same(await client.lmpop(1, "list", "LEFT", "COUNT", 2), ["list", ["x", "y"]]);

  same(await client.hset("hash", { f: 1, g: "two" }), 2);
  same(await client.hgetall("hash"), { f: "1", g: "two" });
  same([await client.hincrby("hash", "f", 4), await client.hmget("hash", "f", "none")], [5, ["5", null]]);
  same(await client.call("HEXPIRE", "hash", 60, "FIELDS", 2, "f", "none"), [1, -2]);

  same([await client.sadd("s1", "a", "b", "c"), await client.sadd("s2", "b", "c", "d")], [3, 3]);
  same((await client.sinter("s1", "s2")).sort(), ["b", "c"]);
  same([await client.sunionstore("s3", "s1", "s2"), await client.smismember("s1", "a", "d")], [4, [1, 0]]);

  same(await client.zadd("zset", 1, "a", 2.5, "b", 3, "c"), 3);
  same(await client.zrange("zset", 0, -1, "WITHSCORES"), ["a", "1", "b", "2.5", "c", "3"]);
  same(await client.zrangebyscore("zset", "(1", "+inf"), ["b", "c"]);
  same([await client.zincrby("zset", 10, "a"), await client.zrank("zset", "a")], ["11", 2]);
  same(await client.zpopmin("zset"), ["b", "2.5"]);

  same(await client.geoadd("places", 13.361389, 38.115556, "Palermo", 15.087269, 37.502669, "Catania"), 2);
  assert.ok(Math.abs((await client.geodist("places", "Palermo", "Catania", "KM")) - 166.2742) < 0.001);
  same(await client.geosearch("places", "FROMLONLAT", 15, 37, "BYRADIUS", 100, "km"), ["Catania"]);

  same([await client.xadd("stream", "1-1", "f", 1), await client.xadd("stream", "1-2", "f", 2)], ["1-1", "1-2"]);
  same(await client.xrange("stream", "-", "+", "COUNT", 1), [["1-1", ["f", "1"]]]);
  same(await client.xgroup("CREATE", "stream", "group", "0"), "OK");
  same(await client.xreadgroup("GROUP", "group", "me", "COUNT", 1, "STREAMS", "stream", ">"),
    [["stream", [["1-1", ["f", "1"]]]]]);
  same((await client.xpending("stream", "group"))[0], 1);
  same(await client.xack("stream", "group", "1-1"), 1);
}

async function ioredisScripts(client) {
  same(await client.eval(SCRIPT, 1, "s", "value"), ["s", "value", 7]);
  // ioredis calls by the digest first, and sends the script when it is told that there is none.
  client.defineCommand("keepAndShow", { numberOfKeys: 1, lua: SCRIPT });
  await client.script("FLUSH");
  same(await client.keepAndShow("s", "again"), ["s", "again", 7]);
  same(await client.keepAndShow("s", "third"), ["s", "third", 7]);
  await assert.rejects(client.eval("return redis.error_reply('ERR no such thing')", 0), /no such thing/);
  same(await client.function("LOAD", "REPLACE", LIBRARY), "session");
  same(await client.fcall("keep", 1, "f", "value"), "OK");
  same(await client.fcall_ro("kept", 1, "f"), "value");
  await assert.rejects(client.fcall_ro("keep", 1, "f", "x"), /write flag/);
  same(await client.function("DELETE", "session"), "OK");
}

async function ioredisGroups(client) {
  const pipeline = client.pipeline();
  for (let index = 0; index < 200; index++) pipeline.incr("counter");
  const replies = await pipeline.exec();
  same(replies.map(([error, count]) => (error ? error : count)), Array.from({ length: 200 }, (_, at) => at + 1));
  await client.set("a", 1);
  same(await client.multi().incr("a").get("a").exec(), [[null, 2], [null, "2"]]);
  const other = client.duplicate();
  await client.watch("a");
  await other.incr("a");
  same(await client.multi().get("a").exec(), null);
  other.disconnect();
}

async function ioredisWaits(client) {
  const other = client.duplicate();
  const info = () => client.info("clients");
  same(await served(info, () => other.blpop("queue", WAIT_SECONDS), () => client.rpush("queue", "job")),
    ["queue", "job"]);
  same(await served(info, () => other.bzpopmin("scores", WAIT_SECONDS), () => client.zadd("scores", 1.5, "m")),
    ["scores", "m", "1.5"]);
  same(await served(info, () => other.blmove("from", "to", "LEFT", "RIGHT", WAIT_SECONDS),
    () => client.rpush("from", "x")), "x");
  same(await served(info, () => other.xread("BLOCK", WAIT_SECONDS * 1000, "STREAMS", "events", "$"),
    () => client.xadd("events", "5-1", "f", "v")), [["events", [["5-1", ["f", "v"]]]]]);
  same(await other.blpop("queue", 0.05), null);
  other.disconnect();
}

async function ioredisMessages(client) {
  const listener = client.duplicate();
  const hear = (event) => new Promise((resolve) => listener.once(event, (...words) => resolve(words)));
  const heard = [hear("message"), hear("pmessage"), hear("smessage")];
  same([await listener.subscribe("news"), await listener.psubscribe("w*")], [1, 2]);
  await listener.ssubscribe("shard");
  same([await client.publish("news", "hello"), await client.publish("weather", "rain")], [1, 1]);
  same(await client.spublish("shard", "piece"), 1);
  same(await Promise.all(heard), [["news", "hello"], ["w*", "weather", "rain"], ["shard", "piece"]]);
  listener.disconnect();
}

async function withIoredis() {
  const client = new Redis({ port, maxRetriesPerRequest: 1 });
  await client.flushall();
  await ioredisTypes(client);
  await ioredisScripts(client);
  await ioredisGroups(client);
  await ioredisWaits(client);
  await ioredisMessages(client);
  client.disconnect();
  console.log(`ioredis ${version("ioredis")}: ok`);
}

// node-redis --------------------------------------------------------------------------------------

async function nodeRedisTypes(client, RESP) {
  same(await client.set("k", "v", { PX: 60000, NX: true }), "OK");
  same(await client.set("k", "w", { NX: true }), null);
  assert.ok((await client.pTTL("k")) > 0);
  same([await client.incrBy("n", 5), await client.incrByFloat("n", 0.5)], [5, "5.5"]);
  same([await client.mSet({ a: "1", b: "2" }), await client.mGet(["a", "b", "none"])], ["OK", ["1", "2", null]]);
  await assert.rejects(client.incr("k"), /not an integer/);
  const found = [];
  for await (const page of client.scanIterator({ MATCH: "[ab]", COUNT: 1 })) found.push(...page);
  same(found.sort(), ["a", "b"]);

  same([await client.setBit("bits", 7, 1), await client.bitCount("bits")], [0, 1]);
  same(await client.bitField("bits", [
    { operation: "SET", encoding: "u8", offset: 8, value: 200 },
    { operation: "GET", encoding: "u8", offset: 8 },
  ]), [0, 200]);
  same([await client.pfAdd("visitors", ["x", "y", "x"]), await client.pfCount("visitors")], [1, 2]);

  same([await client.rPush("list", ["x", "y", "z"]), await client.lRange("list", 0, -1)], [3, ["x", "y", "z"]]);
  same(await client.lMove("list", "other", "RIGHT", "LEFT"), "z");
  same(await client.lmPop("list", "LEFT", { COUNT: 2 }), ["list", ["x", "y"]]);

  same(await client.hSet("hash", { f: 1, g: "two" }), 2);
  same({ ...(await client.hGetAll("hash")) }, { f: "1", g: "two" });
  same([await client.hIncrBy("hash", "f", 4), await client.hmGet("hash", ["f", "none"])], [5, ["5", null]]);
  same(await client.hExpire("hash", ["f", "none"], 60), [1, -2]);

  same([await client.sAdd("s1", ["a", "b", "c"]), await client.sAdd("s2", ["b", "c", "d"])], [3, 3]);
  same([...(await client.sInter(["s1", "s2"]))].sort(), ["b", "c"]);
  same([await client.sUnionStore("s3", ["s1", "s2"]), await client.smIsMember("s1", ["a", "d"])], [4, [1, 0]]);

  const members = [{ score: 1, value: "a" }, { score: 2.5, value: "b" }, { score: 3, value: "c" }];
  same(await client.zAdd("zset", members), 3);
  same((await client.zRangeWithScores("zset", 0, -1)).map((pair) => ({ ...pair })), members);
  same(await client.zRangeByScore("zset", "(1", "+inf"), ["b", "c"]);
  same([await client.zIncrBy("zset", 10, "a"), await client.zRank("zset", "a")], [11, 2]);
  same({ ...(await client.zPopMin("zset")) }, { value: "b", score: 2.5 });

  same(await client.geoAdd("places", [
    { longitude: 13.361389, latitude: 38.115556, member: "Palermo" },
    { longitude: 15.087269, latitude: 37.502669, member: "Catania" },
  ]), 2);
  assert.ok(Math.abs((await client.geoDist("places", "Palermo", "Catania", "km")) - 166.2742) < 0.001);
  same(await client.geoSearch("places", { longitude: 15, latitude: 37 }, { radius: 100, unit: "km" }), ["Catania"]);

  same([await client.xAdd("stream", "1-1", { f: "1" }), await client.xAdd("stream", "1-2", { f: "2" })],
    ["1-1", "1-2"]);
  const entry = (reply) => ({ id: reply.id, message: { ...reply.message } });
  same((await client.xRange("stream", "-", "+", { COUNT: 1 })).map(entry), [{ id: "1-1", message: { f: "1" } }]);
  same(await client.xGroupCreate("stream", "group", "0"), "OK");
  const read = await client.xReadGroup("group", "me", { key: "stream", id: ">" }, { COUNT: 1 });
  same(entriesOf(read, "stream", RESP).map(entry), [{ id: "1-1", message: { f: "1" } }]);
  same((await client.xPending("stream", "group")).pending, 1);
  same(await client.xAck("stream", "group", "1-1"), 1);
}

// The entries of one stream in a reply of XREAD, which is a list or a map of streams.
function entriesOf(read, name) {
  const stream = Array.isArray(read) ? read.find((stream) => stream.name === name)?.messages : read[name];
  assert.ok(stream, `no ${name} in ${JSON.stringify(read)}`);
  return stream;
}

async function nodeRedisScripts(client) {
  const call = (argument) => ({ keys: ["s"], arguments: [argument] });
  same(await client.eval(SCRIPT, call("value")), ["s", "value", 7]);
  const digest = await client.scriptLoad(SCRIPT);
  same(await client.evalSha(digest, call("again")), ["s", "again", 7]);
  await client.scriptFlush();
  await assert.rejects(client.evalSha(digest, call("third")), /NOSCRIPT/);
  await assert.rejects(client.eval("return redis.error_reply('ERR no such thing')"), /no such thing/);
  same(await client.functionLoad(LIBRARY, { REPLACE: true }), "session");
  same(await client.fCall("keep", { keys: ["f"], arguments: ["value"] }), "OK");
  same(await client.fCallRo("kept", { keys: ["f"], arguments: [] }), "value");
  await assert.rejects(client.fCallRo("keep", { keys: ["f"], arguments: ["x"] }), /write flag/);
  same((await client.functionList()).length, 1);
  same(await client.functionDelete("session"), "OK");
}

async function nodeRedisGroups(client) {
  // What is sent in one turn of node's loop is sent in one piece.
  const counts = await Promise.all(Array.from({ length: 200 }, () => client.incr("counter")));
  same(counts, Array.from({ length: 200 }, (_, at) => at + 1));
  await client.set("a", 1);
  same(await client.multi().incr("a").get("a").exec(), [2, "2"]);
  const other = await client.duplicate().connect();
  await client.watch("a");
  await other.incr("a");
  await assert.rejects(client.multi().get("a").exec(), /watched keys/);
  other.destroy();
}

async function nodeRedisWaits(client, RESP) {
  const other = await client.duplicate().connect();
  const info = () => client.info("clients");
  same({ ...(await served(info, () => other.blPop("queue", WAIT_SECONDS), () => client.rPush("queue", "job"))) },
    { key: "queue", element: "job" });
  same({ ...(await served(info, () => other.bzPopMin("scores", WAIT_SECONDS),
    () => client.zAdd("scores", { score: 1.5, value: "m" }))) }, { key: "scores", value: "m", score: 1.5 });
  same(await served(info, () => other.blMove("from", "to", "LEFT", "RIGHT", WAIT_SECONDS),
    () => client.rPush("from", "x")), "x");
  const read = await served(info, () => other.xRead({ key: "events", id: "$" }, { BLOCK: WAIT_SECONDS * 1000 }),
    () => client.xAdd("events", "5-1", { f: "v" }));
  same(entriesOf(read, "events", RESP)[0].id, "5-1");
  same(await other.blPop("queue", 0.05), null);
  other.destroy();
}

async function nodeRedisMessages(client) {
  const listener = await client.duplicate().connect();
  const heard = [];
  const hear = (message, channel) => heard.push([channel, message]);
  await listener.subscribe("news", hear);
  await listener.pSubscribe("w*", hear);
  await listener.sSubscribe("shard", hear);
  same([await client.publish("news", "hello"), await client.publish("weather", "rain")], [1, 1]);
  same(await client.sPublish("shard", "piece"), 1);
  const deadline = Date.now() + WAIT_SECONDS * 1000;
  while (heard.length < 3) {
    assert.ok(Date.now() < deadline, `heard only ${heard}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
  same(heard, [["news", "hello"], ["weather", "rain"], ["shard", "piece"]]);
  listener.destroy();
}

async function withNodeRedis(RESP) {
  const client = await createClient({ socket: { port }, RESP }).connect();
  await client.flushAll();
  await nodeRedisTypes(client, RESP);
  await nodeRedisScripts(client);
  await nodeRedisGroups(client);
  await nodeRedisWaits(client, RESP);
  await nodeRedisMessages(client);
  client.destroy();
  console.log(`node-redis ${version("redis")} over RESP${RESP}: ok`);
}

const sessions = { ioredis: [withIoredis], "node-redis": [() => withNodeRedis(2), () => withNodeRedis(3)] };
const chosen = sessions[process.argv[2]];
assert.ok(chosen, "name ioredis or node-redis");
for (const session of chosen) await session();
process.exit(0);
