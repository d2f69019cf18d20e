-- Reads a page of a leaderboard, the highest first.
-- KEYS: 1 the board
-- ARGV: 1 offset; 2 count; 3 start_ms and 4 end_ms of the present period, end_ms 0 for any
-- Replies: OK size, above (how many have a higher score than the first of the page), entries
-- (entry, score, ...); PERIOD now_ms
-- Errors: INVALID offset, count, period
local offset, count = whole(ARGV[1], 0, 1e9), whole(ARGV[2], 1, 1000)
local start_ms, end_ms = whole(ARGV[3], 0, 1e15), whole(ARGV[4], 0, 1e15)
if not offset then return refuse('offset') end
if not count then return refuse('count') end
if not start_ms or not end_ms then return refuse('period') end
if end_ms > 0 then
  local now = now_ms()
  if now < start_ms or now >= end_ms then return {'PERIOD', 'now_ms', now} end
end
local entries = redis.call('ZRANGE', KEYS[1], offset, offset + count - 1, 'REV', 'WITHSCORES')
local above = 0
if entries[2] then above = redis.call('ZCOUNT', KEYS[1], '(' .. entries[2], '+inf') end
return {'OK', 'size', redis.call('ZCARD', KEYS[1]), 'above', above, 'entries', entries}
