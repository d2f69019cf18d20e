-- Holds the places of a charge under limits of concurrency for another while, if none has run out.
-- KEYS: 1 marker of the request that was charged; 2 and on: one key per limit of concurrency
-- ARGV: 1 charge, as the reply gave it; 2 cost; then one per limit: window_ms, how long from now
-- Replies: RENEWED; LOST
-- Errors: INVALID charge, cost, limits, window_ms
local charge, charged = string.match(ARGV[1], '^(.+)/(%d+)$')
charged = whole(charged, 1, 1e4)
if not charged or #charge > 64 then return refuse('charge') end
local cost = whole(ARGV[2], 1, charged)
if not cost then return refuse('cost') end
if #KEYS < 2 or #KEYS > 17 then return refuse('limits') end
local now = now_ms()
for i = 2, #KEYS do
  if not whole(ARGV[i + 1], 1, 1e12) then return refuse('window_ms') end
  for entry = 1, cost do
    local until_ms = tonumber(redis.call('ZSCORE', KEYS[i], charge .. ':' .. entry))
    if not until_ms or until_ms <= now then return {'LOST'} end
  end
end
for i = 2, #KEYS do
  local window = tonumber(ARGV[i + 1])
  for entry = 1, cost do
    redis.call('ZADD', KEYS[i], 'XX', 'GT', now + window, charge .. ':' .. entry)
  end
  if redis.call('PTTL', KEYS[i]) < window then redis.call('PEXPIRE', KEYS[i], window) end
end
if redis.call('PTTL', KEYS[1]) >= 0 then
  redis.call('PEXPIRE', KEYS[1], ARGV[3], 'GT')
end
return {'RENEWED'}
