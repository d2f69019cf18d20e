-- Members of all of some sets of an index, of any of them, or of the first and none of the others.
-- KEYS: 1... the sets
-- ARGV: 1 ALL, ANY or FIRST; 2 count
-- Replies: OK total, members (at most count)
-- Errors: INVALID how, count, sets
local count = whole(ARGV[2], 0, 1000)
if not count then return refuse('count') end
if #KEYS < 1 or #KEYS > 8 then return refuse('sets') end
local found
if ARGV[1] == 'ALL' then
  found = redis.call('SINTER', unpack(KEYS))
elseif ARGV[1] == 'ANY' then
  found = redis.call('SUNION', unpack(KEYS))
elseif ARGV[1] == 'FIRST' then
  found = redis.call('SDIFF', unpack(KEYS))
else
  return refuse('how')
end
local members = {}
for i = 1, math.min(#found, count) do members[i] = found[i] end
return {'OK', 'total', #found, 'members', members}
