-- Removes items that are due, with their states, and gives them to one caller.
-- KEYS: 1 request marker; 2 deadlines by item; 3 states by item
-- ARGV: 1 request_ttl_ms; 2 count
-- Replies: OK items (item, expires_at_ms, state, ...)
-- Errors: INVALID count
local count = whole(ARGV[2], 1, 1000)
if not count then return refuse('count') end
local items = redis.call('ZRANGE', KEYS[2], '-inf', now_ms(), 'BYSCORE', 'LIMIT', 0, count,
  'WITHSCORES')
local found = {}
for i = 1, #items, 2 do
  local state = redis.call('HGET', KEYS[3], items[i]) or ''
  found[#found + 1] = items[i]
  found[#found + 1] = items[i + 1]
  found[#found + 1] = state
  redis.call('ZREM', KEYS[2], items[i])
  redis.call('HDEL', KEYS[3], items[i])
end
return {'OK', 'items', found}, #found == 0
