-- Ends a job that was done by whoever holds its receipt.
-- KEYS: 1 request marker; 2 meta; 3 jobs; 4 ready; 5 taken; 6 parked; 7 optional: bell, without
--   which a job that waited for room in the group is found by the next claim only
-- ARGV: 1 request_ttl_ms; 2 receipt
-- Replies: ACKED; STALE (others have it, or will); GONE (it was ended already)
-- Errors: INVALID receipt
local meta, jobs, ready, taken, parked = KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local group, id = read_receipt(ARGV[2])
if not id then return refuse('receipt') end

-- Keys that are not what they should be fail here, before anything is written.
local is_there = redis.call('HEXISTS', jobs, id) == 1
redis.call('HLEN', meta)
if group ~= '' then
  redis.call('ZCARD', ready)
  redis.call('ZCARD', parked)
  if KEYS[7] then redis.call('LLEN', KEYS[7]) end
end
if redis.call('ZREM', taken, ARGV[2]) == 0 then
  return {is_there and 'STALE' or 'GONE'}, true
end
redis.call('HDEL', jobs, id)
-- The first of all, or the first since `meta` was lost.
local is_first = redis.call('HINCRBY', meta, 'acked', 1) == 1
if is_first or group ~= '' then
  -- Rare: jobs of groups make room for others, and the first of all sets the expiry.
  local is_unparked = leave_group(meta, jobs, parked, ready, group)
  local at = expiry_known(meta, jobs, ready, taken)
  if at then
    redis.call('PEXPIREAT', ready, at)
    if is_unparked and KEYS[7] then
      ring(KEYS[7])
      redis.call('PEXPIREAT', KEYS[7], at)
    end
  end
end
return {'ACKED'}
