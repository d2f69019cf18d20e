-- Counts what is in a queue and what has happened to it, in constant time but for `due`, which
-- takes logarithmic time.
-- KEYS: 1 meta; 2 jobs; 3 ready; 4 delayed; 5 taken; 6 parked; 7 dead
-- ARGV: 1 aging_ms
-- Replies: OK ready, delayed, due, running, parked, dead, oldest_ready_ms (age), scheduled, acked,
--   retried, expired, died, dropped, requeued,
--   lost
-- Errors: INVALID aging_ms
local aging_ms = whole(ARGV[1], 0, TTL_MAX / PRIORITY_MAX)
if not aging_ms then return refuse('aging_ms') end
local meta = KEYS[1]
local counts = redis.call('HMGET', meta, 'scheduled', 'acked', 'retried', 'expired', 'died',
  'dropped', 'requeued', 'lost')
for i = 1, 8 do
  counts[i] = tonumber(counts[i] or 0)
end
local now = now_us()
local first = redis.call('ZRANGE', KEYS[3], 0, 0, 'WITHSCORES')
local job = first[1] and read_job(KEYS[2], first[1])
local ready_us = job and first[2] + job[2] * aging_ms * 1000 or now
return {
  'OK',
  'ready', redis.call('ZCARD', KEYS[3]),
  'delayed', redis.call('ZCARD', KEYS[4]),
  'due', redis.call('ZCOUNT', KEYS[4], '-inf', now),
  'running', redis.call('ZCARD', KEYS[5]),
  'parked', redis.call('ZCARD', KEYS[6]),
  'dead', redis.call('ZCARD', KEYS[7]),
  'oldest_ready_ms', math.max(0, math.floor((now - ready_us) / 1000)),
  'scheduled', counts[1], 'acked', counts[2], 'retried', counts[3], 'expired', counts[4],
  'died', counts[5], 'dropped', counts[6], 'requeued', counts[7],
  'lost', counts[8],
}
