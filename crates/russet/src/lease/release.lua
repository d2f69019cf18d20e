-- Gives a lease back, if it is the token's. The fencing number is remembered for a while.
-- KEYS: 1 the lease
-- ARGV: 1 token; 2 memory_ms
-- Replies: RELEASED, nobody had it since; NOT_HELD, another had it since, or it is forgotten
-- Errors: INVALID memory_ms
local memory_ms = whole(ARGV[2], 1, 1e12)
if not memory_ms then
  return refuse('memory_ms')
end
local stored = redis.call('GET', KEYS[1])
local fence, until_us, holder = string.match(stored or '', '^(%d+) (%d+) %d+ (.+)$')
if holder ~= ARGV[1] then
  return {'NOT_HELD'}
elseif until_us == '0' then
  return {'RELEASED'}
end
redis.call('SET', KEYS[1], fence .. ' 0 0 ' .. holder, 'PX', memory_ms)
return {'RELEASED'}
