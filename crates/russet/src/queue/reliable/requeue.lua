-- Makes a job of a dead letter of a reliable list queue, with all its attempts before it.
-- KEYS: 1 request marker; 2 meta; 3 jobs; 4 ready; 5 taken; 6 dead; 7 graves; 8 bell
-- ARGV: 1 request_ttl_ms; 2 id of the letter; 3 capacity; 4 ttl_ms
-- Replies: REQUEUED; DUPLICATE (a job of this id waits or runs); FULL; MISSING
-- Errors: INVALID capacity, ttl_ms; CORRUPT letter
local meta, jobs, graves = KEYS[2], KEYS[3], KEYS[7]
local id, capacity, ttl_ms = ARGV[2], whole(ARGV[3], 1, 1e9), whole(ARGV[4], 1, TTL_MAX)
if not capacity then return refuse('capacity') end
if not ttl_ms then return refuse('ttl_ms') end

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
if redis.call('HLEN', jobs) >= capacity then
  return {'FULL'}, true
end
-- Keys that are not what they should be fail here, before anything is written.
redis.call('LLEN', KEYS[4])
redis.call('LLEN', KEYS[8])
redis.call('HLEN', meta)
redis.call('ZREM', KEYS[6], id)
redis.call('HDEL', graves, id)
write_job(jobs, job_id, {0, 0, '', job[4]})
redis.call('RPUSH', KEYS[4], job_id)
redis.call('HINCRBY', meta, 'requeued', 1)
ring(KEYS[8])
local at = expiry(meta, now_ms() + ttl_ms, ttl_ms)
for i = 2, #KEYS do
  redis.call('PEXPIREAT', KEYS[i], at)
end
return {'REQUEUED'}
