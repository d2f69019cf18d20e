-- Who is there, the last seen first.
-- KEYS: 1 last seen by member
-- ARGV: 1 timeout_ms; 2 count, which may be 0; 3 a member to look for, optional
-- Replies: OK present, members (member, last_seen_ms, ...), is_there (1 or 0)
-- Errors: INVALID timeout_ms, count
local timeout_ms, count = whole(ARGV[1], 1, 1e13), whole(ARGV[2], 0, 1000)
if not timeout_ms then return refuse('timeout_ms') end
if not count then return refuse('count') end
local since = now_ms() - timeout_ms
local after = string.format('(%.0f', since)
local members = {}
if count > 0 then
  members = redis.call('ZRANGE', KEYS[1], '+inf', after, 'BYSCORE', 'REV', 'LIMIT', 0, count,
    'WITHSCORES')
end
local seen = ARGV[3] and redis.call('ZSCORE', KEYS[1], ARGV[3])
return {'OK', 'present', redis.call('ZCOUNT', KEYS[1], after, '+inf'), 'members', members,
  'is_there', seen and tonumber(seen) > since and 1 or 0}
