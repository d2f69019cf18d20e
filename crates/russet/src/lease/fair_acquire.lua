-- Takes a lease in the order of arrival. Waiters that have not asked again within their patience
-- are dead: all of them are passed over at once.
-- KEYS: 1 the lease; 2 the queue; 3 until when each waiter is alive
-- ARGV: 1 token; 2 ttl_ms; 3 memory_ms; 4 patience_ms, 0 does not queue; 5 waiters_max
-- Replies: HELD fence; BUSY retry_after_ms, ahead; FULL; RELEASED
-- Errors: INVALID token, ttl_ms, memory_ms, patience_ms, waiters_max; CORRUPT
local token = ARGV[1]
local ttl_ms, memory_ms = whole(ARGV[2], 1, 1e12), whole(ARGV[3], 1, 1e12)
local patience_ms, waiters_max = whole(ARGV[4], 0, 1e9), whole(ARGV[5], 1, 1e5)
if token == '' then
  return refuse('token')
elseif not ttl_ms then
  return refuse('ttl_ms')
elseif not memory_ms then
  return refuse('memory_ms')
elseif not patience_ms then
  return refuse('patience_ms')
elseif not waiters_max then
  return refuse('waiters_max')
end
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now_ms = math.floor(now_us / 1000)

local fence, until_us, is_own = now_us, 0, false
local stored = redis.call('GET', KEYS[1])
if stored then
  local last, held_until, lent_ms, holder = string.match(stored, '^(%d+) (%d+) (%d+) (.+)$')
  if not last then
    return redis.error_reply('CORRUPT lease')
  elseif holder == token and held_until == '0' then
    return {'RELEASED'}
  end
  until_us = tonumber(held_until)
  if until_us > now_us + lent_ms * 1000 then
    -- The clock was set back: nobody has more time than it was given.
    until_us = now_us + lent_ms * 1000
    redis.call('SET', KEYS[1], string.format('%s %.0f %s ', last, until_us, lent_ms) .. holder,
      'PX', lent_ms + memory_ms)
  end
  is_own = holder == token and until_us > now_us
  fence = is_own and tonumber(last) or math.max(now_us, last + 1)
end

-- The dead go, a thousand with each command.
repeat
  local dead = redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now_ms, 'LIMIT', 0, 1000)
  if #dead > 0 then
    redis.call('ZREM', KEYS[2], unpack(dead))
    redis.call('ZREM', KEYS[3], unpack(dead))
  end
until #dead < 1000

-- So do those of whom nothing is known, since a key was lost. After the clock was set back the first
-- has as much time as any other.
local patience_max = 10 * math.max(patience_ms, 3000)
local head = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
while head and head ~= token do
  local alive_until = redis.call('ZSCORE', KEYS[3], head)
  if alive_until then
    if tonumber(alive_until) > now_ms + patience_max then
      redis.call('ZADD', KEYS[3], now_ms + patience_max / 10, head)
    end
    break
  end
  redis.call('ZREM', KEYS[2], head)
  head = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
end
if is_own or until_us <= now_us and (not head or head == token) then
  redis.call('ZREM', KEYS[2], token)
  redis.call('ZREM', KEYS[3], token)
  redis.call('SET', KEYS[1], string.format('%.0f %.0f %.0f ', fence, now_us + ttl_ms * 1000, ttl_ms)
    .. token, 'PX', ttl_ms + memory_ms)
  return {'HELD', 'fence', fence}
end

local ahead = redis.call('ZRANK', KEYS[2], token)
if patience_ms > 0 then
  if not ahead then
    ahead = redis.call('ZCARD', KEYS[2])
    if ahead >= waiters_max then
      return {'FULL'}
    end
    -- Behind everyone, whatever the clock does.
    local last = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')
    redis.call('ZADD', KEYS[2], math.max(now_us, (last[2] or 0) + 1), token)
  end
  redis.call('ZADD', KEYS[3], now_ms + patience_ms, token)
  for index = 2, 3 do
    if redis.call('PTTL', KEYS[index]) < patience_ms then
      redis.call('PEXPIRE', KEYS[index], patience_ms)
    end
  end
end
local wait_ms = math.max(0, math.ceil((until_us - now_us) / 1000))
return {'BUSY', 'retry_after_ms', wait_ms, 'ahead', ahead or redis.call('ZCARD', KEYS[2])}
