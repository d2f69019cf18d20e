-- The latest items, the last one first.
-- KEYS: 1 the list
-- ARGV: 1 count
-- Replies: OK items
-- Errors: INVALID count
local count = whole(ARGV[1], 1, 10000)
if not count then return refuse('count') end
return {'OK', 'items', redis.call('LRANGE', KEYS[1], 0, count - 1)}
