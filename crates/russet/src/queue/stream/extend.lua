-- The holder of an entry of a work stream says that it still works on it.
-- KEYS: 1 the stream
-- ARGV: 1 receipt; 2 ttl_ms; 3 optional: visibility_ms, for which the entry is kept from now on
-- Replies: EXTENDED; STALE (it was given back, delivered again, or ended)
-- Errors: INVALID receipt, ttl_ms, visibility_ms
local id, delivery = read_receipt(ARGV[1])
local ttl_ms, visibility_ms = whole(ARGV[2], 1, TTL_MAX), whole(ARGV[3] or '0', 0, TTL_MAX)
if not id then return refuse('receipt') end
if not ttl_ms then return refuse('ttl_ms') end
if not visibility_ms then return refuse('visibility_ms') end
if delivery_of(KEYS[1], id) ~= delivery then
  return {'STALE'}
end
redis.call('XCLAIM', KEYS[1], GROUP, CONSUMER, 0, id, 'IDLE', 0, 'JUSTID')
keep(KEYS[1], visibility_ms + ttl_ms)
return {'EXTENDED'}
