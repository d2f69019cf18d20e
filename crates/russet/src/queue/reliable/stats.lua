-- Counts what is in a reliable list queue and what has happened to it, in constant time.
-- KEYS: 1 meta; 2 ready; 3 taken; 4 dead
-- Replies: OK ready, running, dead, scheduled, acked, retried, expired, died, dropped, requeued,
--   lost
local counts = redis.call('HMGET', KEYS[1], 'scheduled', 'acked', 'retried', 'expired', 'died',
  'dropped', 'requeued', 'lost')
for i = 1, 8 do
  counts[i] = tonumber(counts[i] or 0)
end
return {
  'OK',
  'ready', redis.call('LLEN', KEYS[2]),
  'running', redis.call('ZCARD', KEYS[3]),
  'dead', redis.call('ZCARD', KEYS[4]),
  'scheduled', counts[1], 'acked', counts[2], 'retried', counts[3], 'expired', counts[4],
  'died', counts[5], 'dropped', counts[6], 'requeued', counts[7],
  'lost', counts[8],
}
