-- Grants a lease, unless as many as ARGV[1] were granted within ARGV[2] milliseconds.
-- KEYS[1] is the list of the times of the last ones in milliseconds, the oldest first.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local oldest = redis.call('LINDEX', KEYS[1], -tonumber(ARGV[1]))
if oldest and now - oldest <= tonumber(ARGV[2]) then return 0 end
redis.call('RPUSH', KEYS[1], now)
redis.call('LTRIM', KEYS[1], -ARGV[1], -1)
redis.call('PEXPIRE', KEYS[1], ARGV[2] + 1)
return 1
