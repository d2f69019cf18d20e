-- The sessions of a user that have not expired.
-- KEYS: 1 the sessions of the user
-- ARGV: none
-- Replies: OK members
return {'OK', 'members', redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. now_ms(), '+inf', 'LIMIT', 0, 256)}
