-- Makes a session of a user, who has at most so many. The same id makes it once: it may run twice.
-- KEYS: 1 the session; 2 the sessions of the user; 3 the session to evict, or the first key again; 4 what became of the
--   id
-- ARGV: 1 member; 2 user_id; 3 tenant_id; 4 status; 5 auth_level; 6 idle_ms; 7 absolute_ms; 8 session_count_max; 9 reject or evict; 10 member to evict, or empty; 11 ip_digest; 12 user_agent_digest
-- Replies: CREATED ttl_ms; FULL; EVICT member
-- Errors: INVALID member, user_id, status, idle_ms, absolute_ms, session_count_max, when_full
local idle, absolute = whole(ARGV[6], 1, 1e13), whole(ARGV[7], 1, 1e13)
local count_max = whole(ARGV[8], 1, 256)
if ARGV[1] == '' then return refuse('member') end
if ARGV[2] == '' then return refuse('user_id') end
if ARGV[4] ~= 'ACTIVE' and ARGV[4] ~= 'MFA_REQUIRED' then return refuse('status') end
if not idle then return refuse('idle_ms') end
if not absolute then return refuse('absolute_ms') end
if not count_max then return refuse('session_count_max') end
if ARGV[9] ~= 'reject' and ARGV[9] ~= 'evict' then return refuse('when_full') end
if redis.call('EXISTS', KEYS[1]) == 1 then
  return {'CREATED', 'ttl_ms', math.max(redis.call('PTTL', KEYS[1]), 0)}
end
if redis.call('EXISTS', KEYS[4]) == 1 then
  -- A request that was late: the session has another id by now.
  return {'CREATED', 'ttl_ms', 0}
end
local now = now_ms()
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
if redis.call('ZCARD', KEYS[2]) >= count_max then
  if ARGV[9] == 'reject' then
    return {'FULL'}
  end
  local first = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
  if first == ARGV[10] then
    redis.call('DEL', KEYS[3])
    redis.call('ZREM', KEYS[2], first)
    first = redis.call('ZCARD', KEYS[2]) >= count_max and redis.call('ZRANGE', KEYS[2], 0, 0)[1]
  end
  if first then
    return {'EVICT', 'member', first}
  end
end
local ttl = math.min(idle, absolute)
redis.call('HSET', KEYS[1], 'schema_version', 1, 'user_id', ARGV[2], 'tenant_id', ARGV[3],
  'status', ARGV[4], 'auth_level', ARGV[5], 'created_at_ms', now, 'updated_at_ms', now,
  'last_seen_at_ms', now, 'absolute_at_ms', now + absolute, 'failed_mfa_attempt_count', 0)
if ARGV[11] ~= '' then redis.call('HSET', KEYS[1], 'ip_digest', ARGV[11]) end
if ARGV[12] ~= '' then redis.call('HSET', KEYS[1], 'user_agent_digest', ARGV[12]) end
redis.call('PEXPIRE', KEYS[1], ttl)
redis.call('ZADD', KEYS[2], now + ttl, ARGV[1])
if redis.call('PTTL', KEYS[2]) < ttl then
  redis.call('PEXPIRE', KEYS[2], ttl)
end
return {'CREATED', 'ttl_ms', ttl}
