-- Moves a member from one set of an index to another: it is never in both, and never in none.
-- KEYS: 1 the set it is in; 2 the set it goes to
-- ARGV: 1 member; 2 members_max; 3 ttl_ms
-- Replies: MOVED; ALREADY (it is in the other one, and no longer in the first); MISSING; FULL
-- Errors: INVALID members_max, ttl_ms
local members_max, ttl_ms = whole(ARGV[2], 1, 1e9), whole(ARGV[3], 1, 1e13)
if not members_max then return refuse('members_max') end
if not ttl_ms then return refuse('ttl_ms') end
local is_here = redis.call('SISMEMBER', KEYS[1], ARGV[1]) == 1
local is_there = redis.call('SISMEMBER', KEYS[2], ARGV[1]) == 1
if not is_here and not is_there then return {'MISSING'} end
if not is_there and redis.call('SCARD', KEYS[2]) >= members_max then return {'FULL'} end
redis.call('SREM', KEYS[1], ARGV[1])
redis.call('SADD', KEYS[2], ARGV[1])
redis.call('PEXPIRE', KEYS[2], ttl_ms)
return {is_here and 'MOVED' or 'ALREADY'}
