-- Sets a line item of a draft, or removes it, and brings the sums of the draft in line.
-- KEYS: 1 request marker; 2 the draft; 3 its items
-- ARGV: 1 request_ttl_ms; 2 sku; 3 quantity, 0 removes it; 4 unit_minor; 5 expected version, or
-- empty; 6 items_max; 7 ttl_ms
-- Replies: OK version, subtotal_minor, total_minor; MISSING; CONFLICT version; FULL; CORRUPT
-- Errors: INVALID sku, quantity, unit_minor, expected, items_max, ttl_ms, total
local EXACT_MAX = 9007199254740991
local quantity, unit = whole(ARGV[3], 0, 1e6), whole(ARGV[4], 0, 1e12)
local items_max, ttl_ms = whole(ARGV[6], 1, 10000), whole(ARGV[7], 1, 1e13)
if ARGV[2] == '' then return refuse('sku') end
if not quantity then return refuse('quantity') end
if not unit then return refuse('unit_minor') end
if ARGV[5] ~= '' and not whole(ARGV[5], 0, EXACT_MAX) then return refuse('expected') end
if not items_max then return refuse('items_max') end
if not ttl_ms then return refuse('ttl_ms') end

local kept = redis.call('HMGET', KEYS[2], 'version', 'subtotal_minor', 'discount_minor',
  'tax_minor', 'item_count')
if not kept[1] then return {'MISSING'}, true end
local version = tonumber(kept[1])
if ARGV[5] ~= '' and tonumber(ARGV[5]) ~= version then
  return {'CONFLICT', 'version', version}, true
end
local subtotal, discount, tax = tonumber(kept[2]), tonumber(kept[3]), tonumber(kept[4])
if not version or not subtotal or not discount or not tax then return {'CORRUPT'}, true end
-- Sums of items that were lost are no sums.
if tonumber(kept[5]) ~= redis.call('HLEN', KEYS[3]) then return {'CORRUPT'}, true end
local before = redis.call('HGET', KEYS[3], ARGV[2])
if not before and quantity > 0 and redis.call('HLEN', KEYS[3]) >= items_max then
  return {'FULL'}, true
end
if before then
  local was_quantity, was_unit = string.match(before, '^(%d+):(%d+)$')
  if not was_quantity then return {'CORRUPT'}, true end
  subtotal = subtotal - tonumber(was_quantity) * tonumber(was_unit)
end
subtotal = subtotal + quantity * unit
-- A discount is never more than what it is taken from.
discount = math.min(discount, subtotal)
local total = subtotal - discount + tax
if subtotal > EXACT_MAX or total > EXACT_MAX then return refuse('total') end

if quantity > 0 then
  redis.call('HSET', KEYS[3], ARGV[2], string.format('%.0f:%.0f', quantity, unit))
else
  redis.call('HDEL', KEYS[3], ARGV[2])
end
redis.call('HSET', KEYS[2], 'version', version + 1, 'subtotal_minor', subtotal, 'discount_minor',
  discount, 'total_minor', total, 'item_count', redis.call('HLEN', KEYS[3]), 'updated_at_ms',
  now_ms())
redis.call('PEXPIRE', KEYS[2], ttl_ms)
redis.call('PEXPIRE', KEYS[3], ttl_ms)
return {'OK', 'version', version + 1, 'subtotal_minor', subtotal, 'total_minor', total}
