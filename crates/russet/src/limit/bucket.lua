-- Decides under one bucket alone: what limit_check does for it, in less time.
-- KEYS: 1 request marker; 2 the bucket
-- ARGV: 1 request_ttl_ms; 2 charge, an id that no other call has; 3 cost; 4 max per window;
--   5 window_ms; 6 burst
-- Replies: ALLOWED charge (its id, a slash and the cost), limits; DENIED retry_after_ms, limits.
--   limits has four numbers: remaining, reset_ms, retry_after_ms, window (for a refund)
-- Errors: INVALID charge, cost, max, window_ms, burst
local charge, cost = ARGV[2], whole(ARGV[3], 1, 1e6)
local max, window, burst = whole(ARGV[4], 1, 1e6), whole(ARGV[5], 1, 1e12), whole(ARGV[6], 1, 1e6)
if not charge or #charge == 0 or #charge > 64 then return refuse('charge') end
if not max then return refuse('max') end
if not window then return refuse('window_ms') end
if not burst or burst * window * 1000 / max > 2 ^ 52 then return refuse('burst') end
if not cost or cost > burst then return refuse('cost') end
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now_ms, since_us = math.floor(now_us / 1000), now_us - 1735689600000000
local interval = window * 1000 / max
local capacity = burst * interval
local ahead = (tonumber(redis.call('GET', KEYS[2])) or 0) - since_us
local is_wrong = ahead > capacity + 1000
if ahead < 0 then
  ahead = 0
elseif ahead > capacity then
  ahead = capacity
end
local over = ahead + cost * interval - capacity
if over > interval / 100 then
  -- The clock was set back, or the bucket was larger.
  if is_wrong then
    local full_at = string.format('%.17g', since_us + ahead)
    redis.call('SET', KEYS[2], full_at, 'PX', math.ceil(ahead / 1000) + 1)
  end
  local wait = math.ceil(over / 1000)
  local left = math.floor((capacity - ahead) / interval + 0.01)
  local limits = {left, math.ceil(ahead / 1000), wait, now_ms}
  return {'DENIED', 'retry_after_ms', wait, 'limits', limits}, true
end
ahead = ahead + cost * interval
local reset = math.ceil(ahead / 1000)
redis.call('SET', KEYS[2], string.format('%.17g', since_us + ahead), 'PX', reset + 1)
local left = math.floor((capacity - ahead) / interval + 0.01)
local limits = {left > 0 and left or 0, reset, 0, now_ms + reset}
return {'ALLOWED', 'charge', charge .. '/' .. ARGV[3], 'limits', limits}
