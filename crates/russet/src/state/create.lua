-- Creates a value that is not there yet.
-- KEYS: 1 request marker; 2 the value
-- ARGV: 1 request_ttl_ms; 2 value; 3 ttl_ms
-- Replies: CREATED; EXISTS current
-- Errors: INVALID ttl_ms
local ttl_ms = whole(ARGV[3], 1, 1e13)
if not ttl_ms then
  return refuse('ttl_ms')
end
local current = redis.call('GET', KEYS[2])
if current then
  return {'EXISTS', 'current', current}, true
end
redis.call('SET', KEYS[2], ARGV[2], 'PX', ttl_ms)
return {'CREATED'}
