-- Closes a leaderboard whose period is over: nothing changes it from then on.
-- KEYS: 1 the board; 2 mark of a closed board
-- ARGV: 1 end_ms of the period, 0 for none; 2 ttl_ms
-- Replies: CLOSED size, closed_at_ms (the first time); OPEN retry_after_ms
-- Errors: INVALID end_ms, ttl_ms
local end_ms, ttl_ms = whole(ARGV[1], 0, 1e15), whole(ARGV[2], 1, 1e13)
if not end_ms then return refuse('end_ms') end
if not ttl_ms then return refuse('ttl_ms') end
local now = now_ms()
if now < end_ms then return {'OPEN', 'retry_after_ms', end_ms - now} end
-- Keys that are not what they should be fail here, before anything is written.
local size = redis.call('ZCARD', KEYS[1])
local closed_at_ms = tonumber(redis.call('GET', KEYS[2]))
if not closed_at_ms then
  redis.call('SET', KEYS[2], now, 'PX', ttl_ms)
  closed_at_ms = now
end
return {'CLOSED', 'size', size, 'closed_at_ms', closed_at_ms}
