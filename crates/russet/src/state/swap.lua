-- Replaces a value if it is what one expects. Its time to live stays as it was.
-- KEYS: 1 request marker; 2 the value
-- ARGV: 1 request_ttl_ms; 2 expected; 3 next
-- Replies: SWAPPED; ALREADY, it is the next one; DIFFERS current; MISSING
local current = redis.call('GET', KEYS[2])
if not current then
  return {'MISSING'}, true
elseif current == ARGV[2] then
  redis.call('SET', KEYS[2], ARGV[3], 'KEEPTTL')
  return {'SWAPPED'}
elseif current == ARGV[3] then
  return {'ALREADY'}, true
end
return {'DIFFERS', 'current', current}, true
