-- Sets or clears a user's like.
-- KEYS: 1 when each user liked it
-- ARGV: 1 user; 2 SET or CLEAR; 3 likers_max; 4 ttl_ms after the last like
-- Replies: CHANGED likes; UNCHANGED likes; FULL likes
-- Errors: INVALID how, likers_max, ttl_ms
local likers_max, ttl_ms = whole(ARGV[3], 1, 1e9), whole(ARGV[4], 1, 1e13)
if ARGV[2] ~= 'SET' and ARGV[2] ~= 'CLEAR' then return refuse('how') end
if not likers_max then return refuse('likers_max') end
if not ttl_ms then return refuse('ttl_ms') end
local likes = redis.call('ZCARD', KEYS[1])
if ARGV[2] == 'CLEAR' then
  local removed = redis.call('ZREM', KEYS[1], ARGV[1])
  return {removed == 1 and 'CHANGED' or 'UNCHANGED', 'likes', likes - removed}
end
if redis.call('ZSCORE', KEYS[1], ARGV[1]) then return {'UNCHANGED', 'likes', likes} end
if likes >= likers_max then return {'FULL', 'likes', likes} end
redis.call('ZADD', KEYS[1], now_ms(), ARGV[1])
redis.call('PEXPIRE', KEYS[1], ttl_ms)
return {'CHANGED', 'likes', likes + 1}
