-- Counts how a sale stands, in constant time.
-- KEYS: 1 sale; 2 outbox
-- Replies: OK total, stock, held, paid, cancelled, expired, backlog; MISSING
local set = redis.call('HMGET', KEYS[1], 'total', 'stock', 'held', 'paid', 'cancelled', 'expired')
if not set[1] then
  return {'MISSING'}
end
for i = 1, 6 do
  set[i] = tonumber(set[i] or 0)
end
return {
  'OK',
  'total', set[1], 'stock', set[2], 'held', set[3], 'paid', set[4],
  'cancelled', set[5], 'expired', set[6],
  'backlog', redis.call('XLEN', KEYS[2]),
}
