-- The token of a tag, made if there is none. Entries with another one are no longer valid.
-- KEYS: 1 the tag
-- ARGV: 1 token to use if there is none; 2 ttl_ms
-- Replies: OK token
-- Errors: INVALID token, ttl_ms
local ttl = whole(ARGV[2], 1, 1e13)
if ARGV[1] == '' then return refuse('token') end
if not ttl then return refuse('ttl_ms') end
local token = redis.call('GET', KEYS[1])
if not token then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ttl)
  return {'OK', 'token', ARGV[1]}
elseif redis.call('PTTL', KEYS[1]) < ttl / 2 then
  redis.call('PEXPIRE', KEYS[1], ttl)
end
return {'OK', 'token', token}
