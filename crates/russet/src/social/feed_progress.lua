-- Notes how far a post came, or that it is with all followers.
-- KEYS: 1 posts that are not with all followers yet; 2 how far each came
-- ARGV: 1 post; 2 cursor, empty at the end; 3 ttl_ms
-- Replies: OK
-- Errors: INVALID ttl_ms
local ttl_ms = whole(ARGV[3], 1, 1e13)
if not ttl_ms then return refuse('ttl_ms') end
-- A key that is not what it should be fails here, before anything is written.
redis.call('HLEN', KEYS[2])
if ARGV[2] == '' then
  redis.call('ZREM', KEYS[1], ARGV[1])
  redis.call('HDEL', KEYS[2], ARGV[1])
elseif redis.call('ZSCORE', KEYS[1], ARGV[1]) then
  redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
  redis.call('PEXPIRE', KEYS[1], ttl_ms)
  redis.call('PEXPIRE', KEYS[2], ttl_ms)
end
return {'OK'}
