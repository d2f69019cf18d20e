-- Revokes a token that was issued elsewhere: it is known as revoked for so long. May run twice.
-- KEYS: 1 the token
-- ARGV: 1 ttl_ms; 2 reason
-- Replies: REVOKED
-- Errors: INVALID ttl_ms
local ttl = whole(ARGV[1], 1, 1e13)
if not ttl then return refuse('ttl_ms') end
local now = now_ms()
redis.call('HSETNX', KEYS[1], 'schema_version', 1)
redis.call('HSETNX', KEYS[1], 'created_at_ms', now)
redis.call('HSETNX', KEYS[1], 'expires_at_ms', now + ttl)
if redis.call('HSETNX', KEYS[1], 'revoked_at_ms', now) == 1 then
  redis.call('HSET', KEYS[1], 'revoked_reason', ARGV[2])
end
if redis.call('PTTL', KEYS[1]) < ttl then
  redis.call('PEXPIRE', KEYS[1], ttl)
end
return {'REVOKED'}
