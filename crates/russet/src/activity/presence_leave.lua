-- Says that a member has gone.
-- KEYS: 1 last seen by member
-- ARGV: 1 member
-- Replies: LEFT; ABSENT
return {redis.call('ZREM', KEYS[1], ARGV[1]) == 1 and 'LEFT' or 'ABSENT'}
