-- Reads the fields of a token that decide on a request, and no more.
-- KEYS: 1 the token
-- ARGV: none
-- Replies: VALID tenant_id, subject_id, scopes, expires_in_ms; REVOKED; EXPIRED; UNKNOWN; CORRUPT field
local token = redis.pcall('HMGET', KEYS[1], 'expires_at_ms', 'revoked_at_ms', 'tenant_id', 'subject_id',
  'scopes')
if token.err then
  return {'CORRUPT', 'field', 'type'}
elseif not token[1] and redis.call('EXISTS', KEYS[1]) == 0 then
  return {'UNKNOWN'}
elseif token[2] then
  return {'REVOKED'}
end
local expires_at, now = tonumber(token[1]), now_ms()
if not expires_at then
  return {'CORRUPT', 'field', 'expires_at_ms'}
elseif expires_at <= now then
  return {'EXPIRED'}
elseif not token[3] or not token[4] or not token[5] then
  return {'CORRUPT', 'field', 'subject_id'}
end
return {'VALID', 'tenant_id', token[3], 'subject_id', token[4], 'scopes', token[5],
  'expires_in_ms', expires_at - now}
