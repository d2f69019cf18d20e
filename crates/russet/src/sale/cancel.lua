-- Gives an order back, reserved or paid: its item is on sale again, and its user may buy again.
-- KEYS: 1 sale; 2 orders; 3 holds; 4 outbox
-- ARGV: 1 user; 2 order
-- Replies: CANCELLED; GONE (it is cancelled already, or its reservation is over); LOST (the store has
--   lost the sale: nothing was changed)
-- Errors: CORRUPT order
local sale, orders, holds, outbox = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local order, is_corrupt = read_order(orders, ARGV[1])
if is_corrupt then return redis.error_reply('CORRUPT order') end
if not order or order.id ~= ARGV[2] then
  return {'GONE'}
end
-- Keys that are not what they should be fail here, before anything is written.
redis.call('ZCARD', holds)
redis.call('XLEN', outbox)
local now = now_ms()
local at = keep_until(sale, now)
if not at then
  return {'LOST'}
end
-- A reservation that is over comes back as what it is, and is not cancelled.
local is_over = order.state == 'held' and order.expires_ms <= now
give_back(sale, orders, holds, outbox, ARGV[1], order, is_over and 'expired' or 'cancelled')
for i = 1, #KEYS do
  redis.call('PEXPIREAT', KEYS[i], at)
end
return {is_over and 'GONE' or 'CANCELLED'}
