-- Gives a hold of a read-write lease back, and the place of a writer that waits.
-- KEYS: 1 the writers; 2 the readers; 3 the writer that waits; 4 the last fencing number
-- ARGV: 1 owner and hold; 2 memory_ms
-- Replies: RELEASED; NOT_HELD, it had run out or was given back before
-- Keys that are not what they should be fail here, before anything is written.
redis.call('ZCARD', KEYS[1])
redis.call('ZCARD', KEYS[2])
if redis.call('GET', KEYS[3]) == ARGV[1] then
  redis.call('DEL', KEYS[3])
end
local now = now_ms()
local is_held = false
for index = 1, 2 do
  local until_ms = redis.call('ZSCORE', KEYS[index], ARGV[1])
  if until_ms then
    is_held = is_held or tonumber(until_ms) > now
    redis.call('ZREM', KEYS[index], ARGV[1])
  end
end
return {is_held and 'RELEASED' or 'NOT_HELD'}
