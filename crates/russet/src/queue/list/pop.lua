-- Takes the oldest or the newest item out of a list queue, for good.
-- KEYS: 1 request marker; 2 the list
-- ARGV: 1 request_ttl_ms; 2 which (oldest or newest); 3 ttl_ms
-- Replies: POPPED payload; EMPTY
-- Errors: INVALID which, ttl_ms
local which, ttl_ms = ARGV[2], whole(ARGV[3], 1, 1e12)
if which ~= 'oldest' and which ~= 'newest' then return refuse('which') end
if not ttl_ms then return refuse('ttl_ms') end

local payload
if which == 'oldest' then
  payload = redis.call('LPOP', KEYS[2])
else
  payload = redis.call('RPOP', KEYS[2])
end
if not payload then
  return {'EMPTY'}, true
end
redis.call('PEXPIRE', KEYS[2], ttl_ms)
return {'POPPED', 'payload', payload}
