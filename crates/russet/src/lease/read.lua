-- Takes the read side of a read-write lease, beside other readers. Reentrant: an owner may have
-- many holds, and may read while it writes.
-- KEYS: 1 the writers; 2 the readers; 3 the writer that waits; 4 the last fencing number
-- ARGV: 1 owner and hold, with a colon between; 2 ttl_ms; 3 memory_ms; 4 holds_max
-- Replies: HELD fence; BUSY retry_after_ms; FULL
-- Errors: INVALID token, ttl_ms, memory_ms, holds_max
local token = ARGV[1]
local owner = string.match(token, '^([^:]+):[^:]+$')
local ttl_ms, memory_ms = whole(ARGV[2], 1, 1e12), whole(ARGV[3], 1, 1e12)
local holds_max = whole(ARGV[4], 1, 10000)
if not owner then
  return refuse('token')
elseif not ttl_ms then
  return refuse('ttl_ms')
elseif not memory_ms then
  return refuse('memory_ms')
elseif not holds_max then
  return refuse('holds_max')
end
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now_ms = math.floor(now_us / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now_ms)
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now_ms)

local function is_own(hold)
  return string.sub(hold, 1, #owner + 1) == owner .. ':'
end
-- All writers are of one owner.
local writer = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
if writer[1] and not is_own(writer[1]) then
  return {'BUSY', 'retry_after_ms', writer[2] - now_ms}
end
-- A writer that waits comes before readers who have nothing yet.
local waiting = redis.call('GET', KEYS[3])
if waiting and not is_own(waiting) and not writer[1] then
  local has_hold = false
  for _, hold in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do
    has_hold = has_hold or is_own(hold)
  end
  if not has_hold then
    return {'BUSY', 'retry_after_ms', math.max(0, redis.call('PTTL', KEYS[3]))}
  end
end
if redis.call('ZCARD', KEYS[2]) >= holds_max and not redis.call('ZSCORE', KEYS[2], token) then
  return {'FULL'}
end
local fence = math.max(now_us, (redis.call('GET', KEYS[4]) or 0) + 1)
redis.call('SET', KEYS[4], string.format('%.0f', fence), 'PX', ttl_ms + memory_ms)
redis.call('ZADD', KEYS[2], 'GT', now_ms + ttl_ms, token)
if redis.call('PTTL', KEYS[2]) < ttl_ms then
  redis.call('PEXPIRE', KEYS[2], ttl_ms)
end
return {'HELD', 'fence', fence}
