-- Stores the response of a request, for the owner of its claim only. A repetition changes nothing.
-- KEYS: 1 the record
-- ARGV: 1 owner; 2 body; 3 result_ttl_ms
-- Replies: KEPT; LOST
-- Errors: INVALID result_ttl_ms
local result_ttl = whole(ARGV[3], 1, 1e13)
if not result_ttl then return refuse('result_ttl_ms') end
local record = redis.call('HMGET', KEYS[1], 'state', 'owner')
if record[2] ~= ARGV[1] then
  return {'LOST'}
elseif record[1] == 'COMPLETED' then
  return {'KEPT'}
elseif record[1] ~= 'IN_PROGRESS' then
  return {'LOST'}
end
redis.call('HSET', KEYS[1], 'state', 'COMPLETED', 'body', ARGV[2], 'updated_at_ms', now_ms())
redis.call('HDEL', KEYS[1], 'deadline_ms', 'reason')
redis.call('PEXPIRE', KEYS[1], result_ttl)
return {'KEPT'}
