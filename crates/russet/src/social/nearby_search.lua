-- A page of places around a point, the nearest first, behind the last one of the page before.
-- KEYS: 1 the places
-- ARGV: 1 longitude; 2 latitude; 3 radius_m; 4 count; 5 distance and 6 place of the last one of the
-- page before, or empty; 7 how many were on all pages before
-- Replies: OK places (place, distance in metres, ...), is_last (1 or 0)
-- Errors: INVALID longitude, latitude, radius_m, count, cursor
local DEPTH_MAX = 10000
local longitude = decimal(ARGV[1], -180, 180)
local latitude = decimal(ARGV[2], -85.05112878, 85.05112878)
local radius, count = decimal(ARGV[3], 0, 25000000), whole(ARGV[4], 1, 1000)
local distance, seen = decimal(ARGV[5], 0, 25000000), whole(ARGV[7], 0, DEPTH_MAX)
if not longitude then return refuse('longitude') end
if not latitude then return refuse('latitude') end
if not radius or radius == 0 then return refuse('radius_m') end
if not count then return refuse('count') end
if not seen or (ARGV[5] ~= '' and not distance) then return refuse('cursor') end

-- By bytes: `<` may follow the server's locale.
local function is_after(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then return x > y end
  end
  return #a > #b
end
local function is_before(a, b)
  local x, y = tonumber(a[2]), tonumber(b[2])
  if x ~= y then return x < y end
  return is_after(b[1], a[1])
end

local wanted = math.min(seen + count + 1, DEPTH_MAX)
while true do
  local found = redis.call('GEOSEARCH', KEYS[1], 'FROMLONLAT', ARGV[1], ARGV[2], 'BYRADIUS',
    ARGV[3], 'm', 'ASC', 'COUNT', wanted, 'WITHDIST')
  local is_all = #found < wanted or wanted == DEPTH_MAX
  table.sort(found, is_before)
  local known = #found
  if not is_all then
    -- Of those that are as far as the last one there may be more, and they have no order yet.
    while known > 0 and found[known][2] == found[#found][2] do known = known - 1 end
  end
  local page, left = {}, 0
  for i = 1, known do
    local place, away = found[i][1], tonumber(found[i][2])
    if not distance or away > distance or (away == distance and is_after(place, ARGV[6])) then
      if #page < 2 * count then
        page[#page + 1] = place
        page[#page + 1] = found[i][2]
      else
        left = left + 1
      end
    end
  end
  if is_all or #page == 2 * count then
    return {'OK', 'places', page, 'is_last', is_all and left == 0 and 1 or 0}
  end
  wanted = math.min(wanted * 2, DEPTH_MAX)
end
