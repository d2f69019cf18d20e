-- The holder of a receipt says that it still works on the job.
-- KEYS: 1 meta; 2 jobs; 3 ready; 4 delayed; 5 taken; 6 parked; 7 dead; 8 graves
-- ARGV: 1 receipt; 2 visibility_ms, from now on; 3 ttl_ms
-- Replies: EXTENDED deadline_ms; STALE (others have it, or will, or it was ended)
-- Errors: INVALID visibility_ms, ttl_ms
local meta, taken = KEYS[1], KEYS[5]
local visibility_ms, ttl_ms = whole(ARGV[2], 1, TTL_MAX), whole(ARGV[3], 1, TTL_MAX)
if not visibility_ms then return refuse('visibility_ms') end
if not ttl_ms then return refuse('ttl_ms') end

if not redis.call('ZSCORE', taken, ARGV[1]) then
  return {'STALE'}
end
-- A key that is not what it should be fails here, before anything is written.
redis.call('HLEN', meta)
local deadline = now_ms() + visibility_ms
redis.call('ZADD', taken, 'XX', 'GT', deadline, ARGV[1])
local at, is_moved = expiry(meta, deadline + ttl_ms, ttl_ms)
if is_moved then
  for i = 1, #KEYS do
    redis.call('PEXPIREAT', KEYS[i], at)
  end
end
return {'EXTENDED', 'deadline_ms', deadline}
