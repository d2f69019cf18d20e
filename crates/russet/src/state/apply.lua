-- Moves a record to another state, with all its changes, if state, version and conditions allow it.
-- KEYS: 1 request marker; 2 the record
-- ARGV: 1 request_ttl_ms; 2 state to move to; 3 states to move from, with commas between;
-- 4 expected version, 0 for any; 5 ttl_ms, 0 leaves it as it is; 6 number of conditions, then for
-- each: eq, ne, lt, le, gt, ge, has or lacks, a field, a value; then for each change: set, add or
-- remove, a field, a value
-- Replies: APPLIED version, sums (of the fields added to); WRONG_STATE state, version;
-- WRONG_VERSION state, version; REFUSED field; MISSING
-- Errors: INVALID state, version, ttl_ms, conditions, changes; CORRUPT record; OVERFLOW a sum is
-- beyond 9e15
local expected, ttl_ms = whole(ARGV[4], 0, 9e15), whole(ARGV[5], 0, 1e13)
local conditions = whole(ARGV[6], 0, 32)
if ARGV[2] == '' or string.find(ARGV[2], ',', 1, true) then
  return refuse('state')
elseif not expected then
  return refuse('version')
elseif not ttl_ms then
  return refuse('ttl_ms')
elseif not conditions or #ARGV < 6 + conditions * 3 then
  return refuse('conditions')
elseif #ARGV % 3 ~= 0 or #ARGV > 300 then
  return refuse('changes')
end
local changes = 7 + conditions * 3
local COMPARES = {lt = true, le = true, gt = true, ge = true}
local LOOKS = {eq = true, ne = true, has = true, lacks = true}
for index = 7, changes - 1, 3 do
  local kind, value = ARGV[index], ARGV[index + 2]
  if not LOOKS[kind] and not (COMPARES[kind] and decimal(value, -2 ^ 63, 2 ^ 63)) then
    return refuse('conditions')
  end
end
for index = changes, #ARGV, 3 do
  local kind, field, by = ARGV[index], ARGV[index + 1], ARGV[index + 2]
  if (kind ~= 'set' and kind ~= 'add' and kind ~= 'remove')
    or (kind == 'add' and not whole(by, -9e15, 9e15))
    or field == 'state' or field == 'version' or field == 'created_at_ms'
    or field == 'updated_at_ms' then
    return refuse('changes')
  end
end

local found = redis.call('HMGET', KEYS[2], 'state', 'version')
local state, version = found[1], tonumber(found[2] or '')
if not state or not version then
  if redis.call('EXISTS', KEYS[2]) == 1 then
    return redis.error_reply('CORRUPT record')
  end
  return {'MISSING'}, true
elseif not string.find(',' .. ARGV[3] .. ',', ',' .. state .. ',', 1, true) then
  return {'WRONG_STATE', 'state', state, 'version', version}, true
elseif expected ~= 0 and expected ~= version then
  return {'WRONG_VERSION', 'state', state, 'version', version}, true
end

local function holds(kind, current, value)
  if kind == 'has' then
    return current
  elseif kind == 'lacks' then
    return not current
  elseif kind == 'eq' then
    return current == value
  elseif kind == 'ne' then
    return current ~= value
  end
  local left, right = tonumber(current or 0), tonumber(value)
  if not left or not right then
    return false
  end
  return (kind == 'lt' and left < right) or (kind == 'le' and left <= right)
    or (kind == 'gt' and left > right) or (kind == 'ge' and left >= right)
end
for index = 7, changes - 1, 3 do
  local current = redis.call('HGET', KEYS[2], ARGV[index + 1])
  if not holds(ARGV[index], current, ARGV[index + 2]) then
    return {'REFUSED', 'field', ARGV[index + 1]}, true
  end
end
-- What each field comes to, one change after the other, before anything is written: false for one
-- that goes.
local becomes, sums = {}, {}
for index = changes, #ARGV, 3 do
  local kind, field, value = ARGV[index], ARGV[index + 1], ARGV[index + 2]
  if kind == 'add' then
    local before = becomes[field]
    if before == nil then before = redis.call('HGET', KEYS[2], field) end
    before = whole(before or '0', -9e15, 9e15)
    if not before then return redis.error_reply('CORRUPT record: a number is none') end
    local sum = before + value
    if sum > 9e15 or sum < -9e15 then return redis.error_reply('OVERFLOW ' .. field) end
    sums[#sums + 1] = sum
    value = string.format('%.0f', sum)
  end
  becomes[field] = kind ~= 'remove' and value
end
for field, value in pairs(becomes) do
  if value then
    redis.call('HSET', KEYS[2], field, value)
  else
    redis.call('HDEL', KEYS[2], field)
  end
end
redis.call('HSET', KEYS[2], 'state', ARGV[2], 'version', string.format('%.0f', version + 1),
  'updated_at_ms', string.format('%.0f', now_ms()))
if ttl_ms > 0 then
  redis.call('PEXPIRE', KEYS[2], ttl_ms)
end
return {'APPLIED', 'version', version + 1, 'sums', sums}
