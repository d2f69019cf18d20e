-- Decides whether something may happen under one or more limits. All are charged, or none.
-- KEYS: 1 request marker; 2 and on: one key per limit
-- ARGV: 1 request_ttl_ms; 2 charge, an id that no other call has; 3 TAKE or PEEK; 4 cost;
--   then four per limit:
--   kind (WINDOW, QUOTA, SLIDING, BUCKET, LOG or CONCURRENCY), max,
--   window_ms (of a QUOTA: HOUR, DAY, WEEK or MONTH; of a CONCURRENCY: how long a place is held),
--   extra (of a BUCKET: burst; of a QUOTA: minutes to add to UTC; else 0)
-- Replies: ALLOWED charge (its id, a slash and the cost), limits; DENIED retry_after_ms, limits.
--   limits has four numbers per limit: remaining, reset_ms, retry_after_ms (0: not this one
--   denies), window (for a refund)
-- Errors: INVALID charge, mode, cost, limits, kind, max, window_ms, extra
-- Notes: a PEEK writes nothing, and takes 0 as request_ttl_ms. A denial is not remembered. Under a
--   LOG or CONCURRENCY a charge counts once, however often it is made; no two limits share a key.
local floor, ceil = math.floor, math.ceil
local CAPACITY_US_MAX = 2 ^ 52
local charge, mode = ARGV[2], ARGV[3]
local cost = whole(ARGV[4], 1, 1e9)
local count = #KEYS - 1
if not charge or #charge == 0 or #charge > 64 then return refuse('charge') end
if mode ~= 'TAKE' and mode ~= 'PEEK' then return refuse('mode') end
if not cost then return refuse('cost') end
if count < 1 or count > 16 or #ARGV ~= 4 + 4 * count then return refuse('limits') end

local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now = floor(now_us / 1000)
-- Times of a bucket count from 2025, so that a double holds them to a hundredth of a microsecond.
local since_us = now_us - 1735689600000000

-- How long the present hour, day, week or month still lasts. Months until February 2100.
local function period_rest(period, offset_min)
  local there = now + offset_min * 60000
  if period == 'MONTH' then
    local day = floor(there / 86400000) - 11017 -- since March 1, 2000
    local within = day % 1461
    local year = math.min(floor(within / 365), 3)
    local of_year = within - 365 * year
    local month = floor((5 * of_year + 2) / 153)
    local next_month = floor((153 * (month + 1) + 2) / 5)
    if month == 11 then next_month = year == 3 and 366 or 365 end
    return (next_month - of_year) * 86400000 - there % 86400000
  end
  local length = period == 'HOUR' and 3600000 or period == 'DAY' and 86400000 or 604800000
  -- Weeks begin on Monday; 1970 began on a Thursday.
  if period == 'WEEK' then there = there + 3 * 86400000 end
  return length - there % length
end

-- How many entries this charge has already, of those that it would make: it was charged before.
local function own_entries(key)
  local own = 0
  for entry = 1, mode == 'TAKE' and cost or 0 do
    local until_ms = tonumber(redis.call('ZSCORE', key, charge .. ':' .. entry))
    if not until_ms or until_ms <= now then break end
    own = entry
  end
  return own
end

-- What stands in the way of `cost`: remaining before it, reset_ms, retry_after_ms, window; whether
-- what is stored limits for longer than a window, as after a clock was set back; then what `take`
-- has to know. It writes nothing.
local function look(key, kind, max, window, extra)
  if kind == 'BUCKET' then
    local interval = window * 1000 / max
    local capacity = extra * interval
    local ahead = (tonumber(redis.call('GET', key)) or 0) - since_us
    local is_wrong = ahead > capacity + 1000
    ahead = math.max(math.min(ahead, capacity), 0)
    local over = ahead + cost * interval - capacity
    -- Sums of intervals are rounded; a hundredth of one decides nothing.
    local wait = over > interval / 100 and ceil(over / 1000) or 0
    local left = floor((capacity - ahead) / interval + 0.01)
    return left, ceil(ahead / 1000), wait, now, is_wrong, ahead, interval
  elseif kind == 'WINDOW' or kind == 'QUOTA' then
    local length = kind == 'QUOTA' and period_rest(window, extra) or window
    local stored = redis.call('GET', key)
    -- What is no number counts as nothing, and is written anew.
    if stored and not whole(stored, -9e15, 9e15) then stored = nil end
    local used, rest = tonumber(stored) or 0, stored and redis.call('PTTL', key) or length
    -- Without a TTL it would limit for ever.
    local is_wrong = rest < 0 or rest > length
    if is_wrong then rest = length end
    local wait = used + cost > max and math.max(rest, 1) or 0
    return max - used, rest, wait, now + rest, is_wrong, stored
  elseif kind == 'SLIDING' then
    local index = floor(now / window)
    local stored = redis.call('HMGET', key, 'window', 'count', 'before')
    local used, before = tonumber(stored[2]) or 0, tonumber(stored[3]) or 0
    local gone = index - (tonumber(stored[1]) or index)
    if gone == 1 then
      used, before = 0, used
    elseif gone > 1 then
      used, before = 0, 0
    end
    local rest = (index + 1) * window - now
    local weighed = before * rest / window
    local wait = 0
    if used + cost > max then
      -- In the next window, when enough of this one has slid out.
      wait = rest + math.max(0, ceil(window - (max - cost) * window / used))
    elseif weighed + used + cost > max then
      wait = math.max(1, ceil(rest - (max - used - cost) * window / before))
    end
    local reset = used > 0 and rest + window or before > 0 and rest or 0
    return floor(max - used - weighed), reset, wait, index, gone < 0, used, before, rest
  else
    local live = string.format('(%.0f', now)
    local used = redis.call('ZCOUNT', key, live, '+inf')
    local reset, wait, is_wrong = 0, 0, false
    local left, own = max - used, own_entries(key)
    local cost = cost - own
    if used > 0 then
      local newest = redis.call('ZREVRANGE', key, 0, 0, 'WITHSCORES')
      reset = newest[2] - now
    end
    if cost > 0 and used + cost > max then
      local nth = math.min(used + cost - max, used) - 1
      local entry = redis.call('ZRANGEBYSCORE', key, live, '+inf', 'WITHSCORES', 'LIMIT', nth, 1)
      wait = math.max(1, (entry[2] or now + window) - now)
      is_wrong = wait > window
      wait = math.min(wait, window)
    end
    return left + own, math.min(reset, window), wait, now, is_wrong
  end
