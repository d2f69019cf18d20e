// A session each of ioredis and node-redis. RUSSET_PORT says where the server is.

import assert from "node:assert";
import { createRequire } from "node:module";
import Redis from "ioredis";
import { createClient } from "redis";

const port = Number(process.env.RUSSET_PORT);
const require = createRequire(import.meta.url);
const version = (name) => require(`${name}/package.json`).version;

async function withIoredis() {
  const client = new Redis({ port, maxRetriesPerRequest: 1 });
  await client.flushall();
  assert.equal(await client.set("k", "v", "EX", 60), "OK");
  assert.equal(await client.get("k"), "v");
  assert.equal(await client.incr("n"), 1);
  assert.equal(await client.rpush("list", "a", "b"), 2);
  assert.deepEqual(await client.lrange("list", 0, -1), ["a", "b"]);
  await assert.rejects(client.incr("k"), /not an integer/);
  const replies = await client.multi().incr("n").get("n").exec();
  assert.deepEqual(replies, [[null, 2], [null, "2"]]);
  const pipelined = await client.pipeline().set("a", 1).mget("a", "none").exec();
  assert.deepEqual(pipelined, [[null, "OK"], [null, ["1", null]]]);

  const listener = new Redis({ port });
  const heard = new Promise((resolve) => listener.on("message", (...words) => resolve(words)));
  await listener.subscribe("news");
  assert.equal(await client.publish("news", "hello"), 1);
  assert.deepEqual(await heard, ["news", "hello"]);

  const popped = listener.duplicate().blpop("queue", 10);
  await client.rpush("queue", "job");
  assert.deepEqual(await popped, ["queue", "job"]);
  console.log(`ioredis ${version("ioredis")}: ok`);
}

async function withNodeRedis() {
  const client = createClient({ socket: { port } });
  await client.connect();
  await client.flushAll();
  assert.equal(await client.set("k", "v", { EX: 60 }), "OK");
  assert.equal(await client.get("k"), "v");
  assert.ok((await client.ttl("k")) > 0);
  assert.equal(await client.lPush("list", ["a", "b"]), 2);
  assert.deepEqual(await client.lRange("list", 0, -1), ["b", "a"]);
  assert.deepEqual(await client.multi().incr("n").get("n").exec(), [1, "1"]);
  await assert.rejects(client.incr("k"), /not an integer/);

  const listener = client.duplicate();
  await listener.connect();
  const heard = new Promise((resolve) => listener.subscribe("news", resolve).then(() =>
    client.publish("news", "hello")));
  assert.equal(await heard, "hello");
  console.log(`node-redis ${version("redis")}: ok`);
}

await withIoredis();
await withNodeRedis();
process.exit(0);
