-- Sets or clears that a user follows another, on the side of the user: this is what holds. The
-- other side is told by follow_apply; until it has confirmed, the change is pending. At most 10000 are.
-- KEYS: 1 whom the user follows; 2 pending changes; 3 number of the last change
-- ARGV: 1 the other; 2 SET or CLEAR; 3 following_max; 4 ttl_ms after the last change
-- Replies: CHANGED version, following; UNCHANGED version, following; FULL following
-- Errors: INVALID how, following_max, ttl_ms
local following_max, ttl_ms = whole(ARGV[3], 1, 1e9), whole(ARGV[4], 1, 1e13)
if ARGV[2] ~= 'SET' and ARGV[2] ~= 'CLEAR' then return refuse('how') end
if not following_max then return refuse('following_max') end
if not ttl_ms then return refuse('ttl_ms') end
local is_set = ARGV[2] == 'SET'
-- A key that is not what it should be fails here, before anything is written.
redis.call('ZCARD', KEYS[2])
local since = redis.call('ZSCORE', KEYS[1], ARGV[1])
local following = redis.call('ZCARD', KEYS[1])
-- Moments, but never the same twice and never back.
local last = tonumber(redis.call('GET', KEYS[3]) or 0)
local version = math.max(now_ms(), last + 1)
if is_set == (since and true or false) then
  -- Perhaps the other side has not heard of it yet, or only one of the two has been lost: the other
  -- side is told again.
  local pending = redis.call('ZSCORE', KEYS[2], ARGV[1])
  if is_set then
    redis.call('PEXPIRE', KEYS[1], ttl_ms)
  elseif not pending then
    redis.call('SET', KEYS[3], string.format('%.0f', version), 'PX', ttl_ms)
  end
  local told = tonumber(pending or since or version)
  return {'UNCHANGED', 'version', told, 'following', following}
end
if is_set and following >= following_max then return {'FULL', 'following', following} end
redis.call('SET', KEYS[3], string.format('%.0f', version), 'PX', ttl_ms)
redis.call('ZADD', KEYS[2], version, ARGV[1])
-- If the other sides are never told, the oldest changes are forgotten.
redis.call('ZREMRANGEBYRANK', KEYS[2], 0, -10001)
redis.call('PEXPIRE', KEYS[2], ttl_ms)
if is_set then
  redis.call('ZADD', KEYS[1], version, ARGV[1])
  following = following + 1
else
  redis.call('ZREM', KEYS[1], ARGV[1])
  following = following - 1
end
redis.call('PEXPIRE', KEYS[1], ttl_ms)
return {'CHANGED', 'version', version, 'following', following}
