-- Stands before every random program. What a program sees of its values goes through `log`, in a
-- form that does not depend on addresses; `burn` ends what would go on for ever.
local fuel, lines = 150, {}
local function burn() fuel = fuel - 1 if fuel < 0 then error('no fuel', 0) end end
local function show(value, depth)
  local kind = type(value)
  if kind == 'string' then return '"' .. value .. '"' end
  if value ~= value then return 'nan' end
  if kind == 'number' then return string.format('%.17g', value) end
  if kind == 'nil' or kind == 'boolean' then return tostring(value) end
  if kind ~= 'table' or depth > 2 then return kind end
  local parts = {}
  for index = 1, 5 do
    local element = rawget(value, index)
    if element ~= nil then parts[#parts + 1] = show(element, depth + 1) end
  end
  for _, name in ipairs({'x', 'y', 'z', 'n'}) do
    local field = rawget(value, name)
    if field ~= nil then parts[#parts + 1] = name .. '=' .. show(field, depth + 1) end
  end
  return '{' .. table.concat(parts, ',') .. '}'
end
local function log(...)
  if #lines > 200 then return end
  local parts = {}
  for index = 1, select('#', ...) do parts[index] = show((select(index, ...)), 1) end
  lines[#lines + 1] = table.concat(parts, ' ')
end
-- As the function of that name, without addresses.
local plain = tostring
local function tostring(value)
  local kind = type(value)
  local is_plain = kind == 'string' or kind == 'number' or kind == 'boolean' or kind == 'nil'
  return is_plain and plain(value) or kind
end
-- Keeps texts short.
local function cut(value)
  if type(value) == 'string' and #value > 40 then return string.sub(value, 1, 40) end
  return value
end
-- The names of a table's entries, in an order that is nobody's choice.
local function keys(value)
  local names = {}
  for name in pairs(value) do names[#names + 1] = tostring(name) end
  table.sort(names)
  return table.concat(names, ',')
end
