-- The digests of the latest tokens of a user that were used or replaced, the last one first: a
-- request to issue one of them comes too late.
local SPENT_BYTES_MAX = 1024

local function is_spent(spent, digest)
  return string.find(' ' .. spent .. ' ', ' ' .. digest .. ' ', 1, true)
end

local function with_spent(spent, digest)
  return string.sub(digest .. ' ' .. spent, 1, SPENT_BYTES_MAX)
end
