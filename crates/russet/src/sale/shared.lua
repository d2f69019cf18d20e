-- What the steps of a sale share. An order in `orders` is its id, its state (held or paid), when
-- its reservation ends (0: never) and when it was made.
local RECLAIM_MAX = 100

-- Gives nil and true, if what is stored is no order.
local function read_order(orders, user)
  local packed = redis.call('HGET', orders, user)
  if not packed then
    return nil, false
  end
  local is_read, order = pcall(cmsgpack.unpack, packed)
  if is_read and type(order) == 'table' and type(order[1]) == 'string'
    and (order[2] == 'held' or order[2] == 'paid') and type(order[3]) == 'number' then
    return {id = order[1], state = order[2], expires_ms = order[3], made_ms = order[4]}, false
  end
  return nil, true
end

local function write_order(orders, user, order)
  local packed = cmsgpack.pack({order.id, order.state, order.expires_ms, order.made_ms})
  redis.call('HSET', orders, user, packed)
end

-- What a database has to know, in the order in which it happened.
local function report(outbox, kind, user, order)
  redis.call('XADD', outbox, '*', 'kind', kind, 'order', order.id, 'user', user)
end

-- Gives an item back, and lets its user buy again.
local function give_back(sale, orders, holds, outbox, user, order, kind)
  redis.call('HDEL', orders, user)
  redis.call('ZREM', holds, user)
  redis.call('HINCRBY', sale, 'stock', 1)
  redis.call('HINCRBY', sale, order.state, -1)
  redis.call('HINCRBY', sale, kind, 1)
  report(outbox, kind, user, order)
end

-- Reservations that `holds` does not have, since it was lost, are put there again, some with each
-- call. If the orders were lost too, their items come back: nobody can pay for them any more. Gives
-- how many, and whether anything was written.
local function relist(sale, orders, holds)
  local unknown = tonumber(redis.call('HGET', sale, 'held') or 0) - redis.call('ZCARD', holds)
  if unknown <= 0 then
    return 0, false
  end
  if redis.call('EXISTS', orders) == 0 then
    redis.call('HINCRBY', sale, 'stock', unknown)
    redis.call('HINCRBY', sale, 'held', -unknown)
    redis.call('HINCRBY', sale, 'expired', unknown)
    return unknown, true
  end
  local page = redis.call('HSCAN', orders, redis.call('HGET', sale, 'relist') or '0', 'COUNT',
    RECLAIM_MAX)
  redis.call('HSET', sale, 'relist', page[1])
  for i = 1, #page[2], 2 do
    local order = read_order(orders, page[2][i])
    if order and order.state == 'held' then
      redis.call('ZADD', holds, 'NX', order.expires_ms, page[2][i])
    end
  end
  return 0, true
end

-- Reservations whose time is over; gives how many there were, and whether anything was written.
local function reclaim(sale, orders, holds, outbox, now, limit)
  local returned, is_changed = relist(sale, orders, holds)
  local users = redis.call('ZRANGE', holds, '-inf', now, 'BYSCORE', 'LIMIT', 0, limit)
  for _, user in ipairs(users) do
    -- If the orders were lost, the item comes back all the same: nobody can pay for it any more.
    local order = read_order(orders, user) or {id = '', state = 'held'}
    give_back(sale, orders, holds, outbox, user, order, 'expired')
  end
  return returned + #users, is_changed or #users > 0
end

-- All keys of a sale are kept until some time after its last reservation can end. Nil if the sale was
-- lost: asked before anything is written.
local function keep_until(sale, now)
  local set = redis.call('HMGET', sale, 'closes_ms', 'hold_ms', 'keep_ms')
  return set[1] and math.max(now, tonumber(set[1])) + set[2] + set[3]
end
