-- Signs a user in for a day, once.
-- KEYS: 1 the streak: last_day, current, longest, total; 2 bitmap of the year
-- ARGV: 1 start_ms and 2 end_ms of the day; 3 number of the day since 1970; 4 its index in the
-- year, from 0; 5 retention_ms
-- Replies: SIGNED current, longest, total; AGAIN current, longest, total; PERIOD now_ms
-- Errors: INVALID period, day, retention_ms
local start_ms, end_ms = whole(ARGV[1], -1e9, 1e15), whole(ARGV[2], 1, 1e15)
local day, index = whole(ARGV[3], 0, 1e7), whole(ARGV[4], 0, 365)
local retention_ms = whole(ARGV[5], 1, 1e13)
if not start_ms or not end_ms or end_ms <= start_ms then return refuse('period') end
if not day or not index then return refuse('day') end
if not retention_ms then return refuse('retention_ms') end
local now = now_ms()
if now < start_ms or now >= end_ms then return {'PERIOD', 'now_ms', now} end

-- A key that is not what it should be fails here, before anything is written.
redis.call('STRLEN', KEYS[2])
local kept = redis.call('HMGET', KEYS[1], 'last_day', 'current', 'longest', 'total')
local last_day, current = tonumber(kept[1] or -2), tonumber(kept[2] or 0)
local longest, total = tonumber(kept[3] or 0), tonumber(kept[4] or 0)
-- A clock that has gone back signs no day twice.
local is_again = last_day >= day
if not is_again then
  current = last_day == day - 1 and current + 1 or 1
  longest = math.max(longest, current)
  total = total + 1
  redis.call('HSET', KEYS[1], 'last_day', day, 'current', current, 'longest', longest, 'total',
    total)
  redis.call('SETBIT', KEYS[2], index, 1)
end
local expires_at = end_ms + retention_ms
if redis.call('PEXPIRETIME', KEYS[1]) < expires_at then
  redis.call('PEXPIREAT', KEYS[1], expires_at)
end
if redis.call('PEXPIRETIME', KEYS[2]) < expires_at then
  redis.call('PEXPIREAT', KEYS[2], expires_at)
end
return {is_again and 'AGAIN' or 'SIGNED', 'current', current, 'longest', longest, 'total', total}
