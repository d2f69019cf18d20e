//! The same work as people write it: short scripts and commands, called through redis-rs.

use super::{Doer, SUBJECTS, Work, expect, failed, unexpected};
use crate::failure::Result;
use redis::Script;
use redis::aio::MultiplexedConnection;

const LIMIT: &str = "\
local count = redis.call('INCR', KEYS[1])
if count == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return count <= tonumber(ARGV[1]) and 1 or 0";
const RELEASE: &str = "\
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0";
const CLAIM: &str = "\
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local ids = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, 1)
if #ids == 0 then return false end
redis.call('ZREM', KEYS[1], ids[1])
redis.call('ZADD', KEYS[2], now + ARGV[1], ids[1])
return {ids[1], redis.call('HGET', KEYS[3], ids[1])}";
const ACK: &str = "\
if redis.call('ZREM', KEYS[1], ARGV[1]) == 0 then return 0 end
return redis.call('HDEL', KEYS[2], ARGV[1])";
const HOUR_MS: u64 = 3_600_000;
const SESSION: [(&str, &str); 4] =
    [("user_id", "ann"), ("status", "ACTIVE"), ("tenant_id", "acme"), ("level", "BASIC")];

pub fn round_trips(work: Work) -> f64 {
    match work {
        Work::Limit | Work::Cache | Work::Session => 1.0,
        Work::Lease | Work::Queue | Work::Idempotency => 2.0,
    }
}

pub struct ByHand {
    connection: MultiplexedConnection,
    limit: Script,
    release: Script,
    claim: Script,
    ack: Script,
}

impl ByHand {
    pub async fn connect(url: &str) -> Result<ByHand> {
        let client = redis::Client::open(url).map_err(failed)?;
        let connection = client.get_multiplexed_async_connection().await.map_err(failed)?;
        let [limit, release, claim, ack] = [LIMIT, RELEASE, CLAIM, ACK].map(Script::new);
        Ok(ByHand { connection, limit, release, claim, ack })
    }

    async fn lease(&self, name: &str) -> Result<()> {
        let mut connection = self.connection.clone();
        let token = rand::random::<u64>().to_string();
        let mut set = redis::cmd("SET");
        set.arg(name).arg(&token).arg("NX").arg("PX").arg(HOUR_MS);
        let is_held: bool = set.query_async(&mut connection).await.map_err(failed)?;
        expect(is_held)?;
        let mut call = self.release.key(name);
        let released: u64 = call.arg(token).invoke_async(&mut connection).await.map_err(failed)?;
        expect(released == 1)
    }

    async fn ask<T: redis::FromRedisValue>(&self, command: &redis::Cmd) -> Result<T> {
        command.query_async(&mut self.connection.clone()).await.map_err(failed)
    }

    /// A claim, and the result in its place.
    async fn request(&self) -> Result<()> {
        let key = format!("request-{:x}", rand::random::<u128>());
        let mut claim = redis::cmd("SET");
        claim.arg(&key).arg("claimed").arg("NX").arg("PX").arg(HOUR_MS);
        expect(self.ask(&claim).await?)?;
        let mut complete = redis::cmd("SET");
        self.ask(complete.arg(&key).arg("done").arg("PX").arg(HOUR_MS)).await
    }

    async fn job(&self) -> Result<()> {
        let mut connection = self.connection.clone();
        let mut claim = self.claim.key("{jobs}:due");
        claim.key("{jobs}:taken").key("{jobs}:payloads").arg(HOUR_MS);
        let job: Option<(String, String)> =
            claim.invoke_async(&mut connection).await.map_err(failed)?;
        let (id, _payload) = job.ok_or_else(unexpected)?;
        let mut ack = self.ack.key("{jobs}:taken");
        ack.key("{jobs}:payloads").arg(id);
        let acked: u64 = ack.invoke_async(&mut connection).await.map_err(failed)?;
        expect(acked == 1)
    }
}

impl Doer for ByHand {
    async fn prepare(&self, work: Work, operations: u64) -> Result<()> {
        let mut connection = self.connection.clone();
        let count = match work {
            Work::Queue => operations,
            Work::Cache | Work::Session => SUBJECTS,
            Work::Limit | Work::Lease | Work::Idempotency => 0,
        };
        for number in 0..count {
            let mut pipeline = redis::pipe();
            let name = format!("{}-{number}", work.name());
            match work {
                Work::Cache => pipeline.set(name, "value").ignore(),
                Work::Session => pipeline.hset_multiple(name, &SESSION).ignore(),
                _ => {
                    pipeline.hset("{jobs}:payloads", number, "payload").ignore();
                    pipeline.zadd("{jobs}:due", number, 0).ignore()
                }
            };
            let _: () = pipeline.query_async(&mut connection).await.map_err(failed)?;
        }
        Ok(())
    }

    async fn run(&self, work: Work, number: u64) -> Result<()> {
        let subject = format!("{}-{}", work.name(), number % SUBJECTS);
        match work {
            Work::Limit => {
                let mut call = self.limit.key(subject);
                let call = call.arg(1_000_000).arg(HOUR_MS);
                let mut connection = self.connection.clone();
                let is_allowed: u64 = call.invoke_async(&mut connection).await.map_err(failed)?;
                expect(is_allowed == 1)
            }
            Work::Lease => self.lease(&subject).await,
            Work::Queue => self.job().await,
            Work::Idempotency => self.request().await,
            Work::Cache => {
                let mut get = redis::cmd("GET");
                let found: Option<String> = self.ask(get.arg(subject)).await?;
                expect(found.is_some())
            }
            Work::Session => {
                let mut read = redis::cmd("HMGET");
                read.arg(subject).arg("user_id").arg("status");
                let (user, status): (Option<String>, Option<String>) = self.ask(&read).await?;
                expect(user.is_some() && status.as_deref() == Some("ACTIVE"))
            }
        }
    }
}
