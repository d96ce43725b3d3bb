-- Counts the instance ARGV[1]; forgets those that were silent for ARGV[2] milliseconds.
-- KEYS: the sorted set of the instances, and the API keys and their version.
-- Returns the time in milliseconds, the number of instances, and a text that differs after each change of the API keys.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return {now, redis.call('ZCARD', KEYS[1]), (redis.call('GET', KEYS[3]) or '') .. ' ' .. redis.call('HLEN', KEYS[2])}
