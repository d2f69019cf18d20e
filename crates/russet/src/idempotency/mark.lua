-- Sets a marker that only the first can set. The same token sets it again: it may run twice.
-- KEYS: 1 the marker
-- ARGV: 1 token; 2 ttl_ms
-- Replies: CLAIMED; EXISTS expires_in_ms, has_ttl (0 if somebody has taken its TTL away)
-- Errors: INVALID token, ttl_ms
if ARGV[1] == '' then return refuse('token') end
if not whole(ARGV[2], 1, 1e13) then return refuse('ttl_ms') end
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return {'CLAIMED'}
elseif redis.call('GET', KEYS[1]) == ARGV[1] then
  return {'CLAIMED'}
end
local left = redis.call('PTTL', KEYS[1])
return {'EXISTS', 'expires_in_ms', math.max(left, 0), 'has_ttl', left == -1 and 0 or 1}
