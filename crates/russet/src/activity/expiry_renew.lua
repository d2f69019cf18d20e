-- Gives an item a later deadline. One that is due, handled or unknown is not renewed.
-- KEYS: 1 deadlines by item; 2 states by item
-- ARGV: 1 item; 2 ttl_ms from now; 3 grace_ms
-- Replies: RENEWED expires_at_ms; MISSING
-- Errors: INVALID ttl_ms, grace_ms
local ttl_ms, grace_ms = whole(ARGV[2], 1, 1e13), whole(ARGV[3], 1, 1e13)
if not ttl_ms then return refuse('ttl_ms') end
if not grace_ms then return refuse('grace_ms') end
local before = redis.call('ZSCORE', KEYS[1], ARGV[1])
local now = now_ms()
if not before or tonumber(before) <= now then return {'MISSING'} end
local expires_at_ms = math.max(now + ttl_ms, tonumber(before))
redis.call('ZADD', KEYS[1], expires_at_ms, ARGV[1])
local gone_at_ms = expires_at_ms + grace_ms
if redis.call('PEXPIRETIME', KEYS[1]) < gone_at_ms then
  redis.call('PEXPIREAT', KEYS[1], gone_at_ms)
end
if redis.call('PEXPIRETIME', KEYS[2]) < gone_at_ms then
  redis.call('PEXPIREAT', KEYS[2], gone_at_ms)
end
return {'RENEWED', 'expires_at_ms', expires_at_ms}
