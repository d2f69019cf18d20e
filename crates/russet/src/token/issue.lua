-- Records a token of a user, who has at most so many. The same token is recorded once: it may run twice.
-- KEYS: 1 the token; 2 the tokens of the user
-- ARGV: 1 member; 2 tenant_id; 3 subject_id; 4 kind; 5 scopes; 6 ttl_ms; 7 safety_ms; 8 token_count_max
-- Replies: ISSUED expires_at_ms; FULL
-- Errors: INVALID member, subject_id, ttl_ms, safety_ms, token_count_max
local ttl, safety = whole(ARGV[6], 1, 1e13), whole(ARGV[7], 0, 1e13)
local count_max = whole(ARGV[8], 1, 256)
if ARGV[1] == '' then return refuse('member') end
if ARGV[3] == '' then return refuse('subject_id') end
if not ttl then return refuse('ttl_ms') end
if not safety then return refuse('safety_ms') end
if not count_max then return refuse('token_count_max') end
local expires_at = redis.call('HGET', KEYS[1], 'expires_at_ms')
if expires_at then
  return {'ISSUED', 'expires_at_ms', expires_at}
end
local now = now_ms()
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
if redis.call('ZCARD', KEYS[2]) >= count_max then
  return {'FULL'}
end
redis.call('HSET', KEYS[1], 'schema_version', 1, 'tenant_id', ARGV[2], 'subject_id', ARGV[3],
  'kind', ARGV[4], 'scopes', ARGV[5], 'created_at_ms', now, 'expires_at_ms', now + ttl)
redis.call('PEXPIRE', KEYS[1], ttl + safety)
redis.call('ZADD', KEYS[2], now + ttl, ARGV[1])
if redis.call('PTTL', KEYS[2]) < ttl then
  redis.call('PEXPIRE', KEYS[2], ttl)
end
return {'ISSUED', 'expires_at_ms', now + ttl}
