-- Items that are due, the longest due first; or one item, due or not.
-- KEYS: 1 deadlines by item; 2 states by item
-- ARGV: 1 count; 2 item, optional
-- Replies: OK items (item, expires_at_ms, state, ...), total
-- Errors: INVALID count
local count = whole(ARGV[1], 1, 1000)
if not count then return refuse('count') end
local items = {}
if ARGV[2] then
  local deadline = redis.call('ZSCORE', KEYS[1], ARGV[2])
  if deadline then items = {ARGV[2], deadline} end
else
  items = redis.call('ZRANGE', KEYS[1], '-inf', now_ms(), 'BYSCORE', 'LIMIT', 0, count,
    'WITHSCORES')
end
local found = {}
for i = 1, #items, 2 do
  local state = redis.call('HGET', KEYS[2], items[i]) or ''
  found[#found + 1] = items[i]
  found[#found + 1] = items[i + 1]
  found[#found + 1] = state
end
return {'OK', 'items', found, 'total', redis.call('ZCARD', KEYS[1])}
