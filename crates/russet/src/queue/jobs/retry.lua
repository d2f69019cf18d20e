-- Gives a job back that has failed: it runs again after a delay, or is a dead letter after too many
-- attempts.
-- KEYS: 1 request marker; 2 meta; 3 jobs; 4 ready; 5 delayed; 6 taken; 7 parked; 8 dead; 9 graves;
--   10 bell
-- ARGV: 1 request_ttl_ms; 2 receipt; 3 delay_ms; 4 reason; 5 attempts_max (0: a dead letter at
--   once); 6 ttl_ms; 7 aging_ms; 8 dead_max; 9 optional: 1 if the attempt does not count
-- Replies: RETRIED attempts, due_ms; DEAD attempts; CANCELLED; STALE (others have it, or will);
--   GONE
-- Errors: INVALID receipt, delay_ms, attempts_max, ttl_ms, aging_ms, dead_max
local meta, jobs, ready, delayed, taken = KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local parked, dead, graves, bell = KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local receipt, delay_ms, reason = ARGV[2], whole(ARGV[3], 0, TTL_MAX), ARGV[4]
local attempts_max, ttl_ms = whole(ARGV[5], 0, 1e6), whole(ARGV[6], 1, TTL_MAX)
local aging_ms, dead_max = whole(ARGV[7], 0, TTL_MAX / PRIORITY_MAX), whole(ARGV[8], 1, 1e9)
local group, id = read_receipt(receipt)
if not id then return refuse('receipt') end
if not delay_ms then return refuse('delay_ms') end
if not attempts_max then return refuse('attempts_max') end
if not ttl_ms then return refuse('ttl_ms') end
if not aging_ms then return refuse('aging_ms') end
if not dead_max then return refuse('dead_max') end

-- Keys that are not what they should be fail here, before anything is written.
redis.call('HLEN', meta)
redis.call('HLEN', jobs)
redis.call('HLEN', graves)
redis.call('ZCARD', ready)
redis.call('ZCARD', delayed)
redis.call('ZCARD', parked)
redis.call('ZCARD', dead)
redis.call('LLEN', bell)
if redis.call('ZREM', taken, receipt) == 0 then
  return {redis.call('HEXISTS', jobs, id) == 1 and 'STALE' or 'GONE'}, true
end
if leave_group(meta, jobs, parked, ready, group) then
  ring(bell)
end
local job, packed = read_job(jobs, id)
local now = now_us()
local is_counted = ARGV[9] ~= '1'
if job and is_counted then
  job[1] = job[1] + 1
end
local due_us, reply = now + delay_ms * 1000, nil
if packed then
  local letter = {now_ms = math.floor(now / 1000), dead_max = dead_max}
  corrupt_letter(dead, graves, meta, jobs, id, packed, letter)
  reply = {'DEAD', 'attempts', 0}
elseif not job then
  reply = {'GONE'}
elseif job[5] then
  redis.call('HDEL', jobs, id)
  reply = {'CANCELLED'}
elseif is_counted and job[1] >= attempts_max then
  redis.call('HDEL', jobs, id)
  local letter = {now_ms = math.floor(now / 1000), reason = reason, dead_max = dead_max}
  dead_letter(dead, graves, meta, id, job, letter)
  reply = {'DEAD', 'attempts', job[1]}
else
  write_job(jobs, id, job)
  if delay_ms > 0 then
    redis.call('ZADD', delayed, due_us, id)
  else
    make_ready(ready, id, now, job[2] * aging_ms * 1000)
  end
  redis.call('HINCRBY', meta, 'retried', 1)
  ring(bell)
  reply = {'RETRIED', 'attempts', job[1], 'due_ms', math.floor(due_us / 1000)}
end
local at = expiry(meta, math.floor(due_us / 1000) + ttl_ms, ttl_ms)
for i = 2, #KEYS do
  redis.call('PEXPIREAT', KEYS[i], at)
end
return reply
