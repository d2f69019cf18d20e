-- Takes back a job that nobody has claimed. One that runs is not stopped, but does not run again.
-- KEYS: 1 meta; 2 jobs; 3 ready; 4 delayed; 5 parked; 6 taken; 7 optional: bell
-- ARGV: 1 id
-- Replies: CANCELLED; RUNNING (it is claimed, or waits for its group); MISSING
local meta, jobs, ready, parked = KEYS[1], KEYS[2], KEYS[3], KEYS[5]
local id = ARGV[1]
local job, packed = read_job(jobs, id)
if not job and not packed then
  return {'MISSING'}
end
job = job or {0, 0, '', ''}
-- Keys that are not what they should be fail here, before anything is written.
redis.call('HLEN', meta)
redis.call('ZCARD', KEYS[4])
redis.call('ZCARD', parked)
if redis.call('ZREM', ready, id) + redis.call('ZREM', KEYS[4], id) == 0 then
  job[4], job[5] = '', true
  write_job(jobs, id, job)
  return {'RUNNING'}
end
redis.call('HDEL', jobs, id)
if job[3] ~= '' then
  local is_unparked = unpark(jobs, parked, ready, job[3])
  local at = expiry_known(meta, jobs, ready, KEYS[6])
  if at then
    redis.call('PEXPIREAT', ready, at)
    if is_unparked and KEYS[7] then
      ring(KEYS[7])
      redis.call('PEXPIREAT', KEYS[7], at)
    end
  end
end
return {'CANCELLED'}
