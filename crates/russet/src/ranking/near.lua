-- Finds where a member of a leaderboard stands, or where an entry of another shard would, and who
-- stands around it.
-- KEYS: 1 the board; 2 entries by member
-- ARGV: 1 member, or empty to look for an entry; 2 entry; 3 its score; 4 radius; 5 start_ms and
-- 6 end_ms of the present period, end_ms 0 for any
-- Replies: OK entry, score, above (how many have a higher score), before (how many stand before
-- it), first (place of the first of the entries, from 0), entries (entry, score, ...); MISSING;
-- PERIOD now_ms
-- Errors: INVALID radius, score, period
local SCORE_MAX = 9007199254740991
local member, entry, score = ARGV[1], ARGV[2], whole(ARGV[3], -SCORE_MAX, SCORE_MAX)
local radius = whole(ARGV[4], 0, 500)
local start_ms, end_ms = whole(ARGV[5], 0, 1e15), whole(ARGV[6], 0, 1e15)
if not radius then return refuse('radius') end
if member == '' and not score then return refuse('score') end
if not start_ms or not end_ms then return refuse('period') end
if end_ms > 0 then
  local now = now_ms()
  if now < start_ms or now >= end_ms then return {'PERIOD', 'now_ms', now} end
end

-- By bytes, as the server sorts them: `<` may follow the server's locale.
local function is_ahead(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then return x > y end
  end
  return #a > #b
end

local before
if member ~= '' then
  entry = redis.call('HGET', KEYS[2], member)
  if not entry then return {'MISSING'} end
  score = tonumber(redis.call('ZSCORE', KEYS[1], entry))
  -- The board was lost.
  if not score then return {'MISSING'} end
  before = redis.call('ZREVRANK', KEYS[1], entry)
end
local above = redis.call('ZCOUNT', KEYS[1], '(' .. string.format('%.0f', score), '+inf')
if member == '' then
  -- Between those with a higher score and those with a lower one, by halves.
  local low, high = above, redis.call('ZCOUNT', KEYS[1], string.format('%.0f', score), '+inf')
  while low < high do
    local middle = math.floor((low + high) / 2)
    local found = redis.call('ZRANGE', KEYS[1], middle, middle, 'REV')[1]
    if is_ahead(found, entry) then low = middle + 1 else high = middle end
  end
  before = low
end
local first = math.max(before - radius, 0)
local entries = redis.call('ZRANGE', KEYS[1], first, before + radius, 'REV', 'WITHSCORES')
return {'OK', 'entry', entry, 'score', score, 'above', above, 'before', before, 'first', first,
  'entries', entries}
