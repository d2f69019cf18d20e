-- Ends an entry of a work stream that was done by whoever holds its last delivery.
-- KEYS: 1 request marker; 2 the stream
-- ARGV: 1 request_ttl_ms; 2 receipt
-- Replies: ACKED; STALE (it was given back, or delivered again); GONE (it was ended already)
-- Errors: INVALID receipt
local id, delivery = read_receipt(ARGV[2])
if not id then return refuse('receipt') end

local count = delivery_of(KEYS[2], id)
if count ~= delivery then
  return {count and 'STALE' or 'GONE'}, true
end
remove(KEYS[2], id)
return {'ACKED'}
