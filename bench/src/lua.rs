//! Plain Lua: programs that call no command, as scripts on Russet and on Valkey in turn.

use crate::client::Client;
use crate::failure::{Failure, Result};
use crate::figures::{median, paired_ratios, spread};
use crate::find::Field;
use crate::options::Options;
use crate::report::{Table, cost, goal, percent};
use crate::servers::{Kind, Server};
use std::time::Instant;

const RATIO_MAX: f64 = 1.1;

/// Each takes about a millisecond.
const PROGRAMS: &[(&str, &str)] = &[
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
];

pub fn run(options: &Options, field: &Field) -> Result<Table> {
    let mut table = Table::new(
        "Plain Lua: programs without commands",
        ["program", "Russet µs", "Valkey µs", "CPU ÷ Valkey", "goal", "spread"],
    );
    let mut servers = Vec::new();
    for launch in field.launches.iter().filter(|launch| launch.kind.stores_data()) {
        let server = launch.start()?;
        servers.push((server.client()?, server));
    }
    for (name, program) in PROGRAMS {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for round in 0..options.rounds {
            for turn in 0..servers.len() {
                let count = servers.len();
                let (client, server) = &mut servers[(round + turn) % count];
                let series = if server.kind == Kind::Russet { &mut ours } else { &mut theirs };
                series.push(cpu_us(client, server, program, options)?);
            }
        }
        let ratios = paired_ratios(&ours, &theirs);
        let ratio = median(&ratios);
        table.row(vec![
            (*name).to_owned(),
            cost(median(&ours)),
            cost(median(&theirs)),
            cost(ratio),
            goal(Some(RATIO_MAX), ratio),
            percent(spread(&ratios)),
        ]);
        eprintln!("lua: {name} {}", cost(ratio));
    }
    table.notes.push(format!(
        "µs: CPU time of all the server's threads per run of the script, one client, {} rounds in \
         turn, medians.",
        options.rounds
    ));
    Ok(table)
}

/// The server's CPU per run.
fn cpu_us(client: &mut Client, server: &Server, program: &str, options: &Options) -> Result<f64> {
    let mut run = || {
        let reply = client.ask(&["EVAL", program, "0"])?;
        match reply.is_error() {
            true => Err(Failure::server(server.kind.name(), format!("{reply:?}"))),
            false => Ok(()),
        }
    };
    // It is compiled before it is timed.
    run()?;
    let (before, started, mut runs) = (server.cpu()?, Instant::now(), 0);
    while started.elapsed() < options.time_per_round / 4 {
        run()?;
        runs += 1;
    }
    let cpu = server.cpu()?.saturating_sub(before);
    Ok(cpu.as_secs_f64() * 1e6 / f64::from(runs.max(1)))
}
