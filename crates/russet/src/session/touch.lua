-- Reads what decides on a request and keeps the session alive: its TTL is renewed when little of it is left, never past its absolute deadline.
-- KEYS: 1 the session; 2 the sessions of the user
-- ARGV: 1 member; 2 idle_ms; 3 refresh_below_percent; 4 1 to record the time in any case
-- Replies: FOUND user_id, tenant_id, status, auth_level, is_refreshed; MISSING; CORRUPT field
-- Errors: INVALID idle_ms, refresh_below_percent
local idle, percent = whole(ARGV[2], 1, 1e13), whole(ARGV[3], 1, 100)
if not idle then return refuse('idle_ms') end
if not percent then return refuse('refresh_below_percent') end
local state = redis.pcall('HMGET', KEYS[1], 'user_id', 'tenant_id', 'status', 'auth_level',
  'absolute_at_ms')
if state.err then
  return {'CORRUPT', 'field', 'type'}
end
local left, absolute_at = redis.call('PTTL', KEYS[1]), tonumber(state[5])
if left == -2 then
  return {'MISSING'}
elseif not absolute_at then
  return {'CORRUPT', 'field', 'absolute_at_ms'}
end
local is_refreshed = 0
if state[3] ~= 'REVOKED' then
  local now = now_ms()
  local ttl = math.min(idle, absolute_at - now)
  if ttl <= 0 then
    redis.call('DEL', KEYS[1])
    redis.call('ZREM', KEYS[2], ARGV[1])
    return {'MISSING'}
  end
  -- Without a TTL, which no step leaves behind, it gets one.
  if left == -1 or (left * 100 < idle * percent and ttl > left) then
    redis.call('PEXPIRE', KEYS[1], ttl)
    left, is_refreshed = ttl, 1
  end
  -- Also if the list of the user's sessions was lost: what it does not have can't be revoked by it.
  if is_refreshed == 1 or not redis.call('ZSCORE', KEYS[2], ARGV[1]) then
    redis.call('ZADD', KEYS[2], now + left, ARGV[1])
    if redis.call('PTTL', KEYS[2]) < left then
      redis.call('PEXPIRE', KEYS[2], left)
    end
  end
  if is_refreshed == 1 or ARGV[4] == '1' then
    redis.call('HSET', KEYS[1], 'last_seen_at_ms', now, 'updated_at_ms', now)
  end
end
return {'FOUND', 'user_id', state[1], 'tenant_id', state[2], 'status', state[3],
  'auth_level', state[4], 'is_refreshed', is_refreshed}
