-- Adds an entry to a work stream.
-- KEYS: 1 request marker; 2 the stream
-- ARGV: 1 request_ttl_ms; 2 payload; 3 capacity; 4 ttl_ms
-- Replies: ADDED id; FULL
-- Errors: INVALID capacity, ttl_ms
local capacity, ttl_ms = whole(ARGV[3], 1, 1e9), whole(ARGV[4], 1, TTL_MAX)
if not capacity then return refuse('capacity') end
if not ttl_ms then return refuse('ttl_ms') end

if redis.call('XLEN', KEYS[2]) >= capacity then
  return {'FULL'}, true
end
if redis.call('EXISTS', KEYS[2]) == 0 then
  redis.call('XGROUP', 'CREATE', KEYS[2], GROUP, '0', 'MKSTREAM')
end
local id = redis.call('XADD', KEYS[2], '*', 'payload', ARGV[2])
keep(KEYS[2], ttl_ms)
return {'ADDED', 'id', id}
