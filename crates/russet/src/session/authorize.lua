-- Reads the four fields that decide on a request, and no more.
-- KEYS: 1 the session
-- ARGV: none
-- Replies: FOUND user_id, tenant_id, status, auth_level; MISSING; CORRUPT field
local state = redis.pcall('HMGET', KEYS[1], 'user_id', 'tenant_id', 'status', 'auth_level')
if state.err then
  return {'CORRUPT', 'field', 'type'}
elseif not state[1] and not state[3] and redis.call('EXISTS', KEYS[1]) == 0 then
  return {'MISSING'}
end
return {'FOUND', 'user_id', state[1], 'tenant_id', state[2], 'status', state[3],
  'auth_level', state[4]}
