-- Closes a sale before its time. Reservations can still be paid or cancelled.
-- KEYS: 1 sale
-- Replies: CLOSED; MISSING
local closes_ms = redis.call('HGET', KEYS[1], 'closes_ms')
if not closes_ms then
  return {'MISSING'}
end
redis.call('HSET', KEYS[1], 'closes_ms', math.min(tonumber(closes_ms), now_ms()))
return {'CLOSED'}
