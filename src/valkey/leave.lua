-- Gives back what an instance that stops has not used, and no longer counts the instance ARGV[1].
-- KEYS: the sorted set of the instances, and buckets as in take.lua. ARGV: after the instance, for each bucket its name
-- there, what it holds, and what it has used. Where the bucket says otherwise, nothing is given back.
redis.call('ZREM', KEYS[1], ARGV[1])
for i = 2, #KEYS do
  local name, held, used = unpack(ARGV, 3 * i - 4, 3 * i - 2)
  local taken, own = unpack(redis.call('HMGET', KEYS[i], 'taken', name))
  if taken and own == held then
    redis.call('HSET', KEYS[i], 'taken', math.max(0, taken - held + used), name, used)
  end
end
return 1
