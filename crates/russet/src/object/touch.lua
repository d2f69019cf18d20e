-- Gives a record its whole TTL again, if less than a quarter is left: so few calls write.
-- KEYS: 1 the record
-- ARGV: 1 ttl_ms
-- Replies: RENEWED; FRESH; MISSING
-- Errors: INVALID ttl_ms
local ttl_ms = whole(ARGV[1], 1, 1e13)
if not ttl_ms then return refuse('ttl_ms') end
local left = redis.call('PTTL', KEYS[1])
if left == -2 then return {'MISSING'} end
if left >= ttl_ms / 4 then return {'FRESH'} end
redis.call('PEXPIRE', KEYS[1], ttl_ms)
return {'RENEWED'}
