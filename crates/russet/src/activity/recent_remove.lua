-- Takes an item off the list, or without one all of them.
-- KEYS: 1 the list
-- ARGV: 1 item, optional
-- Replies: OK removed
if ARGV[1] then return {'OK', 'removed', redis.call('LREM', KEYS[1], 0, ARGV[1])} end
local items = redis.call('LLEN', KEYS[1])
redis.call('DEL', KEYS[1])
return {'OK', 'removed', items}
