-- Adds a dead letter to its work stream again.
-- KEYS: 1 request marker; 2 the stream; 3 dead
-- ARGV: 1 request_ttl_ms; 2 id; 3 capacity; 4 ttl_ms
-- Replies: REQUEUED; FULL; MISSING
-- Errors: INVALID capacity, ttl_ms
local capacity, ttl_ms = whole(ARGV[3], 1, 1e9), whole(ARGV[4], 1, TTL_MAX)
if not capacity then return refuse('capacity') end
if not ttl_ms then return refuse('ttl_ms') end

local letter = redis.call('XRANGE', KEYS[3], ARGV[2], ARGV[2])[1]
if not letter then
  return {'MISSING'}, true
end
if redis.call('XLEN', KEYS[2]) >= capacity then
  return {'FULL'}, true
end
if redis.call('EXISTS', KEYS[2]) == 0 then
  redis.call('XGROUP', 'CREATE', KEYS[2], GROUP, '0', 'MKSTREAM')
end
redis.call('XADD', KEYS[2], '*', 'payload', letter[2][2])
keep(KEYS[2], ttl_ms)
redis.call('XDEL', KEYS[3], ARGV[2])
return {'REQUEUED'}
