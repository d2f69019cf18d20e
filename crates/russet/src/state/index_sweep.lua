-- Removes the entries of objects whose time is over, up to a number.
-- KEYS: 1 the index; 2 the indexed value of each object; 3 until when each object lives
-- ARGV: 1 limit
-- Replies: OK removed, left
-- Errors: INVALID limit
local limit = whole(ARGV[1], 1, 1000)
if not limit then
  return refuse('limit')
end
local now = now_ms()
local dead = redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now, 'LIMIT', 0, limit)
for _, gone in ipairs(dead) do
  local was = redis.call('HGET', KEYS[2], gone)
  if was then
    redis.call('ZREM', KEYS[1], was .. '\0' .. gone)
    redis.call('HDEL', KEYS[2], gone)
  end
  redis.call('ZREM', KEYS[3], gone)
end
return {'OK', 'removed', #dead, 'left', redis.call('ZCOUNT', KEYS[3], '-inf', now)}
