-- Plans one occurrence of a repeated job. However many plan it, it is one job.
-- KEYS: 1 meta; 2 jobs; 3 ready; 4 delayed; 5 taken; 6 parked; 7 dead; 8 graves; 9 bell
-- ARGV: 1 name; 2 occurrence_ms; 3 payload; 4 priority (0 to 255); 5 group (may be empty);
--   6 capacity; 7 ttl_ms
-- Replies: SCHEDULED; PLANNED (it, or a later one, was planned before); FULL
-- Errors: INVALID name, occurrence_ms, priority, group, capacity, ttl_ms
local meta, jobs = KEYS[1], KEYS[2]
local name, occurrence_ms, priority = ARGV[1], whole(ARGV[2], 1, 1e14), whole(ARGV[4], 0, 255)
local capacity, ttl_ms = whole(ARGV[6], 1, 1e9), whole(ARGV[7], 1, TTL_MAX)
if name == '' then return refuse('name') end
if not occurrence_ms then return refuse('occurrence_ms') end
if not priority then return refuse('priority') end
if string.find(ARGV[5], '%z') then return refuse('group') end
if not capacity then return refuse('capacity') end
if not ttl_ms then return refuse('ttl_ms') end

local id = name .. '@' .. ARGV[2]
local planned = tonumber(redis.call('HGET', meta, 'c:' .. name) or 0)
if planned >= occurrence_ms or redis.call('HEXISTS', jobs, id) == 1 then
  return {'PLANNED'}
end
local jobs_before = redis.call('HLEN', jobs)
if jobs_before >= capacity then
  return {'FULL'}
end
-- A key that is not what it should be fails here, before anything is written.
redis.call('ZCARD', KEYS[4])
redis.call('LLEN', KEYS[9])
mark_counted(meta, jobs_before)
redis.call('HSET', meta, 'c:' .. name, occurrence_ms)
write_job(jobs, id, {0, priority, ARGV[5], ARGV[3]})
redis.call('ZADD', KEYS[4], occurrence_ms * 1000, id)
redis.call('HINCRBY', meta, 'scheduled', 1)
ring(KEYS[9])
local at = expiry(meta, math.max(now_ms(), occurrence_ms) + ttl_ms, ttl_ms)
for i = 1, #KEYS do
  redis.call('PEXPIREAT', KEYS[i], at)
end
return {'SCHEDULED'}
