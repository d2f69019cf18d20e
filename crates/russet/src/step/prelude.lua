-- What all steps share. Times are the server's, in milliseconds.
local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- A whole number between two bounds, or nil. A text must be as commands take it too: no spaces, no
-- exponent, no zeros before it. Else a command would refuse what was accepted here, half way. Most
-- are short enough for `tostring` to write them so; the pattern takes longer.
local function whole(text, least, most)
  local number = tonumber(text)
  if number and number >= least and number <= most and number % 1 == 0
    and (number > 0 and number < 1e14 and text == tostring(number) or text == number
      or text == '0' or string.find(text, '^%-?[1-9]%d*$')) then
    return number
  end
end

-- A decimal number between two bounds, or nil: neither `nan` nor a hexadecimal one.
local function decimal(text, least, most)
  local number = tonumber(text)
  if number and number >= least and number <= most and string.find(text, '^[%d%.eE+-]+$') then
    return number
  end
end

-- The reply to a bad argument. Nothing may have been written before.
local function refuse(what)
  return redis.error_reply('INVALID ' .. what)
end
