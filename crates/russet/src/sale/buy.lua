-- Takes one item for a user who has none, and reports the order.
-- KEYS: 1 request marker; 2 sale; 3 orders; 4 holds; 5 outbox
-- ARGV: 1 request_ttl_ms; 2 user; 3 order (the id that a new order gets)
-- Replies: ORDERED order, expires_in_ms (-1: it is final); ALREADY order, state, expires_in_ms;
--   SOLD_OUT held (reservations that may still come back); CLOSED opens_in_ms (-1: it is over);
--   BUSY (the database has too many orders to take in); MISSING
-- Errors: INVALID user, order; CORRUPT order
local sale, orders, holds, outbox = KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local user, id = ARGV[2], ARGV[3]
if user == '' then return refuse('user') end
if id == '' then return refuse('order') end

local set = redis.call('HMGET', sale, 'stock', 'opens_ms', 'closes_ms', 'hold_ms', 'outbox_max')
local stock, opens_ms, closes_ms = tonumber(set[1]), tonumber(set[2]), tonumber(set[3])
local hold_ms, outbox_max = tonumber(set[4]), tonumber(set[5])
if not stock or not opens_ms then
  return {'MISSING'}, true
end
local now = now_ms()
local order, is_corrupt = read_order(orders, user)
if is_corrupt then return redis.error_reply('CORRUPT order') end
if order and (order.state == 'paid' or order.expires_ms > now) then
  local left_ms = order.state == 'paid' and -1 or order.expires_ms - now
  return {'ALREADY', 'order', order.id, 'state', order.state, 'expires_in_ms', left_ms}, true
end
if now < opens_ms then
  return {'CLOSED', 'opens_in_ms', opens_ms - now}, true
end
if now >= closes_ms then
  return {'CLOSED', 'opens_in_ms', -1}, true
end
if redis.call('XLEN', outbox) >= outbox_max then
  return {'BUSY'}, true
end
-- A key that is not what it should be fails here, before anything is written.
redis.call('ZCARD', holds)
local is_reclaimed = false
if order then
  -- The reservation of this user is over.
  give_back(sale, orders, holds, outbox, user, order, 'expired')
  stock, is_reclaimed = stock + 1, true
end
if stock <= 0 then
  stock, is_reclaimed = reclaim(sale, orders, holds, outbox, now, RECLAIM_MAX)
end
local reply, is_unchanged
if stock <= 0 then
  reply = {'SOLD_OUT', 'held', redis.call('ZCARD', holds)}
  is_unchanged = true
else
  order = {id = id, state = 'paid', expires_ms = 0, made_ms = now}
  if hold_ms > 0 then
    order.state, order.expires_ms = 'held', now + hold_ms
    redis.call('ZADD', holds, order.expires_ms, user)
  end
  write_order(orders, user, order)
  redis.call('HINCRBY', sale, 'stock', -1)
  redis.call('HINCRBY', sale, order.state, 1)
  report(outbox, 'ordered', user, order)
  reply = {'ORDERED', 'order', id, 'expires_in_ms', hold_ms > 0 and hold_ms or -1}
end
if not is_unchanged or is_reclaimed then
  local at = keep_until(sale, now)
  for i = 2, #KEYS do
    redis.call('PEXPIREAT', KEYS[i], at)
  end
end
return reply, is_unchanged
