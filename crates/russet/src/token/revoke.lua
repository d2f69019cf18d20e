-- Revokes tokens of a user. Given all of them, it says so if there are others meanwhile and revokes none.
-- KEYS: 1 the tokens of the user; from 2 on the tokens to revoke
-- ARGV: 1 reason; 2 all, or some to revoke those given; from 3 on the members of the keys from 2 on
-- Replies: REVOKED revoked_count; CHANGED
-- Errors: INVALID mode, members
if ARGV[2] ~= 'all' and ARGV[2] ~= 'some' then return refuse('mode') end
if #ARGV - 2 ~= #KEYS - 1 or #KEYS > 257 then return refuse('members') end
local now = now_ms()
if ARGV[2] == 'all' then
  local is_given = {}
  for index = 3, #ARGV do
    is_given[ARGV[index]] = true
  end
  redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
  for _, member in ipairs(redis.call('ZRANGE', KEYS[1], 0, 256)) do
    if not is_given[member] then
      return {'CHANGED'}
    end
  end
end
local revoked = 0
for index = 2, #KEYS do
  local token = redis.pcall('HMGET', KEYS[index], 'expires_at_ms', 'revoked_at_ms')
  if token.err then
    -- It is no token, good for nothing, and must not keep the others from being revoked.
    redis.call('DEL', KEYS[index])
  elseif token[1] and not token[2] then
    -- Its TTL stays: it is known as revoked for as long as it could have been used.
    redis.call('HSET', KEYS[index], 'revoked_at_ms', now, 'revoked_reason', ARGV[1])
    revoked = revoked + 1
  end
  redis.call('ZREM', KEYS[1], ARGV[index + 1])
end
return {'REVOKED', 'revoked_count', revoked}
