-- Reads dead letters, the oldest first.
-- KEYS: 1 dead; 2 graves
-- ARGV: 1 offset; 2 limit (1 to 100)
-- Replies: OK letters (a list of id, payload, attempts, reason, group, died_ms, id of the job)
-- Errors: INVALID offset, limit
local offset, limit = whole(ARGV[1], 0, 1e9), whole(ARGV[2], 1, 100)
if not offset then return refuse('offset') end
if not limit then return refuse('limit') end
local found = redis.call('ZRANGE', KEYS[1], offset, offset + limit - 1, 'WITHSCORES')
local letters = {}
for i = 1, #found, 2 do
  local job, packed = read_job(KEYS[2], found[i])
  job = job or packed and {0, 0, '', packed, 'CORRUPT letter'}
  if job then
    local died_ms = tonumber(found[i + 1])
    letters[#letters + 1] =
      {found[i], job[4], job[1], job[5], job[3], died_ms, job[6] or found[i]}
  end
end
return {'OK', 'letters', letters}
