-- Some members of a set of an index. What is in it from the first page to the last is seen at least
-- once.
-- KEYS: 1 the set
-- ARGV: 1 cursor, 0 at first; 2 count, about
-- Replies: OK cursor (0 at the end), members
-- Errors: INVALID cursor, count
local count = whole(ARGV[2], 1, 1000)
if not string.match(ARGV[1], '^%d+$') then return refuse('cursor') end
if not count then return refuse('count') end
local page = redis.call('SSCAN', KEYS[1], ARGV[1], 'COUNT', count)
return {'OK', 'cursor', page[1], 'members', page[2]}
