-- How many members a set of an index has, and which of some are in it.
-- KEYS: 1 the set
-- ARGV: 1... members
-- Replies: OK members, contains (1 or 0 for each)
-- Errors: INVALID members
if #ARGV > 1000 then return refuse('members') end
local contains = {}
for i = 1, #ARGV do
  contains[i] = redis.call('SISMEMBER', KEYS[1], ARGV[i])
end
return {'OK', 'members', redis.call('SCARD', KEYS[1]), 'contains', contains}
