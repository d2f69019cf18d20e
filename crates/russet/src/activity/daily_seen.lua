-- Whether a member was active on a day.
-- KEYS: 1 indexes by member; 2 bitmap of the day
-- ARGV: 1 member
-- Replies: OK active (1 or 0)
local index = redis.call('HGET', KEYS[1], ARGV[1])
if not index then return {'OK', 'active', 0} end
return {'OK', 'active', redis.call('GETBIT', KEYS[2], index)}
