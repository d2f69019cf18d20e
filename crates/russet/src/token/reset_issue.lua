-- Stores the digest of a single-use token of a user; one that was issued before is worth nothing then.
-- KEYS: 1 the token of the user
-- ARGV: 1 digest of the token; 2 tenant_id; 3 subject_id; 4 ttl_ms
-- Replies: ISSUED
-- Errors: INVALID digest, subject_id, ttl_ms
local ttl = whole(ARGV[4], 1, 1e13)
if ARGV[1] == '' then return refuse('digest') end
if ARGV[3] == '' then return refuse('subject_id') end
if not ttl then return refuse('ttl_ms') end
local kept = redis.call('HMGET', KEYS[1], 'token_digest', 'spent')
local spent = kept[2] or ''
if is_spent(spent, ARGV[1]) then
  -- A request that was late: the token was used or replaced meanwhile.
  return {'ISSUED'}
end
if kept[1] and kept[1] ~= ARGV[1] then
  spent = with_spent(spent, kept[1])
end
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'schema_version', 1, 'token_digest', ARGV[1], 'tenant_id', ARGV[2],
  'subject_id', ARGV[3], 'created_at_ms', now_ms(), 'spent', spent)
redis.call('PEXPIRE', KEYS[1], ttl)
return {'ISSUED'}
