-- A page of posts, the newest first, behind the last one of the page before. Posts of the same
-- moment are told apart, so that none is skipped or repeated.
-- KEYS: 1 the inbox, or the posts of an author
-- ARGV: 1 count; 2 at_ms and 3 post of the last one of the page before, or empty
-- Replies: OK posts (post, at_ms, ...)
-- Errors: INVALID count, cursor
local count, at_ms = whole(ARGV[1], 1, 1000), 0
if not count then return refuse('count') end
if ARGV[2] ~= '' then
  at_ms = whole(ARGV[2], 0, 1e15)
  if not at_ms then return refuse('cursor') end
end
local first = 0
if ARGV[2] ~= '' then
  -- By bytes, as the server sorts them: `<` may follow the server's locale.
  local function is_ahead(a, b)
    for i = 1, math.min(#a, #b) do
      local x, y = string.byte(a, i), string.byte(b, i)
      if x ~= y then return x > y end
    end
    return #a >= #b
  end
  local text = string.format('%.0f', at_ms)
  local low = redis.call('ZCOUNT', KEYS[1], '(' .. text, '+inf')
  local high = redis.call('ZCOUNT', KEYS[1], text, '+inf')
  while low < high do
    local middle = math.floor((low + high) / 2)
    local found = redis.call('ZRANGE', KEYS[1], middle, middle, 'REV')[1]
    if is_ahead(found, ARGV[3]) then low = middle + 1 else high = middle end
  end
  first = low
end
return {'OK', 'posts',
  redis.call('ZRANGE', KEYS[1], first, first + count - 1, 'REV', 'WITHSCORES')}
