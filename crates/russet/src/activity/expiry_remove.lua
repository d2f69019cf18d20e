-- Removes an item with its state, in one piece. With a deadline only if it still has that one.
-- KEYS: 1 deadlines by item; 2 states by item
-- ARGV: 1 item; 2 expires_at_ms that was seen, optional
-- Replies: REMOVED; RENEWED expires_at_ms; MISSING
-- Errors: INVALID expires_at_ms
if ARGV[2] and not whole(ARGV[2], 0, 1e15) then return refuse('expires_at_ms') end
local deadline = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not deadline then return {'MISSING'} end
if ARGV[2] and tonumber(ARGV[2]) ~= tonumber(deadline) then
  return {'RENEWED', 'expires_at_ms', tonumber(deadline)}
end
-- A key that is not what it should be fails here, before anything is written.
redis.call('HLEN', KEYS[2])
redis.call('ZREM', KEYS[1], ARGV[1])
redis.call('HDEL', KEYS[2], ARGV[1])
return {'REMOVED'}
