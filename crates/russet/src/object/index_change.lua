-- Adds a member to a set of an index, or removes it.
-- KEYS: 1 the set
-- ARGV: 1 SET or CLEAR; 2 member; 3 members_max; 4 ttl_ms after the last member
-- Replies: CHANGED members; UNCHANGED members; FULL members
-- Errors: INVALID how, members_max, ttl_ms
local members_max, ttl_ms = whole(ARGV[3], 1, 1e9), whole(ARGV[4], 1, 1e13)
if ARGV[1] ~= 'SET' and ARGV[1] ~= 'CLEAR' then return refuse('how') end
if not members_max then return refuse('members_max') end
if not ttl_ms then return refuse('ttl_ms') end
local members = redis.call('SCARD', KEYS[1])
if ARGV[1] == 'CLEAR' then
  local removed = redis.call('SREM', KEYS[1], ARGV[2])
  return {removed == 1 and 'CHANGED' or 'UNCHANGED', 'members', members - removed}
end
local is_there = redis.call('SISMEMBER', KEYS[1], ARGV[2]) == 1
if not is_there and members >= members_max then return {'FULL', 'members', members} end
redis.call('SADD', KEYS[1], ARGV[2])
redis.call('PEXPIRE', KEYS[1], ttl_ms)
if is_there then return {'UNCHANGED', 'members', members} end
return {'CHANGED', 'members', members + 1}
