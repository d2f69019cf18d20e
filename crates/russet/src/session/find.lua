-- Reads a whole session: the values of the fields asked for, absent ones as nil.
-- KEYS: 1 the session
-- ARGV: the names of its fields
-- Replies: FOUND values, ttl_ms, is_challenge_live; MISSING; CORRUPT field
-- Errors: INVALID fields
if #ARGV == 0 or #ARGV > 40 then return refuse('fields') end
local values = redis.pcall('HMGET', KEYS[1], unpack(ARGV))
if values.err then
  return {'CORRUPT', 'field', 'type'}
end
local left = redis.call('PTTL', KEYS[1])
if left == -2 then
  return {'MISSING'}
end
local challenge = redis.call('HMGET', KEYS[1], 'mfa_challenge', 'mfa_challenge_until_ms')
local is_live = challenge[1] and (tonumber(challenge[2] or 0) or 0) > now_ms()
return {'FOUND', 'values', values, 'ttl_ms', math.max(left, 0), 'is_challenge_live', is_live and 1 or 0}
