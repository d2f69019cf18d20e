-- Gives back a charge, or part of it, once: as far as it still counts.
-- KEYS: 1 request marker, of the charge's id; 2 marker of the request that was charged;
--   3 and on: one key per limit
-- ARGV: 1 request_ttl_ms; 2 charge, as the reply gave it; 3 amount, at most its cost; then four per
--   limit: kind, max, window_ms (as they were charged), window (as the charge's reply gave it)
-- Replies: REFUNDED returned (a number per limit: 0 if that charge has run out by itself)
-- Errors: INVALID charge, amount, limits, kind, max, window_ms, window
-- Notes: a request that was given back as a whole may be charged anew afterwards. Nothing ever has
--   more than its max left.
local floor = math.floor
local charge, cost = string.match(ARGV[2], '^(.+)/(%d+)$')
cost = whole(cost, 1, 1e9)
local amount = cost and whole(ARGV[3], 1, cost)
local count = #KEYS - 2
if not cost or #charge > 64 then return refuse('charge') end
if not amount then return refuse('amount') end
if count < 1 or count > 16 or #ARGV ~= 3 + 4 * count then return refuse('limits') end
local KINDS = {WINDOW = 1, QUOTA = 1, SLIDING = 1, BUCKET = 1, LOG = 1, CONCURRENCY = 1}
local PERIODS = {HOUR = 3600000, DAY = 86400000, WEEK = 604800000, MONTH = 2419200000}
for i = 1, count do
  local at = 4 * i - 1
  if not KINDS[ARGV[at + 1]] then return refuse('kind') end
  if not whole(ARGV[at + 2], 1, 1e15) then return refuse('max') end
  if not (PERIODS[ARGV[at + 3]] or whole(ARGV[at + 3], 1, 1e12)) then return refuse('window_ms') end
  if not whole(ARGV[at + 4], 0, 1e15) then return refuse('window') end
end

local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now = floor(now_us / 1000)

local function give_back(key, kind, max, length, window)
  if kind == 'WINDOW' or kind == 'QUOTA' then
    local used = tonumber(redis.call('GET', key)) or 0
    local rest = redis.call('PTTL', key)
    -- The next window ends a whole length later.
    if used <= 0 or rest < 0 or math.abs(now + rest - window) > length / 2 then return 0 end
    local part = math.min(amount, used)
    redis.call('DECRBY', key, part)
    return part
  elseif kind == 'SLIDING' then
    local stored = redis.call('HMGET', key, 'window', 'count', 'before')
    local gone = (tonumber(stored[1]) or -2) - window
    local field = gone == 0 and 'count' or gone == 1 and 'before'
    if not field then return 0 end
    local part = math.min(amount, tonumber(stored[gone == 0 and 2 or 3]) or 0)
    if part > 0 then redis.call('HINCRBY', key, field, -part) end
    return part
  elseif kind == 'BUCKET' then
    local since_us = now_us - 1735689600000000
    local ahead = (tonumber(redis.call('GET', key)) or 0) - since_us
    -- What came first drains first: `window` is when the last of this charge has.
    local interval = length * 1000 / max
    local part = math.min(amount * interval, window * 1000 - now_us)
    if ahead <= 0 or part <= 0 then return 0 end
    ahead = ahead - part
    if ahead <= 0 then
      redis.call('DEL', key)
    else
      local full_at = string.format('%.17g', since_us + ahead)
      redis.call('SET', key, full_at, 'PX', math.ceil(ahead / 1000) + 1)
    end
    return math.min(amount, math.ceil(part / interval - 0.01))
  end
  local part = 0
  for entry = 1, amount do
    part = part + redis.call('ZREM', key, charge .. ':' .. entry)
  end
  return part
end

-- Keys that are not what they should be fail here, before anything is written.
for i = 1, count do
  local kind, key = ARGV[4 * i], KEYS[i + 2]
  if kind == 'SLIDING' then
    redis.call('HLEN', key)
  elseif kind == 'LOG' or kind == 'CONCURRENCY' then
    redis.call('ZCARD', key)
  else
    redis.call('GET', key)
  end
end
local returned = {}
for i = 1, count do
  local at = 4 * i - 1
  local length = PERIODS[ARGV[at + 3]] or tonumber(ARGV[at + 3])
  local max, window = tonumber(ARGV[at + 2]), tonumber(ARGV[at + 4])
  returned[i] = give_back(KEYS[i + 2], ARGV[at + 1], max, length, window)
end
if amount == cost then redis.call('DEL', KEYS[2]) end
return {'REFUNDED', 'returned', returned}
