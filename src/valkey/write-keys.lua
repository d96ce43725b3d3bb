-- Writes API keys, unless someone has changed them since the change ARGV[1].
-- KEYS: the hash of the keys by their SHA-256, and the stream of the last changes. ARGV: after the change, for each key
-- its SHA-256 and its record. Returns the id of the new change.
local last = redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 1)[1]
if (last and last[1] or '') ~= ARGV[1] then return false end
redis.call('HSET', KEYS[1], unpack(ARGV, 2))
return redis.call('XADD', KEYS[2], 'MAXLEN', 100, '*', unpack(ARGV, 2))
