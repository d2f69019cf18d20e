-- Reads one flag, and whether the subject is in one of its groups.
-- KEYS: 1 the flags; 2 the members
-- ARGV: 1 flag; 2 subject
-- Replies: FLAG switch, killed, rollout, rules, is_member; MISSING
local flag = ARGV[1]
local found = redis.call('HMGET', KEYS[1], flag .. ':switch', flag .. ':killed',
  flag .. ':rollout', flag .. ':rules', flag .. ':groups')
if not found[1] then
  return {'MISSING'}
end
local is_member = 0
for group in string.gmatch(found[5] or '', '[^,]+') do
  if is_member == 0 then
    is_member = redis.call('SISMEMBER', KEYS[2], group .. ':' .. ARGV[2])
  end
end
return {'FLAG', 'switch', found[1], 'killed', found[2] or '', 'rollout', found[3] or '',
  'rules', found[4] or '', 'is_member', is_member}
