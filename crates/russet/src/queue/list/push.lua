-- Appends to a list queue. A full one refuses, or loses its oldest item.
-- KEYS: 1 request marker; 2 the list
-- ARGV: 1 request_ttl_ms; 2 payload; 3 capacity; 4 on_full (reject or drop_oldest); 5 ttl_ms
-- Replies: PUSHED length, dropped; FULL
-- Errors: INVALID capacity, on_full, ttl_ms
local capacity, on_full, ttl_ms = whole(ARGV[3], 1, 1e9), ARGV[4], whole(ARGV[5], 1, 1e12)
if not capacity then return refuse('capacity') end
if on_full ~= 'reject' and on_full ~= 'drop_oldest' then return refuse('on_full') end
if not ttl_ms then return refuse('ttl_ms') end

local extra = redis.call('LLEN', KEYS[2]) + 1 - capacity
local dropped = 0
if extra > 0 then
  if on_full == 'reject' then
    return {'FULL'}, true
  end
  dropped = #(redis.call('LPOP', KEYS[2], math.min(extra, 100)) or {})
end
local length = redis.call('RPUSH', KEYS[2], ARGV[2])
redis.call('PEXPIRE', KEYS[2], ttl_ms)
return {'PUSHED', 'length', length, 'dropped', dropped}
