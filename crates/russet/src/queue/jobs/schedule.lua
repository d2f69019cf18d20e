-- Adds a job, to run as soon as it is due. Its id is unique as long as the job is not done.
-- KEYS: 1 request marker; 2 meta; 3 jobs; 4 ready; 5 delayed; 6 taken; 7 parked; 8 dead; 9 graves;
--   10 bell
-- ARGV: 1 request_ttl_ms; 2 id; 3 payload; 4 delay_ms; 5 due_ms (0: after delay_ms); 6 priority (0
--   to 255); 7 group (may be empty); 8 capacity; 9 ttl_ms; 10 aging_ms
-- Replies: SCHEDULED due_ms; DUPLICATE; FULL
-- Errors: INVALID id, delay_ms, due_ms, priority, group, capacity, ttl_ms, aging_ms
local meta, jobs, bell = KEYS[2], KEYS[3], KEYS[10]
local id, payload, group = ARGV[2], ARGV[3], ARGV[7]
local delay_ms, due_ms = whole(ARGV[4], 0, TTL_MAX), whole(ARGV[5], 0, 1e14)
local priority = whole(ARGV[6], 0, PRIORITY_MAX)
local capacity, ttl_ms = whole(ARGV[8], 1, 1e9), whole(ARGV[9], 1, TTL_MAX)
local aging_ms = whole(ARGV[10], 0, TTL_MAX / PRIORITY_MAX)
if id == '' then return refuse('id') end
if not delay_ms then return refuse('delay_ms') end
if not due_ms then return refuse('due_ms') end
if not priority then return refuse('priority') end
if string.find(group, '%z') then return refuse('group') end
if not capacity then return refuse('capacity') end
if not ttl_ms then return refuse('ttl_ms') end
if not aging_ms then return refuse('aging_ms') end

if redis.call('HEXISTS', jobs, id) == 1 then
  return {'DUPLICATE'}, true
end
local jobs_before = redis.call('HLEN', jobs)
if jobs_before >= capacity then
  return {'FULL'}, true
end
local now = now_us()
local due_us = due_ms > 0 and due_ms * 1000 or now + delay_ms * 1000
-- A key that is not what it should be fails here, before anything is written.
local last = tonumber(redis.call('HGET', meta, 'last') or 0)
redis.call('ZCARD', due_us > now and KEYS[5] or KEYS[4])
redis.call('LLEN', bell)
mark_counted(meta, jobs_before)
write_job(jobs, id, {0, priority, group, payload})
if due_us > now then
  redis.call('ZADD', KEYS[5], due_us, id)
else
  -- Jobs of the same moment run in the order in which they came.
  due_us = math.max(now, last + 1)
  redis.call('HSET', meta, 'last', due_us)
  make_ready(KEYS[4], id, due_us, priority * aging_ms * 1000)
end
redis.call('HINCRBY', meta, 'scheduled', 1)
ring(bell)
local wanted = math.floor(math.max(now, due_us) / 1000) + ttl_ms
local at = expiry(meta, wanted, ttl_ms)
for i = 2, #KEYS do
  redis.call('PEXPIREAT', KEYS[i], at)
end
return {'SCHEDULED', 'due_ms', math.floor(due_us / 1000)}
