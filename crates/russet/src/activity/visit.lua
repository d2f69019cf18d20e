-- Counts a visitor of today, approximately.
-- KEYS: 1 visitors of the day
-- ARGV: 1 start_ms and 2 end_ms of the day; 3 retention_ms; 4 visitor
-- Replies: NEW; SEEN; PERIOD now_ms
-- Errors: INVALID period, retention_ms
local start_ms, end_ms = whole(ARGV[1], 0, 1e15), whole(ARGV[2], 1, 1e15)
local retention_ms = whole(ARGV[3], 1, 1e13)
if not start_ms or not end_ms or end_ms <= start_ms then return refuse('period') end
if not retention_ms then return refuse('retention_ms') end
local now = now_ms()
if now < start_ms or now >= end_ms then return {'PERIOD', 'now_ms', now} end
local is_new = redis.call('PFADD', KEYS[1], ARGV[4]) == 1
redis.call('PEXPIREAT', KEYS[1], end_ms + retention_ms)
return {is_new and 'NEW' or 'SEEN'}
