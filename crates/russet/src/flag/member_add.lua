-- Adds a subject to a group.
-- KEYS: 1 the members
-- ARGV: 1 group; 2 subject; 3 ttl_ms; 4 members_max
-- Replies: ADDED; ALREADY; FULL
-- Errors: INVALID group, subject, ttl_ms, members_max
local ttl_ms, members_max = whole(ARGV[3], 1, 1e13), whole(ARGV[4], 1, 1e6)
if not string.find(ARGV[1], '^[%w%-%._]+$') then
  return refuse('group')
elseif ARGV[2] == '' then
  return refuse('subject')
elseif not ttl_ms then
  return refuse('ttl_ms')
elseif not members_max then
  return refuse('members_max')
end
local member = ARGV[1] .. ':' .. ARGV[2]
if redis.call('SISMEMBER', KEYS[1], member) == 1 then
  redis.call('PEXPIRE', KEYS[1], ttl_ms)
  return {'ALREADY'}
elseif redis.call('SCARD', KEYS[1]) >= members_max then
  return {'FULL'}
end
redis.call('SADD', KEYS[1], member)
redis.call('PEXPIRE', KEYS[1], ttl_ms)
return {'ADDED'}
