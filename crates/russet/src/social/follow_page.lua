-- A page of users, the first to follow first. A user that stays is on one page, whoever comes or
-- goes meanwhile.
-- KEYS: 1 users with moments
-- ARGV: 1 count; 2 moment and 3 user of the last one of the page before, or empty
-- Replies: OK users (user, moment, ...)
-- Errors: INVALID count, cursor
local count, moment = whole(ARGV[1], 1, 1000), 0
if not count then return refuse('count') end
if ARGV[2] ~= '' then
  moment = whole(ARGV[2], 0, 1e15)
  if not moment then return refuse('cursor') end
end
local first = 0
if ARGV[2] ~= '' then
  -- By bytes, as the server sorts them: `<` may follow the server's locale.
  local function is_after(a, b)
    for i = 1, math.min(#a, #b) do
      local x, y = string.byte(a, i), string.byte(b, i)
      if x ~= y then return x > y end
    end
    return #a > #b
  end
  local text = string.format('%.0f', moment)
  local low = redis.call('ZCOUNT', KEYS[1], '-inf', '(' .. text)
  local high = redis.call('ZCOUNT', KEYS[1], '-inf', text)
  while low < high do
    local middle = math.floor((low + high) / 2)
    local found = redis.call('ZRANGE', KEYS[1], middle, middle)[1]
    if is_after(found, ARGV[3]) then high = middle else low = middle + 1 end
  end
  first = low
end
return {'OK', 'users', redis.call('ZRANGE', KEYS[1], first, first + count - 1, 'WITHSCORES')}
