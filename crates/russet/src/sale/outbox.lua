-- Reads what has happened after a position, the oldest first.
-- KEYS: 1 outbox
-- ARGV: 1 after (a position, or - for the first); 2 limit (1 to 1000)
-- Replies: OK events (a list of position, kind (ordered, paid, cancelled or expired), order, user)
-- Errors: INVALID after, limit
local after, limit = ARGV[1], whole(ARGV[2], 1, 1000)
if after ~= '-' and not string.find(after, '^%d+%-%d+$') then return refuse('after') end
if not limit then return refuse('limit') end
local from = after == '-' and '-' or '(' .. after
local events = {}
for i, entry in ipairs(redis.call('XRANGE', KEYS[1], from, '+', 'COUNT', limit)) do
  local fields = entry[2]
  events[i] = {entry[1], fields[2], fields[4], fields[6]}
end
return {'OK', 'events', events}
