-- Says what the time is, and which occurrence of a repeated job was planned last.
-- KEYS: 1 meta
-- ARGV: 1 name
-- Replies: OK now_ms, planned_ms (0: none)
local planned = redis.call('HGET', KEYS[1], 'c:' .. ARGV[1])
return {'OK', 'now_ms', now_ms(), 'planned_ms', tonumber(planned or 0)}
