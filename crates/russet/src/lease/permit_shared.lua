-- A token that ends with an asterisk and a number takes so many permits: its members are the token, and
-- the token with a number behind it.
local function members_of(token)
  local weight = string.match(token, '%*(%d+)$')
  if not weight then return {token} end
  weight = whole(weight, 1, 1000)
  if not weight then return nil end
  local members = {token}
  for index = 2, weight do members[index] = token .. ':' .. index end
  return members
end
