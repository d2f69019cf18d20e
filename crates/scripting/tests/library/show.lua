-- Runs each chunk of ARGV and answers one line per chunk: what it returned or how it failed, in a
-- form that does not depend on addresses or on the order of a table's entries.
local function quoted(text)
  return '"' .. (text:gsub('[%c\\"\128-\255]', function(byte)
    return string.format('\\%03d', byte:byte())
  end)) .. '"'
end

local show

local function show_table(t, depth)
  if depth > 5 then return '{...}' end
  local parts, shown = {}, {}
  while rawget(t, #parts + 1) ~= nil do
    shown[#parts + 1] = true
    parts[#parts + 1] = show(rawget(t, #parts + 1), depth + 1)
  end
  local keyed = {}
  for key, value in pairs(t) do
    if not shown[key] then
      keyed[#keyed + 1] = '[' .. show(key, depth + 1) .. ']=' .. show(value, depth + 1)
    end
  end
  table.sort(keyed)
  for _, part in ipairs(keyed) do parts[#parts + 1] = part end
  return '{' .. table.concat(parts, ',') .. '}'
end

show = function(value, depth)
  local kind = type(value)
  if kind == 'string' then return quoted(value) end
  if value ~= value then return 'nan' end
  if kind == 'number' then return string.format('%.17g', value) end
  if kind == 'table' then return show_table(value, depth) end
  if kind == 'nil' or kind == 'boolean' then return tostring(value) end
  return kind
end

local function told(ok, ...)
  local parts = {}
  for index = 1, select('#', ...) do parts[index] = show((select(index, ...)), 1) end
  return (ok and 'ok ' or 'error ') .. table.concat(parts, ' ')
end

local lines = {}
for index, source in ipairs(ARGV) do
  local chunk, problem = loadstring(source, '=case')
  lines[index] = chunk and told(pcall(chunk)) or told(false, problem)
end
return lines
