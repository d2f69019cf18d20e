-- The reply that an earlier run of the same request has left.
local function remembered(marker, ttl_ms)
  if ttl_ms == '0' then
    return nil
  end
  if not whole(ttl_ms, 1, 1e13) then
    return refuse('request_ttl_ms')
  end
  local kept = redis.call('GET', marker)
  if kept then
    local is_read, reply = pcall(cmsgpack.unpack, kept)
    if is_read and type(reply) == 'table' and type(reply[1]) == 'string' then
      return reply
    end
    return redis.error_reply('CORRUPT request')
  end
end

-- Leaves the reply for a later run of the same request, unless nothing has changed.
local function remember(marker, ttl_ms, reply, is_unchanged)
  if ttl_ms ~= '0' and not is_unchanged and not reply.err then
    redis.call('SET', marker, cmsgpack.pack(reply), 'PX', tonumber(ttl_ms))
  end
  return reply
end
