-- How many visitors there were on some days, each counted once.
-- KEYS: 1... visitors of the days
-- Replies: OK visitors
-- Errors: INVALID days
if #KEYS < 1 or #KEYS > 100 then return refuse('days') end
return {'OK', 'visitors', redis.call('PFCOUNT', unpack(KEYS))}
