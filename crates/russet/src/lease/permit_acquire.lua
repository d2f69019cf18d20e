-- Takes one of a number of permits, each of which runs out by itself, or several.
-- KEYS: 1 the permits; 2 the last fencing number
-- ARGV: 1 token, with an asterisk and how many behind it for more than one permit; 2 ttl_ms; 3 memory_ms; 4 permits_max
-- Replies: HELD fence; BUSY retry_after_ms
-- Errors: INVALID token, ttl_ms, memory_ms, permits_max
local token = ARGV[1]
local members = members_of(token)
local ttl_ms, memory_ms = whole(ARGV[2], 1, 1e12), whole(ARGV[3], 1, 1e12)
local permits_max = whole(ARGV[4], 1, 1e6)
if token == '' or not members then
  return refuse('token')
elseif not ttl_ms then
  return refuse('ttl_ms')
elseif not memory_ms then
  return refuse('memory_ms')
elseif not permits_max or #members > permits_max then
  return refuse('permits_max')
end
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now_ms = math.floor(now_us / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now_ms)
local missing = redis.call('ZCARD', KEYS[1]) + #members - permits_max
if missing > 0 and not redis.call('ZSCORE', KEYS[1], token) then
  -- Until so many have run out.
  local last = math.min(missing, redis.call('ZCARD', KEYS[1])) - 1
  local entry = redis.call('ZRANGE', KEYS[1], last, last, 'WITHSCORES')
  return {'BUSY', 'retry_after_ms', entry[2] - now_ms}
end
local fence = math.max(now_us, (redis.call('GET', KEYS[2]) or 0) + 1)
redis.call('SET', KEYS[2], string.format('%.0f', fence), 'PX', ttl_ms + memory_ms)
for _, member in ipairs(members) do
  redis.call('ZADD', KEYS[1], 'GT', now_ms + ttl_ms, member)
end
if redis.call('PTTL', KEYS[1]) < ttl_ms then
  redis.call('PEXPIRE', KEYS[1], ttl_ms)
end
return {'HELD', 'fence', fence}
