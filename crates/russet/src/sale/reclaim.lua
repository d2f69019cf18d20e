-- Puts the items of reservations whose time is over on sale again.
-- KEYS: 1 sale; 2 orders; 3 holds; 4 outbox
-- ARGV: 1 limit (1 to 100)
-- Replies: OK reclaimed
-- Errors: INVALID limit
local sale, orders, holds, outbox = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local limit = whole(ARGV[1], 1, RECLAIM_MAX)
if not limit then return refuse('limit') end
-- Keys that are not what they should be fail here, before anything is written.
redis.call('HLEN', orders)
redis.call('XLEN', outbox)
local now = now_ms()
local at = keep_until(sale, now)
if not at then
  return {'OK', 'reclaimed', 0}
end
local count, is_changed = reclaim(sale, orders, holds, outbox, now, limit)
if is_changed then
  for i = 1, #KEYS do
    redis.call('PEXPIREAT', KEYS[i], at)
  end
end
return {'OK', 'reclaimed', count}
