-- Reads all flags, unless they are as one knows them.
-- KEYS: 1 the flags
-- ARGV: 1 the version that one knows, 0 for none
-- Replies: UNCHANGED; FLAGS version, fields
local version = redis.call('HGET', KEYS[1], 'version') or '0'
if version == ARGV[1] and version ~= '0' then
  return {'UNCHANGED'}
end
return {'FLAGS', 'version', tonumber(version), 'fields', redis.call('HGETALL', KEYS[1])}
