-- Gives a session a new id; the old one is worth nothing from then on, but for ending it. May run
-- twice.
-- KEYS: 1 the session; 2 the session under its new id; 3 the sessions of the user; 4 what became of
-- the old id
-- ARGV: 1 member; 2 new member
-- Replies: ROTATED; REVOKED; MISSING
-- Errors: INVALID member
if ARGV[1] == '' or ARGV[2] == '' or ARGV[1] == ARGV[2] then return refuse('member') end
if redis.call('HGET', KEYS[2], 'rotated_from') == ARGV[1] then
  return {'ROTATED'}
end
local state = redis.call('HMGET', KEYS[1], 'status', 'absolute_at_ms')
local status = state[1]
if not status then
  return {'MISSING'}
elseif status == 'REVOKED' then
  return {'REVOKED'}
end
-- A key that is not what it should be fails here, before anything is written.
redis.call('ZCARD', KEYS[3])
local now, left = now_ms(), redis.call('PTTL', KEYS[1])
redis.call('RENAME', KEYS[1], KEYS[2])
redis.call('HSET', KEYS[2], 'last_rotated_at_ms', now, 'rotated_from', ARGV[1], 'updated_at_ms', now)
redis.call('ZREM', KEYS[3], ARGV[1])
redis.call('ZADD', KEYS[3], now + left, ARGV[2])
if redis.call('PTTL', KEYS[3]) < left then
  redis.call('PEXPIRE', KEYS[3], left)
end
-- For as long as the session can live.
local known = math.max((tonumber(state[2] or 0) or 0) - now, left, 1)
redis.call('SET', KEYS[4], ARGV[2], 'PX', known)
return {'ROTATED'}
