-- Lists objects by their indexed value, in the order of their ids, a page at a time.
-- KEYS: 1 the index; 2 until when each object lives
-- ARGV: 1 indexed value; 2 the id behind which to begin, empty for the first page; 3 limit
-- Replies: OK ids, next (empty at the end)
-- Errors: INVALID limit
local limit = whole(ARGV[3], 1, 1000)
if not limit then
  return refuse('limit')
end
local prefix = ARGV[1] .. '\0'
local from = ARGV[2] == '' and '[' .. prefix or '(' .. prefix .. ARGV[2]
local entries = redis.call('ZRANGEBYLEX', KEYS[1], from, '(' .. ARGV[1] .. '\1', 'LIMIT', 0, limit)
local ids, last, now = {}, '', now_ms()
for _, entry in ipairs(entries) do
  last = string.sub(entry, #prefix + 1)
  local until_ms = redis.call('ZSCORE', KEYS[2], last)
  if until_ms and tonumber(until_ms) > now then
    ids[#ids + 1] = last
  end
end
return {'OK', 'ids', ids, 'next', #entries == limit and last or ''}
