local key = KEYS[1]
local expected = ARGV[1]
local now = ARGV[2]
local actual = redis.call('HGET', key, 'mfaChallengeId')
if actual ~= expected then
return {err = 'CHALLENGE_MISMATCH'}
end
redis.call('HSET', key,
'status', 'MFA_VERIFIED',
'mfaVerifiedAtMs', now,
'mfaChallengeId', '',
'updatedAtMs', now
)
redis.call('HDEL', key, 'mfaChallengeHash')
return 'OK'