end

-- Charges it. Replies with the new reset_ms.
local function take(key, kind, window, seen)
  if kind == 'BUCKET' then
    local ahead = seen[6] + cost * seen[7]
    local reset = ceil(ahead / 1000)
    redis.call('SET', key, string.format('%.17g', since_us + ahead), 'PX', reset + 1)
    return reset
  elseif kind == 'WINDOW' or kind == 'QUOTA' then
    if seen[6] then
      redis.call('INCRBY', key, cost)
      if seen[5] then redis.call('PEXPIRE', key, seen[2]) end
    else
      redis.call('SET', key, cost, 'PX', seen[2])
    end
    return seen[2]
  elseif kind == 'SLIDING' then
    redis.call('HSET', key, 'window', seen[4], 'count', seen[6] + cost, 'before', seen[7])
    redis.call('PEXPIRE', key, seen[8] + window)
    return seen[8] + window
  else
    redis.call('ZREMRANGEBYSCORE', key, '-inf', now)
    for entry = 1, cost do
      redis.call('ZADD', key, 'NX', now + window, charge .. ':' .. entry)
    end
    if redis.call('PTTL', key) < window then redis.call('PEXPIRE', key, window) end
    return window
  end
end

-- What would limit for longer than a window limits for one from now.
local function mend(key, kind, window, seen)
  if kind == 'BUCKET' then
    redis.call('SET', key, string.format('%.17g', since_us + seen[6]), 'PX', seen[2] + 1)
  elseif kind == 'WINDOW' or kind == 'QUOTA' then
    redis.call('PEXPIRE', key, seen[2])
  elseif kind == 'SLIDING' then
    redis.call('HSET', key, 'window', seen[4])
    redis.call('PEXPIRE', key, seen[8] + window)
  else
    local last = now + window
    local beyond = string.format('(%.0f', last)
    for _, entry in ipairs(redis.call('ZRANGEBYSCORE', key, beyond, '+inf', 'LIMIT', 0, 10000)) do
      redis.call('ZADD', key, last, entry)
    end
    redis.call('PEXPIRE', key, window)
  end
end

-- The largest maximum of a kind.
local function max_of(kind)
  if kind == 'BUCKET' then return 1e6 end
  if kind == 'WINDOW' or kind == 'SLIDING' then return 1e9 end
  if kind == 'LOG' or kind == 'CONCURRENCY' then return 1e4 end
  return kind == 'QUOTA' and 1e15
end

local seen, rules, is_given = {}, {}, {}
local wait_max = 0
for i = 1, count do
  local at = 4 * i
  local kind, window, extra = ARGV[at + 1], ARGV[at + 3], ARGV[at + 4]
  if is_given[KEYS[i + 1]] then return refuse('limits') end
  is_given[KEYS[i + 1]] = true
  local most = max_of(kind)
  if not most then return refuse('kind') end
  local max = whole(ARGV[at + 2], 1, most)
  if not max then return refuse('max') end
  if kind == 'QUOTA' then
    if window ~= 'HOUR' and window ~= 'DAY' and window ~= 'WEEK' and window ~= 'MONTH' then
      return refuse('window_ms')
    end
    extra = whole(extra, -1440, 1440)
  else
    window = whole(window, 1, 1e12)
    if not window then return refuse('window_ms') end
    if kind == 'BUCKET' then
      -- Sums of microseconds are exact up to there.
      extra = whole(extra, 1, 1e6)
      if extra and extra * window * 1000 / max > CAPACITY_US_MAX then return refuse('extra') end
    else
      extra = extra == '0' and 0
    end
  end
  if not extra then return refuse('extra') end
  if cost > (kind == 'BUCKET' and extra or max) then return refuse('cost') end
  rules[i] = {kind, max, window, extra}
end
for i = 1, count do
  local rule = rules[i]
  local found = {look(KEYS[i + 1], rule[1], rule[2], rule[3], rule[4])}
  seen[i] = found
  if found[3] > wait_max then wait_max = found[3] end
end

local is_taken = mode == 'TAKE' and wait_max == 0
local limits = {}
for i = 1, count do
  local rule, found, at = rules[i], seen[i], 4 * i
  local left, reset = found[1], found[2]
  if is_taken then
    reset = take(KEYS[i + 1], rule[1], rule[3], found)
    left = left - cost
    if rule[1] == 'BUCKET' then found[4] = now + reset end
  elseif mode == 'TAKE' and found[5] then
    mend(KEYS[i + 1], rule[1], rule[3], found)
  end
  limits[at - 3] = left > 0 and left or 0
  limits[at - 2], limits[at - 1], limits[at] = reset, found[3], found[4]
end
if wait_max > 0 then
  return {'DENIED', 'retry_after_ms', wait_max, 'limits', limits}, true
end
return {'ALLOWED', 'charge', charge .. '/' .. ARGV[4], 'limits', limits}, mode == 'PEEK'
