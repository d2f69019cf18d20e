-- Gives a lease back, if it is the token's, and leaves the queue if the token still waits.
-- KEYS: 1 the lease; 2 the queue; 3 until when each waiter is alive
-- ARGV: 1 token; 2 memory_ms
-- Replies: RELEASED, nobody had it since; NOT_HELD
-- Errors: INVALID memory_ms
local memory_ms = whole(ARGV[2], 1, 1e12)
if not memory_ms then
  return refuse('memory_ms')
end
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('ZREM', KEYS[3], ARGV[1])
local stored = redis.call('GET', KEYS[1])
local fence, until_us, holder = string.match(stored or '', '^(%d+) (%d+) %d+ (.+)$')
if holder ~= ARGV[1] then
  return {'NOT_HELD'}
elseif until_us == '0' then
  return {'RELEASED'}
end
redis.call('SET', KEYS[1], fence .. ' 0 0 ' .. holder, 'PX', memory_ms)
return {'RELEASED'}
