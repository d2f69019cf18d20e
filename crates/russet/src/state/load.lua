-- Reads a record with all its fields.
-- KEYS: 1 the record
-- Replies: FOUND fields, names and values one after the other; MISSING
local fields = redis.call('HGETALL', KEYS[1])
if #fields == 0 then
  return {'MISSING'}
end
return {'FOUND', 'fields', fields}
