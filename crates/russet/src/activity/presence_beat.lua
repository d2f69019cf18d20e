-- Says that a member is there, and forgets those who have been silent too long.
-- KEYS: 1 last seen by member
-- ARGV: 1 member; 2 timeout_ms; 3 members_max
-- Replies: JOINED present; REFRESHED present; FULL present
-- Errors: INVALID timeout_ms, members_max
local timeout_ms, members_max = whole(ARGV[2], 1, 1e13), whole(ARGV[3], 1, 1e9)
if not timeout_ms then return refuse('timeout_ms') end
if not members_max then return refuse('members_max') end
local now = now_ms()
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - timeout_ms)
local was = redis.call('ZSCORE', KEYS[1], ARGV[1])
local present = redis.call('ZCARD', KEYS[1])
if not was and present >= members_max then return {'FULL', 'present', present} end
redis.call('ZADD', KEYS[1], 'GT', now, ARGV[1])
redis.call('PEXPIRE', KEYS[1], timeout_ms)
if was then return {'REFRESHED', 'present', present} end
return {'JOINED', 'present', present + 1}
