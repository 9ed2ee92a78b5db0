-- Lua: a table of small tables of strings; half of it replaced, then joined into one string. lua keys.lua KEYS
local keys = tonumber(arg[1] or "100000")
local entries = {}
for i = 1, keys do
    entries["key" .. i] = { "v" .. i, "v" .. 2 * i, { left = i, right = tostring(i) } }
end
for i = 1, keys, 2 do
    entries["key" .. i] = nil
    entries["other" .. i] = { tostring(i) }
end
local names = {}
for name, entry in pairs(entries) do
    names[#names + 1] = name .. "=" .. entry[1]
end
table.sort(names)
print(#names, #table.concat(names, ","))
