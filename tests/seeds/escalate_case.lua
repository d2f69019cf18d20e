local key = KEYS[1]
local now = ARGV[1]
local maxLevel = tonumber(ARGV[2])
local status = redis.call('HGET', key, 'status')
if status ~= 'OPEN' then
return {err = 'INVALID_STATUS'}
end
local level = tonumber(redis.call('HGET', key, 'escalationLevel') or '0')
if level >= maxLevel then
return {err = 'MAX_ESCALATION'}
end
local newLevel = level + 1
local newVersion = redis.call('HINCRBY', key, 'stateVersion', 1)
redis.call('HSET', key,
'status', 'ESCALATED',
'escalationLevel', tostring(newLevel),
'updatedAtMs', now,
'lastTransitionReason', 'AUTO_ESCALATION'
)
return { 'OK', tostring(newLevel), tostring(newVersion) }
