-- Takes the write side of a read-write lease, which only one owner has. Reentrant: that owner may
-- have many holds, and may write if it is the only reader.
-- KEYS: 1 the writers; 2 the readers; 3 the writer that waits; 4 the last fencing number
-- ARGV: 1 owner and hold, with a colon between; 2 ttl_ms; 3 memory_ms; 4 holds_max; 5 intent_ms,
-- how long new readers wait for this writer if it can't write now, 0 lets them in
-- Replies: HELD fence; BUSY retry_after_ms; FULL
-- Errors: INVALID token, ttl_ms, memory_ms, holds_max, intent_ms
local token = ARGV[1]
local owner = string.match(token, '^([^:]+):[^:]+$')
local ttl_ms, memory_ms = whole(ARGV[2], 1, 1e12), whole(ARGV[3], 1, 1e12)
local holds_max, intent_ms = whole(ARGV[4], 1, 10000), whole(ARGV[5], 0, 1e9)
if not owner then
  return refuse('token')
elseif not ttl_ms then
  return refuse('ttl_ms')
elseif not memory_ms then
  return refuse('memory_ms')
elseif not holds_max then
  return refuse('holds_max')
elseif not intent_ms then
  return refuse('intent_ms')
end
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now_ms = math.floor(now_us / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now_ms)
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now_ms)

local function is_own(hold)
  return string.sub(hold, 1, #owner + 1) == owner .. ':'
end
-- Until when the first hold of another owner is, and whether this owner has one.
local blocked_ms, has_hold
local function look_at(holds)
  for index = 1, #holds, 2 do
    if is_own(holds[index]) then
      has_hold = true
    elseif not blocked_ms then
      blocked_ms = holds[index + 1] - now_ms
    end
  end
end
look_at(redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES'))
look_at(redis.call('ZRANGE', KEYS[2], 0, -1, 'WITHSCORES'))
local waiting = redis.call('GET', KEYS[3])
if waiting and not is_own(waiting) and not has_hold and not blocked_ms then
  blocked_ms = math.max(0, redis.call('PTTL', KEYS[3]))
end
if blocked_ms then
  if intent_ms > 0 and (not waiting or is_own(waiting)) then
    redis.call('SET', KEYS[3], token, 'PX', intent_ms)
  end
  return {'BUSY', 'retry_after_ms', blocked_ms}
end
if redis.call('ZCARD', KEYS[1]) >= holds_max and not redis.call('ZSCORE', KEYS[1], token) then
  return {'FULL'}
end
if waiting == token then
  redis.call('DEL', KEYS[3])
end
local fence = math.max(now_us, (redis.call('GET', KEYS[4]) or 0) + 1)
redis.call('SET', KEYS[4], string.format('%.0f', fence), 'PX', ttl_ms + memory_ms)
redis.call('ZADD', KEYS[1], 'GT', now_ms + ttl_ms, token)
if redis.call('PTTL', KEYS[1]) < ttl_ms then
  redis.call('PEXPIRE', KEYS[1], ttl_ms)
end
return {'HELD', 'fence', fence}
