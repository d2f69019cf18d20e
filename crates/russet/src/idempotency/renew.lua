-- Moves the deadline of a claim on, for its owner only.
-- KEYS: 1 the record
-- ARGV: 1 owner; 2 claim_ttl_ms
-- Replies: KEPT; LOST
-- Errors: INVALID claim_ttl_ms
local claim_ttl = whole(ARGV[2], 1, 1e13)
if not claim_ttl then return refuse('claim_ttl_ms') end
local record = redis.call('HMGET', KEYS[1], 'state', 'owner')
if record[1] ~= 'IN_PROGRESS' or record[2] ~= ARGV[1] then
  return {'LOST'}
end
local now = now_ms()
redis.call('HSET', KEYS[1], 'deadline_ms', now + claim_ttl, 'claim_ttl_ms', claim_ttl,
  'updated_at_ms', now)
if redis.call('PTTL', KEYS[1]) < claim_ttl then
  redis.call('PEXPIRE', KEYS[1], claim_ttl)
end
return {'KEPT'}
