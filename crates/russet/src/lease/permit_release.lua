-- Gives permits back, if they are the token's.
-- KEYS: 1 the permits; 2 the last fencing number
-- ARGV: 1 token; 2 memory_ms
-- Replies: RELEASED; NOT_HELD, they had run out or were given back before
-- Errors: INVALID token
local members = members_of(ARGV[1])
if not members then return refuse('token') end
local until_ms = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not until_ms then
  return {'NOT_HELD'}
end
redis.call('ZREM', KEYS[1], unpack(members))
if tonumber(until_ms) <= now_ms() then
  return {'NOT_HELD'}
end
return {'RELEASED'}
