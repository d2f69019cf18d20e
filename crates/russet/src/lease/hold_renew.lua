-- Gives a hold of a read-write lease more time, the others none. It never brings one back.
-- KEYS: 1 the writers; 2 the readers; 3 the writer that waits; 4 the last fencing number
-- ARGV: 1 owner and hold; 2 ttl_ms; 3 memory_ms; 4 fence_min
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
local now = now_ms()
-- Keys that are not what they should be fail here, before anything is written.
local last = redis.call('GET', KEYS[4])
redis.call('ZCARD', KEYS[2])
local is_held = false
for index = 1, 2 do
  local until_ms = redis.call('ZSCORE', KEYS[index], ARGV[1])
  if until_ms and tonumber(until_ms) > now then
    is_held = true
    redis.call('ZADD', KEYS[index], 'GT', now + ttl_ms, ARGV[1])
    if redis.call('PTTL', KEYS[index]) < ttl_ms then
      redis.call('PEXPIRE', KEYS[index], ttl_ms)
    end
  end
end
if not is_held then
  return {'NOT_HELD'}
end
-- If the number was lost it is the end of this millisecond, which is higher.
local fence = math.max(tonumber(last) or (now + 1) * 1000, fence_min)
redis.call('SET', KEYS[4], string.format('%.0f', fence), 'PX', ttl_ms + memory_ms)
return {'RENEWED', 'fence', fence}
