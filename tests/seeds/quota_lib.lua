#!lua name=quota_lib

redis.register_function('fixed_window_allow', function(keys, args)
  local current = redis.call('INCR', keys[1])
  if current == 1 then
    redis.call('EXPIRE', keys[1], tonumber(args[2]))
  end

  if current > tonumber(args[1]) then
    return {0, current}
  end

  return {1, current}
end)
