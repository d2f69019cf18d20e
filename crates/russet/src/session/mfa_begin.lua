-- Asks for a second factor: the session is not authorized until the challenge is met.
-- KEYS: 1 the session
-- ARGV: 1 digest of the challenge; 2 challenge_ttl_ms; 3 attempt_count_max
-- Replies: CHALLENGED; LOCKED; REVOKED; MISSING
-- Errors: INVALID challenge, challenge_ttl_ms, attempt_count_max
local ttl, attempts_max = whole(ARGV[2], 1, 1e13), whole(ARGV[3], 1, 1e6)
if ARGV[1] == '' then return refuse('challenge') end
if not ttl then return refuse('challenge_ttl_ms') end
if not attempts_max then return refuse('attempt_count_max') end
local state = redis.call('HMGET', KEYS[1], 'status', 'failed_mfa_attempt_count')
if not state[1] then
  return {'MISSING'}
elseif state[1] == 'REVOKED' then
  return {'REVOKED'}
elseif (tonumber(state[2] or 0) or 0) >= attempts_max then
  return {'LOCKED'}
end
local now = now_ms()
redis.call('HSET', KEYS[1], 'status', 'MFA_REQUIRED', 'auth_level', 'BASIC', 'mfa_challenge', ARGV[1],
  'mfa_challenge_until_ms', now + ttl, 'updated_at_ms', now)
redis.call('HDEL', KEYS[1], 'mfa_verified_at_ms', 'mfa_verified_challenge')
-- Where the server has TTLs of fields the challenge goes by itself; elsewhere its end is checked.
redis.pcall('HPEXPIRE', KEYS[1], ttl, 'FIELDS', 1, 'mfa_challenge')
return {'CHALLENGED'}
