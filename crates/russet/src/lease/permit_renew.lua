-- Gives the holder of permits more time. It never brings a permit back.
-- KEYS: 1 the permits; 2 the last fencing number
-- ARGV: 1 token; 2 ttl_ms; 3 memory_ms; 4 fence_min
-- Replies: RENEWED fence; NOT_HELD
-- Errors: INVALID token, ttl_ms, memory_ms, fence_min
local members = members_of(ARGV[1])
local ttl_ms, memory_ms = whole(ARGV[2], 1, 1e12), whole(ARGV[3], 1, 1e12)
local fence_min = whole(ARGV[4], 0, 9e15)
if not members then
  return refuse('token')
elseif not ttl_ms then
  return refuse('ttl_ms')
elseif not memory_ms then
  return refuse('memory_ms')
elseif not fence_min then
  return refuse('fence_min')
end
local now = now_ms()
local until_ms = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not until_ms or tonumber(until_ms) <= now then
  return {'NOT_HELD'}
end
-- A number that is none fails here, before anything is written.
local last = redis.call('GET', KEYS[2])
for _, member in ipairs(members) do
  redis.call('ZADD', KEYS[1], 'GT', now + ttl_ms, member)
end
if redis.call('PTTL', KEYS[1]) < ttl_ms then
  redis.call('PEXPIRE', KEYS[1], ttl_ms)
end
-- If the number was lost it is the end of this millisecond, which is higher.
local fence = math.max(tonumber(last) or (now + 1) * 1000, fence_min)
redis.call('SET', KEYS[2], string.format('%.0f', fence), 'PX', ttl_ms + memory_ms)
return {'RENEWED', 'fence', fence}
