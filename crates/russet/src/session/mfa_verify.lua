-- Meets the challenge of a session, or counts one more failure.
-- KEYS: 1 marker of the request; 2 the session
-- ARGV: 1 request_ttl_ms; 2 digest of the challenge; 3 attempt_count_max
-- Replies: VERIFIED; MISMATCH attempts_left; EXPIRED; LOCKED; NOT_REQUIRED; REVOKED; MISSING
-- Errors: INVALID challenge, attempt_count_max
local attempts_max = whole(ARGV[3], 1, 1e6)
if ARGV[2] == '' then return refuse('challenge') end
if not attempts_max then return refuse('attempt_count_max') end
local state = redis.call('HMGET', KEYS[2], 'status', 'failed_mfa_attempt_count', 'mfa_challenge',
  'mfa_challenge_until_ms', 'mfa_verified_challenge')
if not state[1] then
  return {'MISSING'}, true
elseif state[1] == 'REVOKED' then
  return {'REVOKED'}, true
elseif state[1] == 'MFA_VERIFIED' and state[5] == ARGV[2] then
  return {'VERIFIED'}, true
elseif state[1] ~= 'MFA_REQUIRED' then
  return {'NOT_REQUIRED'}, true
end
local attempts, now = tonumber(state[2] or 0) or 0, now_ms()
if attempts >= attempts_max then
  return {'LOCKED'}, true
elseif not state[3] or (tonumber(state[4] or 0) or 0) <= now then
  return {'EXPIRED'}, true
elseif state[3] ~= ARGV[2] then
  attempts = redis.call('HINCRBY', KEYS[2], 'failed_mfa_attempt_count', 1)
  if attempts < attempts_max then
    return {'MISMATCH', 'attempts_left', attempts_max - attempts}
  end
  redis.call('HDEL', KEYS[2], 'mfa_challenge', 'mfa_challenge_until_ms')
  return {'LOCKED'}
end
redis.call('HSET', KEYS[2], 'status', 'MFA_VERIFIED', 'auth_level', 'MFA', 'mfa_verified_at_ms', now,
  'mfa_verified_challenge', ARGV[2], 'failed_mfa_attempt_count', 0, 'updated_at_ms', now)
redis.call('HDEL', KEYS[2], 'mfa_challenge', 'mfa_challenge_until_ms')
return {'VERIFIED'}
