-- Ends sessions of a user. Given all of them, it says so if there are others meanwhile and ends none.
-- KEYS: 1 the sessions of the user; from 2 on the sessions to end
-- ARGV: 1 reason; 2 keep_ms; 3 member that stays or empty, or - to end only those given; from 4 on the members of the keys from 2 on
-- Replies: REVOKED revoked_count; CHANGED
-- Errors: INVALID keep_ms, members
local keep = whole(ARGV[2], 1, 1e13)
if not keep then return refuse('keep_ms') end
if #ARGV - 3 ~= #KEYS - 1 or #KEYS > 257 then return refuse('members') end
local now = now_ms()
if ARGV[3] ~= '-' then
  local is_given = {}
  for index = 4, #ARGV do
    is_given[ARGV[index]] = true
  end
  redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
  for _, member in ipairs(redis.call('ZRANGE', KEYS[1], 0, 256)) do
    if member ~= ARGV[3] and not is_given[member] then
      return {'CHANGED'}
    end
  end
end
local revoked = 0
for index = 2, #KEYS do
  local status = redis.pcall('HGET', KEYS[index], 'status')
  if type(status) == 'table' then
    -- It is no session, lets nobody in, and must not keep the others from ending.
    redis.call('DEL', KEYS[index])
  elseif status and status ~= 'REVOKED' then
    redis.call('HSET', KEYS[index], 'status', 'REVOKED', 'revoked_at_ms', now,
      'revoked_reason', ARGV[1], 'updated_at_ms', now)
    redis.call('HDEL', KEYS[index], 'mfa_challenge', 'mfa_challenge_until_ms')
    local left = redis.call('PTTL', KEYS[index])
    if left < 0 or left > keep then
      redis.call('PEXPIRE', KEYS[index], keep)
    end
    revoked = revoked + 1
  end
  redis.call('ZREM', KEYS[1], ARGV[index + 2])
end
return {'REVOKED', 'revoked_count', revoked}
