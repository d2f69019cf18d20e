-- The line items of a draft.
-- KEYS: 1 its items
-- Replies: OK items (sku, quantity:unit_minor, ...)
return {'OK', 'items', redis.call('HGETALL', KEYS[1])}
