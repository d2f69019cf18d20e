local keys = redis.call('KEYS', 'tenant:*:quota')
for i, key in ipairs(keys) do
  redis.call('DEL', key)
end
