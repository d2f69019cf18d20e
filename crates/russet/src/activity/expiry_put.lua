-- Puts an item with its state and its deadline, or replaces both.
-- KEYS: 1 deadlines by item; 2 states by item
-- ARGV: 1 item; 2 state; 3 ttl_ms of the item; 4 items_max; 5 grace_ms, how long items outlive
-- their deadline if nobody handles them
-- Replies: NEW expires_at_ms; REPLACED expires_at_ms; FULL
-- Errors: INVALID ttl_ms, items_max, grace_ms
local ttl_ms, items_max = whole(ARGV[3], 1, 1e13), whole(ARGV[4], 1, 1e9)
local grace_ms = whole(ARGV[5], 1, 1e13)
if not ttl_ms then return refuse('ttl_ms') end
if not items_max then return refuse('items_max') end
if not grace_ms then return refuse('grace_ms') end
-- A key that is not what it should be fails here, before anything is written.
redis.call('HLEN', KEYS[2])
-- States whose deadlines were lost belong to nothing.
if redis.call('ZCARD', KEYS[1]) == 0 then redis.call('UNLINK', KEYS[2]) end
local is_there = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not is_there and redis.call('ZCARD', KEYS[1]) >= items_max then return {'FULL'} end
local expires_at_ms = now_ms() + ttl_ms
redis.call('ZADD', KEYS[1], expires_at_ms, ARGV[1])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
local gone_at_ms = expires_at_ms + grace_ms
if redis.call('PEXPIRETIME', KEYS[1]) < gone_at_ms then
  redis.call('PEXPIREAT', KEYS[1], gone_at_ms)
end
if redis.call('PEXPIRETIME', KEYS[2]) < gone_at_ms then
  redis.call('PEXPIREAT', KEYS[2], gone_at_ms)
end
return {is_there and 'REPLACED' or 'NEW', 'expires_at_ms', expires_at_ms}
