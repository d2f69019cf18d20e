-- The streak of a user. One who has not signed in yet today still has that of yesterday.
-- KEYS: 1 the streak
-- ARGV: 1 start_ms and 2 end_ms of the day; 3 number of the day since 1970
-- Replies: OK current, longest, total, signed (1 if signed in today); PERIOD now_ms
-- Errors: INVALID period, day
local start_ms, end_ms = whole(ARGV[1], -1e9, 1e15), whole(ARGV[2], 1, 1e15)
local day = whole(ARGV[3], 0, 1e7)
if not start_ms or not end_ms or end_ms <= start_ms then return refuse('period') end
if not day then return refuse('day') end
local now = now_ms()
if now < start_ms or now >= end_ms then return {'PERIOD', 'now_ms', now} end
local kept = redis.call('HMGET', KEYS[1], 'last_day', 'current', 'longest', 'total')
local last_day, current = tonumber(kept[1] or -2), tonumber(kept[2] or 0)
if last_day < day - 1 then current = 0 end
return {'OK', 'current', current, 'longest', tonumber(kept[3] or 0), 'total',
  tonumber(kept[4] or 0), 'signed', last_day >= day and 1 or 0}
