-- Gives a job back to a reliable list queue, to its end, or to the dead letters after too many
-- attempts; one whose attempt does not count, to its front.
-- KEYS: 1 request marker; 2 meta; 3 jobs; 4 ready; 5 taken; 6 dead; 7 graves; 8 bell
-- ARGV: 1 request_ttl_ms; 2 receipt; 3 reason; 4 attempts_max (0: a dead letter at once); 5 ttl_ms;
--   6 dead_max; 7 optional: 1 if the attempt does not count
-- Replies: RETRIED attempts; DEAD attempts; STALE (others have it, or will); GONE
-- Errors: INVALID receipt, attempts_max, ttl_ms, dead_max
local meta, jobs, ready, taken = KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local receipt, attempts_max = ARGV[2], whole(ARGV[4], 0, 1e6)
local ttl_ms, dead_max = whole(ARGV[5], 1, TTL_MAX), whole(ARGV[6], 1, 1e9)
local _, id = read_receipt(receipt)
if not id then return refuse('receipt') end
if not attempts_max then return refuse('attempts_max') end
if not ttl_ms then return refuse('ttl_ms') end
if not dead_max then return refuse('dead_max') end

-- Keys that are not what they should be fail here, before anything is written.
redis.call('HLEN', meta)
redis.call('HLEN', jobs)
redis.call('HLEN', KEYS[7])
redis.call('LLEN', ready)
redis.call('LLEN', KEYS[8])
redis.call('ZCARD', KEYS[6])
if redis.call('ZREM', taken, receipt) == 0 then
  return {redis.call('HEXISTS', jobs, id) == 1 and 'STALE' or 'GONE'}, true
end
local job, packed = read_job(jobs, id)
if not job and not packed then
  return {'GONE'}
end
local now, reply = now_ms(), nil
local is_counted = ARGV[7] ~= '1'
if job and is_counted then
  job[1] = job[1] + 1
end
if packed then
  corrupt_letter(KEYS[6], KEYS[7], meta, jobs, id, packed, {now_ms = now, dead_max = dead_max})
  reply = {'DEAD', 'attempts', 0}
elseif is_counted and job[1] >= attempts_max then
  redis.call('HDEL', jobs, id)
  local letter = {now_ms = now, reason = ARGV[3], dead_max = dead_max}
  dead_letter(KEYS[6], KEYS[7], meta, id, job, letter)
  reply = {'DEAD', 'attempts', job[1]}
else
  write_job(jobs, id, job)
  if is_counted then
    redis.call('RPUSH', ready, id)
  else
    redis.call('LPUSH', ready, id)
  end
  redis.call('HINCRBY', meta, 'retried', 1)
  ring(KEYS[8])
  reply = {'RETRIED', 'attempts', job[1]}
end
local at = expiry(meta, now + ttl_ms, ttl_ms)
for i = 2, #KEYS do
  redis.call('PEXPIREAT', KEYS[i], at)
end
return reply
