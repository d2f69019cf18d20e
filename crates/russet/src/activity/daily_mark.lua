-- Marks members as active today. A member that was never seen gets the next index: indexes are
-- dense.
-- KEYS: 1 indexes by member; 2 bitmap of the day
-- ARGV: 1 start_ms and 2 end_ms of the day; 3 retention_ms; 4 members_max; 5... members
-- Replies: OK new, again, refused (they would be beyond members_max), indexes (given so far);
-- PERIOD now_ms
-- Errors: INVALID period, retention_ms, members_max, members
local start_ms, end_ms = whole(ARGV[1], 0, 1e15), whole(ARGV[2], 1, 1e15)
local retention_ms, members_max = whole(ARGV[3], 1, 1e13), whole(ARGV[4], 1, 1e9)
if not start_ms or not end_ms or end_ms <= start_ms then return refuse('period') end
if not retention_ms then return refuse('retention_ms') end
if not members_max then return refuse('members_max') end
if #ARGV < 5 or #ARGV > 1004 then return refuse('members') end
local now = now_ms()
if now < start_ms or now >= end_ms then return {'PERIOD', 'now_ms', now} end

-- A key that is not what it should be fails here, before anything is written.
redis.call('STRLEN', KEYS[2])
local new, again, refused = 0, 0, 0
local indexes = redis.call('HLEN', KEYS[1])
for i = 5, #ARGV do
  local index = redis.call('HGET', KEYS[1], ARGV[i])
  if not index and indexes < members_max then
    index = indexes
    redis.call('HSET', KEYS[1], ARGV[i], index)
    indexes = indexes + 1
  end
  if not index then
    refused = refused + 1
  elseif redis.call('SETBIT', KEYS[2], index, 1) == 0 then
    new = new + 1
  else
    again = again + 1
  end
end
redis.call('PEXPIREAT', KEYS[2], end_ms + retention_ms)
-- The indexes outlive every bitmap: given anew they would mean others in the old ones.
local expires_at = end_ms + retention_ms + (end_ms - start_ms)
if redis.call('PEXPIRETIME', KEYS[1]) < expires_at then
  redis.call('PEXPIREAT', KEYS[1], expires_at)
end
return {'OK', 'new', new, 'again', again, 'refused', refused, 'indexes', indexes}
