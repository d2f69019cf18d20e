-- Whether an id was seen, and how many ids the present bucket has.
-- KEYS: 1 present bucket; 2 bucket before it
-- ARGV: 1 id; 2 start_ms and 3 end_ms of the present bucket
-- Replies: OK seen (1 or 0), ids; PERIOD now_ms
-- Errors: INVALID period
local start_ms, end_ms = whole(ARGV[2], 0, 1e15), whole(ARGV[3], 1, 1e15)
if not start_ms or not end_ms or end_ms <= start_ms then return refuse('period') end
local now = now_ms()
if now < start_ms or now >= end_ms then return {'PERIOD', 'now_ms', now} end
local seen = redis.call('SISMEMBER', KEYS[1], ARGV[1])
if seen == 0 then seen = redis.call('SISMEMBER', KEYS[2], ARGV[1]) end
return {'OK', 'seen', seen, 'ids', redis.call('SCARD', KEYS[1])}
