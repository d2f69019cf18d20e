//! The programs, by name.

/// Each takes about a millisecond.
pub const PROGRAMS: &[(&str, &str)] = &[
    ("additions", "local n = 0 for i = 1, 100000 do n = n + i end return n"),
    ("table access", "local t = {} for i = 1, 20000 do t[i % 100] = i end return t[7]"),
    ("array append", "local t = {} for i = 1, 20000 do t[#t + 1] = i end return #t"),
    (
        "fields t.a.b.c",
        "local t = {a = {b = {c = 1}}} local n = 0 \
      for i = 1, 20000 do n = n + t.a.b.c end return n",
    ),
    (
        "function calls",
        "local function f(a, b) return a + b end local n = 0 \
      for i = 1, 20000 do n = f(n, i) end return n",
    ),
    (
        "method calls",
        "local o = {n = 0} function o:add(i) self.n = self.n + i end \
      for i = 1, 20000 do o:add(i) end return o.n",
    ),
    (
        "closures",
        "local n = 0 for i = 1, 10000 do local f = function() return i end n = n + f() end \
      return n",
    ),
    (
        "recursion",
        "local function f(n) if n < 2 then return n end return f(n - 1) + f(n - 2) end \
      return f(18)",
    ),
    (
        "pairs",
        "local t = {} for i = 1, 100 do t['k' .. i] = i end local n = 0 \
      for r = 1, 200 do for k, v in pairs(t) do n = n + v end end return n",
    ),
    (
        "ipairs",
        "local t = {} for i = 1, 100 do t[i] = i end local n = 0 \
      for r = 1, 200 do for k, v in ipairs(t) do n = n + v end end return n",
    ),
    (
        "varargs",
        "local function f(...) local a, b = ... return a + b end local n = 0 \
      for i = 1, 10000 do n = n + f(i, 1, 2) end return n",
    ),
    (
        "coroutines",
        "local c = coroutine.wrap(function() while true do coroutine.yield(1) end end) \
      local n = 0 for i = 1, 5000 do n = n + c() end return n",
    ),
    (
        "metamethods",
        "local m = {__add = function(a, b) return a.v + b end, \
      __index = function(t, k) return 2 end} local o = setmetatable({v = 1}, m) local n = 0 \
      for i = 1, 5000 do n = n + (o + i) + o.x end return n",
    ),
    (
        "matrix product",
        "local function m() local t = {} for i = 1, 20 do t[i] = {} \
      for j = 1, 20 do t[i][j] = i + j end end return t end local a, b, c = m(), m(), {} \
      for i = 1, 20 do c[i] = {} for j = 1, 20 do local s = 0 \
      for k = 1, 20 do s = s + a[i][k] * b[k][j] end c[i][j] = s end end return c[20][20]",
    ),
    (
        "sort with a comparator",
        "local t = {} for i = 1, 500 do t[i] = (i * 7919) % 1000 end \
      table.sort(t, function(a, b) return a > b end) return t[1]",
    ),
    (
        "string.sub",
        "local s, n = string.rep('abcdef', 20), 0 \
      for i = 1, 10000 do n = n + #s:sub(i % 100, i % 100 + 5) end return n",
    ),
    (
        "string.byte",
        "local s, n = string.rep('abcdef', 20), 0 \
      for i = 1, 10000 do n = n + s:byte(i % 100 + 1) end return n",
    ),
    (
        "string comparison",
        "local a, b, n = 'abcdefgh', 'abcdefgi', 0 \
      for i = 1, 20000 do if a < b then n = n + 1 end end return n",
    ),
    ("s = s .. x", "local s = '' for i = 1, 2000 do s = s .. 'x' end return #s"),
    (
        "table.concat",
        "local t = {} for i = 1, 3000 do t[i] = 'x' .. i end \
      return #table.concat(t, ',')",
    ),
    (
        "gsub of a literal",
        "local s, n = string.rep('hello world ', 50), 0 \
      for i = 1, 20 do local r, c = s:gsub('world', 'x') n = n + c end return n",
    ),
    (
        "find of .-b",
        "local s, n = string.rep('a', 200) .. 'b', 0 \
      for i = 1, 200 do n = n + select(2, s:find('.-b')) end return n",
    ),
    (
        "string.format",
        "local n = 0 for i = 1, 3000 do n = n + #string.format('%d:%s', i, 'x') end \
      return n",
    ),
    (
        "tostring and tonumber",
        "local n = 0 for i = 1, 5000 do n = n + tonumber(tostring(i)) end \
      return n",
    ),
    ("math.floor", "local n = 0 for i = 1, 20000 do n = n + math.floor(i / 3) end return n"),
    ("bit", "local n = 0 for i = 1, 10000 do n = bit.bxor(n, bit.lshift(i, 3)) end return n"),
    (
        "cjson",
        "local t = {a = 1, b = {1, 2, 3}, c = 'text'} local n = 0 \
      for i = 1, 300 do n = n + #cjson.encode(cjson.decode(cjson.encode(t))) end return n",
    ),
    (
        "cmsgpack",
        "local t = {a = 1, b = {1, 2, 3}, c = 'text'} local n = 0 \
      for i = 1, 300 do n = n + #cmsgpack.pack(cmsgpack.unpack(cmsgpack.pack(t))) end return n",
    ),
    (
        "while and repeat",
        "local n, i = 0, 0 while i < 20000 do i = i + 1 repeat n = n + 1 until n % 2 == 0 end \
      return n",
    ),
    ("for with a step", "local n = 0 for i = 100000, 1, -2 do n = n + i end return n"),
    (
        "shared upvalues",
        "local function counter() local n = 0 return function() n = n + 1 return n end end \
      local c = counter() for i = 1, 20000 do c() end return c()",
    ),
    (
        "tail calls",
        "local function f(n, a) if n == 0 then return a end return f(n - 1, a + 1) end return \
      f(20000, 0)",
    ),
    (
        "select('#')",
        "local function f(...) return select('#', ...) end local n = 0 for i = 1, 10000 do n = \
      n + f(i, nil, 2) end return n",
    ),
    (
        "unpack",
        "local t, n = {1, 2, 3, 4}, 0 for i = 1, 10000 do local a, b, c, d = unpack(t) n = n + \
      d end return n",
    ),
    (
        "pcall",
        "local function f(a) return a end local n = 0 for i = 1, 10000 do local ok, v = \
      pcall(f, i) n = n + v end return n",
    ),
    (
        "error and pcall",
        "local function f(a) error('no') end local n = 0 for i = 1, 2000 do local ok, v = \
      pcall(f, i) n = n + #v end return n",
    ),
    (
        "nested tables",
        "local n = 0 for i = 1, 3000 do local t = {a = {1, 2, 3}, b = {c = {d = i}}} n = n + \
      t.b.c.d + t.a[2] end return n",
    ),
    (
        "names put together",
        "local t, n = {}, 0 for i = 1, 5000 do t['key:' .. i % 50] = i end for k, v in pairs(t) \
      do n = n + v end return n",
    ),
    (
        "inherited methods",
        "local A = {} A.__index = A function A.new(n) return setmetatable({n = n}, A) end \
      function A:get() return self.n end local n = 0 for i = 1, 5000 do n = n + \
      A.new(i):get() end return n",
    ),
    (
        "__newindex and __call",
        "local t = setmetatable({}, {__newindex = function(t, k, v) rawset(t, k, v) end, __call \
      = function(t, a) return a end}) local n = 0 for i = 1, 3000 do t[i] = i n = n + t(i) \
      end return n",
    ),
    (
        "table.insert and remove",
        "local t, n = {}, 0 for i = 1, 5000 do table.insert(t, i) end while #t > 0 do n = n + \
      table.remove(t) end return n",
    ),
    (
        "insert in the middle",
        "local t = {} for i = 1, 200 do table.insert(t, 1, i) end for i = 1, 200 do \
      table.remove(t, 1) end return #t",
    ),
    (
        "sort of numbers",
        "local t = {} for i = 1, 1000 do t[i] = (i * 7919) % 1000 end table.sort(t) return t[1]",
    ),
    (
        "sort of texts",
        "local t = {} for i = 1, 500 do t[i] = 'key' .. (i * 7919) % 1000 end table.sort(t) \
      return t[1]",
    ),
    (
        "string.rep and reverse",
        "local n = 0 for i = 1, 3000 do n = n + #(('ab'):rep(20):reverse()) end return n",
    ),
    (
        "lower and upper",
        "local s, n = 'Hello World, Hello Lua', 0 for i = 1, 5000 do n = n + #s:lower() + \
      #s:upper() end return n",
    ),
    (
        "string.char",
        "local n = 0 for i = 1, 10000 do n = n + #string.char(65 + i % 26, 66) end return n",
    ),
    (
        "plain find",
        "local s, n = string.rep('abc', 100) .. 'needle', 0 for i = 1, 2000 do n = n + \
      s:find('needle', 1, true) end return n",
    ),
    (
        "match with captures",
        "local n = 0 for i = 1, 3000 do local k, v = ('name = \
      value'):match('^(%w+)%s*=%s*(%w+)$') n = n + #k + #v end return n",
    ),
    (
        "gmatch",
        "local s, n = string.rep('word ', 100), 0 for i = 1, 20 do for w in s:gmatch('%a+') do \
      n = n + #w end end return n",
    ),
    (
        "gsub with a function",
        "local s, n = string.rep('hello world ', 20), 0 for i = 1, 20 do local r, c = \
      s:gsub('%w+', function(w) return w .. '!' end) n = n + c end return n",
    ),
    (
        "gsub with captures",
        "local s, n = string.rep('key=value ', 20), 0 for i = 1, 20 do local r, c = \
      s:gsub('(%w+)=(%w+)', '%2=%1') n = n + c end return n",
    ),
    (
        "tonumber with a base",
        "local n = 0 for i = 1, 10000 do n = n + tonumber('ff', 16) end return n",
    ),
    (
        "math.max and min",
        "local n = 0 for i = 1, 10000 do n = n + math.max(i, 5, 7) - math.min(i, 3) end return \
      n",
    ),
    (
        "string equality",
        "local a, n = 'key:1', 0 for i = 1, 20000 do if a == 'key:2' or a == 'key:1' then n = n \
      + 1 end end return n",
    ),
    (
        "cjson.decode",
        "local s, n = \
      '{\"id\":1,\"tags\":[\"a\",\"b\",\"c\"],\"nested\":{\"x\":1.5,\"y\":null}}', 0 for i = \
      1, 500 do n = n + cjson.decode(s).id end return n",
    ),
    (
        "struct",
        "local n = 0 for i = 1, 3000 do local a, b = struct.unpack('>I4I2', \
      struct.pack('>I4I2', i, 7)) n = n + a + b end return n",
    ),
];
