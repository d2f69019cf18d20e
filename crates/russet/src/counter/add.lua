-- Counts in the present window, which begins at a multiple of its length, and forgets old windows.
-- KEYS: 1 request marker; 2 the counter
-- ARGV: 1 request_ttl_ms; 2 by, which may be negative; 3 window_ms; 4 keep, how many windows with the present one
-- Replies: OK count, window (its number), rest_ms (until it ends)
-- Errors: INVALID by, window_ms, keep; OVERFLOW
local by = whole(ARGV[2], -1e15, 1e15)
local window, keep = whole(ARGV[3], 1, 1e12), whole(ARGV[4], 1, 400)
if not by or by == 0 then return refuse('by') end
if not window then return refuse('window_ms') end
if not keep then return refuse('keep') end
local now = now_ms()
local index = math.floor(now / window)
local name = string.format('%.0f', index)
local count = (tonumber(redis.call('HGET', KEYS[2], name)) or 0) + by
-- Beyond it a double skips numbers.
if count > 9e15 or count < -9e15 then return redis.error_reply('OVERFLOW the count') end
if redis.call('HINCRBY', KEYS[2], name, by) == by and redis.call('HLEN', KEYS[2]) > keep then
  for _, field in ipairs(redis.call('HKEYS', KEYS[2])) do
    if tonumber(field) <= index - keep then redis.call('HDEL', KEYS[2], field) end
  end
end
local ttl = (index + keep) * window - now
if redis.call('PTTL', KEYS[2]) < ttl then redis.call('PEXPIRE', KEYS[2], ttl) end
return {'OK', 'count', count, 'window', index, 'rest_ms', (index + 1) * window - now}
