-- Forgets a repeated job: the occurrence that is planned does not run, unless it was claimed.
-- KEYS: 1 meta; 2 jobs; 3 ready; 4 delayed; 5 optional: taken; 6 optional: parked; 7 optional: bell
-- ARGV: 1 name
-- Replies: FORGOTTEN; MISSING
local planned = redis.call('HGET', KEYS[1], 'c:' .. ARGV[1])
if not planned then
  return {'MISSING'}
end
local id = ARGV[1] .. '@' .. planned
local job = read_job(KEYS[2], id)
-- Keys that are not what they should be fail here, before anything is written.
redis.call('ZCARD', KEYS[3])
redis.call('ZCARD', KEYS[4])
redis.call('HDEL', KEYS[1], 'c:' .. ARGV[1])
if redis.call('ZREM', KEYS[4], id) + redis.call('ZREM', KEYS[3], id) > 0 then
  redis.call('HDEL', KEYS[2], id)
  -- It may have been the one of its group that was let in.
  if job and job[3] ~= '' and KEYS[7] and unpark(KEYS[2], KEYS[6], KEYS[3], job[3]) then
    ring(KEYS[7])
    local at = expiry_known(KEYS[1], KEYS[2], KEYS[3], KEYS[5])
    if at then
      redis.call('PEXPIREAT', KEYS[3], at)
      redis.call('PEXPIREAT', KEYS[7], at)
    end
  end
end
return {'FORGOTTEN'}
