-- Forgets what was charged under limits.
-- KEYS: 1 and on: one key per limit
-- ARGV: none
-- Replies: OK
-- Errors: INVALID limits
if #KEYS > 16 then return refuse('limits') end
for i = 1, #KEYS do
  redis.call('DEL', KEYS[i])
end
return {'OK'}
