-- The member that an old one was rotated to.
-- KEYS: 1 what became of the old id
-- ARGV: none
-- Replies: FOUND member; MISSING
local member = redis.call('GET', KEYS[1])
if not member then
  return {'MISSING'}
end
return {'FOUND', 'member', member}
