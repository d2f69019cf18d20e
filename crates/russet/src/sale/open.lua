-- Opens a sale, if it was not opened before. If the store has lost it but not its orders, what they
-- have is not sold again.
-- KEYS: 1 sale; 2 orders; 3 holds
-- ARGV: 1 stock; 2 opens_ms (0: now); 3 closes_ms (0: after open_for_ms); 4 open_for_ms;
--   5 hold_ms (0: an order is final); 6 keep_ms; 7 outbox_max
-- Replies: OPENED; EXISTS
-- Errors: INVALID stock, opens_ms, closes_ms, open_for_ms, hold_ms, keep_ms, outbox_max
local sale, stock, opens_ms = KEYS[1], whole(ARGV[1], 1, 1e9), whole(ARGV[2], 0, 1e14)
local closes_ms, open_for_ms = whole(ARGV[3], 0, 1e14), whole(ARGV[4], 0, 1e12)
local hold_ms, keep_ms = whole(ARGV[5], 0, 1e12), whole(ARGV[6], 1, 1e12)
local outbox_max = whole(ARGV[7], 1, 1e9)
if not stock then return refuse('stock') end
if not opens_ms then return refuse('opens_ms') end
if not closes_ms then return refuse('closes_ms') end
if not open_for_ms then return refuse('open_for_ms') end
if not hold_ms then return refuse('hold_ms') end
if not keep_ms then return refuse('keep_ms') end
if not outbox_max then return refuse('outbox_max') end
local now = now_ms()
if opens_ms == 0 then opens_ms = now end
if closes_ms == 0 then closes_ms = opens_ms + open_for_ms end
if closes_ms <= now or closes_ms <= opens_ms then return refuse('closes_ms') end

if redis.call('EXISTS', sale) == 1 then
  return {'EXISTS'}
end
local sold, held = redis.call('HLEN', KEYS[2]), redis.call('ZCARD', KEYS[3])
if held < sold and hold_ms > 0 then
  -- The reservations were lost too: the orders say which they are.
  local cursor = '0'
  repeat
    local page = redis.call('HSCAN', KEYS[2], cursor, 'COUNT', 1000)
    cursor = page[1]
    for i = 1, #page[2], 2 do
      local order = read_order(KEYS[2], page[2][i])
      if order and order.state == 'held' then
        redis.call('ZADD', KEYS[3], 'NX', order.expires_ms, page[2][i])
      end
    end
  until cursor == '0'
  held = redis.call('ZCARD', KEYS[3])
end
redis.call('HSET', sale, 'stock', math.max(stock - sold, 0), 'total', stock, 'opens_ms', opens_ms,
  'closes_ms', closes_ms, 'hold_ms', hold_ms, 'keep_ms', keep_ms, 'outbox_max', outbox_max)
if sold > 0 then
  redis.call('HSET', sale, 'held', math.min(held, sold), 'paid', sold - math.min(held, sold))
end
local at = closes_ms + hold_ms + keep_ms
for i = 1, #KEYS do
  redis.call('PEXPIREAT', KEYS[i], at)
end
return {'OPENED'}
