-- Counts the instance ARGV[1]; forgets those that were silent for ARGV[2] milliseconds.
-- KEYS: the sorted set of the instances, and the hash of the API keys.
-- Returns the time in milliseconds, the number of instances, and the revision of the keys.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
if redis.call('HSTRLEN', KEYS[2], 'revision') > 64 then return redis.error_reply('TOOLONG the revision of the keys') end
return {now, redis.call('ZCARD', KEYS[1]), redis.call('HGET', KEYS[2], 'revision')}
