-- Reads the latest changes of flags, the last one first.
-- KEYS: 1 the audit
-- ARGV: 1 limit
-- Replies: OK entries, each of time in milliseconds, actor, what was done, flag, version
-- Errors: INVALID limit
local limit = whole(ARGV[1], 1, 10000)
if not limit then
  return refuse('limit')
end
local entries = {}
for index, entry in ipairs(redis.call('LRANGE', KEYS[1], 0, limit - 1)) do
  entries[index] = cmsgpack.unpack(entry)
end
return {'OK', 'entries', entries}
