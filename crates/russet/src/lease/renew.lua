-- Gives the holder of a lease more time. It never shortens a lease and never brings one back.
-- KEYS: 1 the lease
-- ARGV: 1 token; 2 ttl_ms; 3 memory_ms; 4 fence_min, the fencing number becomes at least this
-- Replies: RENEWED fence; NOT_HELD
-- Errors: INVALID ttl_ms, memory_ms, fence_min
local ttl_ms, memory_ms = whole(ARGV[2], 1, 1e12), whole(ARGV[3], 1, 1e12)
local fence_min = whole(ARGV[4], 0, 9e15)
if not ttl_ms then
  return refuse('ttl_ms')
elseif not memory_ms then
  return refuse('memory_ms')
elseif not fence_min then
  return refuse('fence_min')
end
local stored = redis.call('GET', KEYS[1])
local fence, until_us, lent_ms, holder =
  string.match(stored or '', '^(%d+) (%d+) (%d+) (.+)$')
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
if holder ~= ARGV[1] or tonumber(until_us) <= now_us then
  return {'NOT_HELD'}
end
fence = math.max(fence, fence_min)
-- What it was given before may be longer; but if the clock was set back, not longer than that.
local left_ms = math.min(math.ceil((until_us - now_us) / 1000), tonumber(lent_ms))
if left_ms < ttl_ms then
  left_ms, until_us = ttl_ms, now_us + ttl_ms * 1000
else
  until_us = math.min(until_us, now_us + left_ms * 1000)
end
redis.call('SET', KEYS[1], string.format('%.0f %.0f %.0f ', fence, until_us, left_ms) .. holder,
  'PX', left_ms + memory_ms)
return {'RENEWED', 'fence', fence}
