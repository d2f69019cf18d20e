-- Removes a record, and what belongs to it.
-- KEYS: 1 the record; 2... what belongs to it
-- Replies: REMOVED; MISSING
local is_there = redis.call('EXISTS', KEYS[1]) == 1
redis.call('UNLINK', unpack(KEYS))
return {is_there and 'REMOVED' or 'MISSING'}
