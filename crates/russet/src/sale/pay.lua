-- Makes a reservation final.
-- KEYS: 1 sale; 2 orders; 3 holds; 4 outbox
-- ARGV: 1 user; 2 order
-- Replies: PAID; EXPIRED (the item went back, or the order was cancelled); LOST (the store has lost
--   the sale: nothing was changed)
-- Errors: CORRUPT order
local sale, orders, holds, outbox = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local user = ARGV[1]
local order, is_corrupt = read_order(orders, user)
if is_corrupt then return redis.error_reply('CORRUPT order') end
if not order or order.id ~= ARGV[2] then
  return {'EXPIRED'}
end
if order.state == 'paid' then
  return {'PAID'}
end
-- Keys that are not what they should be fail here, before anything is written.
redis.call('ZCARD', holds)
redis.call('XLEN', outbox)
local now, reply = now_ms(), nil
local at = keep_until(sale, now)
if not at then
  return {'LOST'}
end
if order.expires_ms <= now then
  give_back(sale, orders, holds, outbox, user, order, 'expired')
  reply = {'EXPIRED'}
else
  order.state, order.expires_ms = 'paid', 0
  write_order(orders, user, order)
  redis.call('ZREM', holds, user)
  redis.call('HINCRBY', sale, 'held', -1)
  redis.call('HINCRBY', sale, 'paid', 1)
  report(outbox, 'paid', user, order)
  reply = {'PAID'}
end
for i = 1, #KEYS do
  redis.call('PEXPIREAT', KEYS[i], at)
end
return reply
