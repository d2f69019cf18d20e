-- Uses a single-use token up.
-- KEYS: 1 marker of the request; 2 the token of the user
-- ARGV: 1 request_ttl_ms; 2 digest of the token
-- Replies: CONSUMED tenant_id, subject_id; UNKNOWN
-- Errors: INVALID digest
if ARGV[2] == '' then return refuse('digest') end
local token = redis.call('HMGET', KEYS[2], 'token_digest', 'tenant_id', 'subject_id', 'spent')
if token[1] ~= ARGV[2] then
  return {'UNKNOWN'}, true
end
-- What is left, as long as the token would have lived, is that it was used.
redis.call('HSET', KEYS[2], 'spent', with_spent(token[4] or '', ARGV[2]))
redis.call('HDEL', KEYS[2], 'token_digest', 'tenant_id', 'subject_id', 'created_at_ms')
return {'CONSUMED', 'tenant_id', token[2], 'subject_id', token[3]}
