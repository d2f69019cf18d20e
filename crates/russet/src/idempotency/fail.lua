-- Records why a request failed, for the owner of its claim only, and whether it may be tried again.
-- KEYS: 1 the record
-- ARGV: 1 owner; 2 FAILED_RETRYABLE or FAILED_FINAL; 3 reason; 4 result_ttl_ms
-- Replies: KEPT; LOST
-- Errors: INVALID kind, result_ttl_ms
local result_ttl = whole(ARGV[4], 1, 1e13)
if ARGV[2] ~= 'FAILED_RETRYABLE' and ARGV[2] ~= 'FAILED_FINAL' then return refuse('kind') end
if not result_ttl then return refuse('result_ttl_ms') end
local record = redis.call('HMGET', KEYS[1], 'state', 'owner')
if record[2] ~= ARGV[1] then
  return {'LOST'}
elseif record[1] == ARGV[2] then
  return {'KEPT'}
elseif record[1] ~= 'IN_PROGRESS' then
  return {'LOST'}
end
redis.call('HSET', KEYS[1], 'state', ARGV[2], 'reason', ARGV[3], 'updated_at_ms', now_ms())
redis.call('HDEL', KEYS[1], 'deadline_ms')
redis.call('PEXPIRE', KEYS[1], result_ttl)
return {'KEPT'}
