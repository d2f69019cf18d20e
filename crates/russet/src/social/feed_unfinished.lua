-- Posts of an author that are not with all followers yet, the oldest first.
-- KEYS: 1 posts that are not with all followers yet
-- Replies: OK posts
return {'OK', 'posts', redis.call('ZRANGE', KEYS[1], 0, 999)}
