-- Reads the order of a user.
-- KEYS: 1 orders
-- ARGV: 1 user
-- Replies: FOUND order, state (held or paid), expires_in_ms (-1: it is final); MISSING
-- Errors: CORRUPT order
local order, is_corrupt = read_order(KEYS[1], ARGV[1])
if is_corrupt then return redis.error_reply('CORRUPT order') end
local now = now_ms()
if not order or order.state == 'held' and order.expires_ms <= now then
  return {'MISSING'}
end
local left_ms = order.state == 'paid' and -1 or order.expires_ms - now
return {'FOUND', 'order', order.id, 'state', order.state, 'expires_in_ms', left_ms}
