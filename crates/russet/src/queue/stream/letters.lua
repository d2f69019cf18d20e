-- Reads dead letters of a work stream, the oldest first.
-- KEYS: 1 dead
-- ARGV: 1 after (an id, or - for the first); 2 limit (1 to 100)
-- Replies: OK letters (a list of id, payload, attempts, reason, group, died_ms,
--   id of the job, which is empty)
-- Errors: INVALID limit
local limit = whole(ARGV[2], 1, 100)
if not limit then return refuse('limit') end
local from = ARGV[1] == '-' and '-' or '(' .. ARGV[1]
local letters = {}
for _, entry in ipairs(redis.call('XRANGE', KEYS[1], from, '+', 'COUNT', limit)) do
  local fields = entry[2]
  local died_ms = string.match(entry[1], '^%d+')
  letters[#letters + 1] = {entry[1], fields[2], fields[6], fields[4], '', died_ms, ''}
end
return {'OK', 'letters', letters}
