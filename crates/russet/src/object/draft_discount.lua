-- Sets discount or tax of a draft and brings its total in line.
-- KEYS: 1 request marker; 2 the draft; 3 its items
-- ARGV: 1 request_ttl_ms; 2 DISCOUNT or TAX; 3 amount_minor; 4 expected version, or empty; 5 ttl_ms
-- Replies: OK version, subtotal_minor, total_minor; MISSING; CONFLICT version; TOO_LARGE
-- subtotal_minor; CORRUPT
-- Errors: INVALID what, amount_minor, expected, ttl_ms, total
local EXACT_MAX = 9007199254740991
local amount, ttl_ms = whole(ARGV[3], 0, 1e15), whole(ARGV[5], 1, 1e13)
if ARGV[2] ~= 'DISCOUNT' and ARGV[2] ~= 'TAX' then return refuse('what') end
if not amount then return refuse('amount_minor') end
if ARGV[4] ~= '' and not whole(ARGV[4], 0, EXACT_MAX) then return refuse('expected') end
if not ttl_ms then return refuse('ttl_ms') end
local kept = redis.call('HMGET', KEYS[2], 'version', 'subtotal_minor', 'discount_minor',
  'tax_minor', 'item_count')
if not kept[1] then return {'MISSING'}, true end
local version = tonumber(kept[1])
if ARGV[4] ~= '' and tonumber(ARGV[4]) ~= version then
  return {'CONFLICT', 'version', version}, true
end
local subtotal, discount, tax = tonumber(kept[2]), tonumber(kept[3]), tonumber(kept[4])
if not version or not subtotal or not discount or not tax then return {'CORRUPT'}, true end
-- Sums of items that were lost are no sums.
if tonumber(kept[5]) ~= redis.call('HLEN', KEYS[3]) then return {'CORRUPT'}, true end
if ARGV[2] == 'DISCOUNT' then
  if amount > subtotal then return {'TOO_LARGE', 'subtotal_minor', subtotal}, true end
  discount = amount
else
  tax = amount
end
local total = subtotal - discount + tax
if total > EXACT_MAX then return refuse('total') end
redis.call('HSET', KEYS[2], 'version', version + 1, 'discount_minor', discount, 'tax_minor', tax,
  'total_minor', total, 'updated_at_ms', now_ms())
redis.call('PEXPIRE', KEYS[2], ttl_ms)
redis.call('PEXPIRE', KEYS[3], ttl_ms)
return {'OK', 'version', version + 1, 'subtotal_minor', subtotal, 'total_minor', total}
