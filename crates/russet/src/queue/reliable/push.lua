-- Appends a job to a reliable list queue.
-- KEYS: 1 request marker; 2 meta; 3 jobs; 4 ready; 5 taken; 6 dead; 7 graves; 8 bell
-- ARGV: 1 request_ttl_ms; 2 id; 3 payload; 4 capacity; 5 ttl_ms
-- Replies: SCHEDULED; DUPLICATE; FULL
-- Errors: INVALID id, capacity, ttl_ms
local meta, jobs, id = KEYS[2], KEYS[3], ARGV[2]
local capacity, ttl_ms = whole(ARGV[4], 1, 1e9), whole(ARGV[5], 1, TTL_MAX)
if id == '' then return refuse('id') end
if not capacity then return refuse('capacity') end
if not ttl_ms then return refuse('ttl_ms') end

if redis.call('HEXISTS', jobs, id) == 1 then
  return {'DUPLICATE'}, true
end
if redis.call('HLEN', jobs) >= capacity then
  return {'FULL'}, true
end
-- Keys that are not what they should be fail here, before anything is written.
redis.call('LLEN', KEYS[4])
redis.call('LLEN', KEYS[8])
redis.call('HLEN', meta)
write_job(jobs, id, {0, 0, '', ARGV[3]})
redis.call('RPUSH', KEYS[4], id)
redis.call('HINCRBY', meta, 'scheduled', 1)
ring(KEYS[8])
local at = expiry(meta, now_ms() + ttl_ms, ttl_ms)
for i = 2, #KEYS do
  redis.call('PEXPIREAT', KEYS[i], at)
end
return {'SCHEDULED'}
