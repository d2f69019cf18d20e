-- Makes a job of a dead letter again, with all its attempts before it.
-- KEYS: 1 request marker; 2 meta; 3 jobs; 4 ready; 5 delayed; 6 taken; 7 parked; 8 dead; 9 graves;
--   10 bell
-- ARGV: 1 request_ttl_ms; 2 id of the letter; 3 capacity; 4 ttl_ms; 5 aging_ms
-- Replies: REQUEUED; DUPLICATE (a job of this id waits or runs); FULL; MISSING
-- Errors: INVALID capacity, ttl_ms, aging_ms; CORRUPT letter
local meta, jobs, graves = KEYS[2], KEYS[3], KEYS[9]
local id, capacity, ttl_ms = ARGV[2], whole(ARGV[3], 1, 1e9), whole(ARGV[4], 1, TTL_MAX)
local aging_ms = whole(ARGV[5], 0, TTL_MAX / PRIORITY_MAX)
if not capacity then return refuse('capacity') end
if not ttl_ms then return refuse('ttl_ms') end
if not aging_ms then return refuse('aging_ms') end

local job, packed = read_job(graves, id)
if packed or job and type(job[6] or '') ~= 'string' then
  return redis.error_reply('CORRUPT letter')
end
if not job then
  return {'MISSING'}, true
end
local job_id = job[6] or id
if redis.call('HEXISTS', jobs, job_id) == 1 then
  return {'DUPLICATE'}, true
end
local jobs_before = redis.call('HLEN', jobs)
if jobs_before >= capacity then
  return {'FULL'}, true
end
local now = now_us()
-- Keys that are not what they should be fail here, before anything is written.
redis.call('ZCARD', KEYS[4])
redis.call('ZCARD', KEYS[8])
redis.call('LLEN', KEYS[10])
redis.call('HLEN', meta)
mark_counted(meta, jobs_before)
redis.call('ZREM', KEYS[8], id)
redis.call('HDEL', graves, id)
write_job(jobs, job_id, {0, job[2], job[3], job[4]})
make_ready(KEYS[4], job_id, now, job[2] * aging_ms * 1000)
redis.call('HINCRBY', meta, 'requeued', 1)
ring(KEYS[10])
local at = expiry(meta, math.floor(now / 1000) + ttl_ms, ttl_ms)
for i = 2, #KEYS do
  redis.call('PEXPIREAT', KEYS[i], at)
end
return {'REQUEUED'}
