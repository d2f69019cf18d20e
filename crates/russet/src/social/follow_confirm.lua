-- Forgets that a change is pending, unless a later one is.
-- KEYS: 1 pending changes
-- ARGV: 1 the other; 2 version
-- Replies: OK
-- Errors: INVALID version
local confirmed = whole(ARGV[2], 0, 1e15)
if not confirmed then return refuse('version') end
local version = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]) or 0)
if version == confirmed then redis.call('ZREM', KEYS[1], ARGV[1]) end
return {'OK'}
