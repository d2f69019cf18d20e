-- Counts a failed attempt at the second factor that was checked elsewhere.
-- KEYS: 1 marker of the request; 2 the session
-- ARGV: 1 request_ttl_ms; 2 attempt_count_max
-- Replies: MISMATCH attempts_left; LOCKED; REVOKED; MISSING
-- Errors: INVALID attempt_count_max
local attempts_max = whole(ARGV[2], 1, 1e6)
if not attempts_max then return refuse('attempt_count_max') end
local state = redis.call('HMGET', KEYS[2], 'status', 'failed_mfa_attempt_count')
if not state[1] then
  return {'MISSING'}, true
elseif state[1] == 'REVOKED' then
  return {'REVOKED'}, true
elseif (tonumber(state[2] or 0) or 0) >= attempts_max then
  return {'LOCKED'}, true
end
local attempts = redis.call('HINCRBY', KEYS[2], 'failed_mfa_attempt_count', 1)
redis.call('HSET', KEYS[2], 'updated_at_ms', now_ms())
if attempts < attempts_max then
  return {'MISMATCH', 'attempts_left', attempts_max - attempts}
end
redis.call('HDEL', KEYS[2], 'mfa_challenge', 'mfa_challenge_until_ms')
return {'LOCKED'}
