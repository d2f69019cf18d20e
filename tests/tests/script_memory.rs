//! The memory of Lua interpreters over sockets: where INFO reports it, that it is given back, and
//! how it is bounded.

use russet_tests::client::{Client, REPLY_WAIT, Reply};
use russet_tests::server::{Kind, Server};

const MIB: u64 = 1 << 20;

fn server(extra: &[&str]) -> Server {
    let args: Vec<&str> = ["--threads", "2"].iter().chain(extra).copied().collect();
    Server::start(Kind::Russet, &args).unwrap()
}

fn connect(server: &Server) -> Client {
    Client::connect(server.address()).unwrap()
}

fn text(reply: &Reply) -> String {
    String::from_utf8_lossy(reply.text().unwrap_or_default()).into_owned()
}

/// A figure of INFO memory.
fn memory(client: &mut Client, field: &str) -> u64 {
    let report = text(&client.call(&["INFO", "memory"]).unwrap());
    let line = report.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {field}: {report}"))
}

/// After one sort with an order function that builds strings 300 MB stayed with the interpreter
/// until SCRIPT FLUSH, and were reported as data.
#[test]
fn a_large_run_gives_its_memory_back() {
    let server = server(&[]);
    let client = &mut connect(&server);
    let sort = "local t = {} for i = 1, 20000 do t[i] = (i * 7919) % 20011 end \
                table.sort(t, function(a, b) return 'k' .. a .. ':x' < 'k' .. b .. ':x' end) \
                local u = {} for i = 1, 200000 do u[i] = {} end return #t";
    assert_eq!(client.call(&["EVAL", sort, "0"]).unwrap(), Reply::Int(20_000));
    let (used, lua) = (memory(client, "used_memory"), memory(client, "used_memory_lua"));
    assert!(used < 16 * MIB, "used_memory is {used}");
    assert!((1..16 * MIB).contains(&lua), "used_memory_lua is {lua}");
    let allocated = memory(client, "allocator_allocated");
    assert!(allocated < 32 * MIB, "{allocated} bytes are allocated");
}

/// What interpreters hold is reported as theirs, also while they run, and is no data.
#[test]
fn interpreters_are_reported_apart_from_data() {
    let server = server(&["--busy-reply-threshold", "1"]);
    let (client, other) = (&mut connect(&server), &mut connect(&server));
    let spin = "local t = {} for i = 1, 100000 do t[i] = {'text ' .. i} end while true do end";
    client.send(&["EVAL", spin, "0"].map(Vec::from)).unwrap();
    while memory(other, "used_memory_vm_eval") < 16 * MIB {
        std::thread::yield_now();
    }
    let data = memory(other, "used_memory_dataset");
    assert!(data < 12 * MIB, "used_memory_dataset is {data}");
    assert!(memory(other, "used_memory_vm_total") >= 16 * MIB);
    while text(&other.call(&["SCRIPT", "KILL"]).unwrap()) != "OK" {
        std::thread::yield_now();
    }
    assert!(client.read(REPLY_WAIT).unwrap().is_error());

    let library = "#!lua name=lib\nlocal t = {} redis.register_function('fill', function() \
                   for i = 1, 100000 do t[i] = {i} end return #t end)";
    client.call(&["FUNCTION", "LOAD", library]).unwrap();
    assert_eq!(client.call(&["FCALL", "fill", "0"]).unwrap(), Reply::Int(100_000));
    let (functions, data) =
        (memory(client, "used_memory_vm_functions"), memory(client, "used_memory_dataset"));
    assert!(functions > 8 * MIB, "used_memory_vm_functions is {functions}");
    assert!(data < 8 * MIB, "used_memory_dataset is {data}");
    let sources = memory(client, "used_memory_functions");
    assert!((1..MIB).contains(&sources), "used_memory_functions is {sources}");
}

/// The bound of 512 MiB for each interpreter could not be chosen.
#[test]
fn the_memory_of_an_interpreter_is_bounded_by_a_directive() {
    let server = server(&["--script-memory-max", "8mb"]);
    let client = &mut connect(&server);
    let hold = "local t = {} for i = 1, 100000 do t[i] = {'text ' .. i} end return #t";
    let refused = client.call(&["EVAL", hold, "0"]).unwrap();
    assert!(text(&refused).starts_with("ERR not enough memory"), "{refused:?}");
    client.call(&["CONFIG", "SET", "script-memory-max", "64mb"]).unwrap();
    assert_eq!(client.call(&["EVAL", hold, "0"]).unwrap(), Reply::Int(100_000));
    client.call(&["CONFIG", "SET", "script-memory-max", "4mb"]).unwrap();
    assert!(client.call(&["EVAL", hold, "0"]).unwrap().is_error());
    assert!(client.call(&["CONFIG", "SET", "script-memory-max", "1"]).unwrap().is_error());
    let library = "#!lua name=lib\nlocal t = {} for i = 1, 100000 do t[i] = {'text ' .. i} end \
                   redis.register_function('f', function() end)";
    let refused = client.call(&["FUNCTION", "LOAD", library]).unwrap();
    assert!(text(&refused).contains("not enough memory"), "{refused:?}");
}

/// A function that a library had registered could be collected before the library was loaded.
#[test]
fn registered_functions_survive_the_rest_of_their_library() {
    let server = server(&[]);
    let client = &mut connect(&server);
    let library = "#!lua name=lib\n\
                   local function make(text) return function() return text end end\n\
                   redis.register_function('mine', make('mine'))\n\
                   for n = 1, 16 do local s = 'x' for i = 1, 21 do s = s .. s end end\n\
                   local others = {} for i = 1, 100 do others[i] = make('other') end";
    client.call(&["FUNCTION", "LOAD", library]).unwrap();
    assert_eq!(text(&client.call(&["FCALL", "mine", "0"]).unwrap()), "mine");
}
