-- Takes a member off a leaderboard.
-- KEYS: 1 the board; 2 entries by member; 3 mark of a closed board
-- ARGV: 1 member; 2 start_ms and 3 end_ms of the period, end_ms 0 for none
-- Replies: REMOVED; MISSING; CLOSED; PERIOD now_ms
-- Errors: INVALID period
local start_ms, end_ms = whole(ARGV[2], 0, 1e15), whole(ARGV[3], 0, 1e15)
if not start_ms or not end_ms then return refuse('period') end
local now = now_ms()
if end_ms > 0 and (now < start_ms or now >= end_ms) then return {'PERIOD', 'now_ms', now} end
if redis.call('EXISTS', KEYS[3]) == 1 then return {'CLOSED'} end
local entry = redis.call('HGET', KEYS[2], ARGV[1])
if not entry then return {'MISSING'} end
redis.call('ZREM', KEYS[1], entry)
redis.call('HDEL', KEYS[2], ARGV[1])
return {'REMOVED'}
