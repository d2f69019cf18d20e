-- Reads what the latest holder of a lease has written.
-- KEYS: 1 the record
-- Replies: FOUND fence, value; EMPTY
local found = redis.call('HMGET', KEYS[1], 'fence', 'value')
if not found[1] or not found[2] then
  return {'EMPTY'}
end
return {'FOUND', 'fence', tonumber(found[1]), 'value', found[2]}
