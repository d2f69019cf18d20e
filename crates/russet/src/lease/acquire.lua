-- Takes a lease that is free, or takes it again for the token that has it.
-- KEYS: 1 the lease
-- ARGV: 1 token; 2 ttl_ms; 3 memory_ms, how long the fencing number outlives the lease
-- Replies: HELD fence; BUSY retry_after_ms; RELEASED, the token has had it and gave it back
-- Errors: INVALID token, ttl_ms, memory_ms; CORRUPT
local token = ARGV[1]
local ttl_ms, memory_ms = whole(ARGV[2], 1, 1e12), whole(ARGV[3], 1, 1e12)
if token == '' then
  return refuse('token')
elseif not ttl_ms then
  return refuse('ttl_ms')
elseif not memory_ms then
  return refuse('memory_ms')
end
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
-- Time, and behind it a counter if the clock stands still or steps back.
local fence = now_us
local stored = redis.call('GET', KEYS[1])
if stored then
  local last, until_us, lent_ms, holder = string.match(stored, '^(%d+) (%d+) (%d+) (.+)$')
  if not last then
    return redis.error_reply('CORRUPT lease')
  end
  local is_held = tonumber(until_us) > now_us
  if is_held and holder ~= token then
    local left_ms = math.ceil((until_us - now_us) / 1000)
    if left_ms > tonumber(lent_ms) then
      -- The clock was set back: nobody has more time than it was given.
      left_ms = tonumber(lent_ms)
      redis.call('SET', KEYS[1], string.format('%s %.0f %s ', last, now_us + left_ms * 1000, lent_ms)
        .. holder, 'PX', left_ms + memory_ms)
    end
    return {'BUSY', 'retry_after_ms', left_ms}
  elseif holder == token and until_us == '0' then
    return {'RELEASED'}
  end
  fence = is_held and tonumber(last) or math.max(now_us, last + 1)
end
redis.call('SET', KEYS[1], string.format('%.0f %.0f %.0f ', fence, now_us + ttl_ms * 1000, ttl_ms)
  .. token, 'PX', ttl_ms + memory_ms)
return {'HELD', 'fence', fence}
