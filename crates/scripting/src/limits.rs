//! Every bound of the language and of its machine, by name. The numbers of the language itself are
//! those of Lua 5.1, so that a script is refused here where it would be refused there.

/// Levels of nested blocks, expressions and functions that the parser follows. Chains to the left
/// (`a + b + c`, `a.b.c`) are no levels.
pub const SYNTAX_LEVELS_MAX: usize = 200;

/// Local variables of one function.
pub const LOCALS_MAX: usize = 200;

/// Variables of outer functions that one function may use.
pub const UPVALUES_MAX: usize = 60;

/// Registers of one function: locals and intermediate results.
pub const REGISTERS_MAX: usize = 250;

/// Constants of one function.
pub const CONSTANTS_MAX: usize = 1 << 18;

/// Instructions of one function.
pub const INSTRUCTIONS_MAX: usize = 1 << 26;

/// Functions that may wait for each other.
pub const CALL_DEPTH_MAX: usize = 19_999;

/// As many more may, once that was an error, until it is caught: the handler of `xpcall` runs on
/// top of them.
pub const CALL_DEPTH_SPARE: usize = 20_000;

/// The depth of natives, metamethods, iterators and coroutines that is an error: each takes a piece
/// of our own stack.
pub const NATIVE_DEPTH_MAX: usize = 200;

/// What is nested deeper, as handlers of that error are, goes on up to here.
pub const NATIVE_DEPTH_END: usize = 225;

/// Values on one Lua stack.
pub const STACK_VALUES_MAX: usize = 1 << 20;

/// Values that `unpack`, `string.byte` and their kin may put on the stack at once.
pub const RESULTS_MAX: usize = 8_000;

/// Metatables that one `__index` or `__newindex` chain may pass.
pub const META_CHAIN_MAX: usize = 100;

/// Source text of one chunk.
pub const SOURCE_BYTES_MAX: usize = 512 << 20;

/// What one state may hold, unless the host says otherwise.
///
/// DIFFERS: elsewhere a script may hold as much as there is.
pub const MEMORY_BYTES_MAX: usize = 512 << 20;

/// The least that a state may hold: its libraries and a small script must fit.
pub const MEMORY_BYTES_MIN: usize = 1 << 20;

/// Garbage of a run that is not worth a collection.
pub const COLLECT_BYTES_MIN: usize = 16 << 20;

/// Growth of the permanent part that is not worth a collection.
pub const COLLECT_PERMANENT_BYTES_MIN: usize = 4 << 20;

/// What the buffers of a state may keep from one run to the next.
pub const KEPT_BYTES_MAX: usize = 1 << 20;

/// Strings up to this length lie side by side in one buffer; longer ones have their own block.
pub const PACKED_STRING_BYTES_MAX: usize = 1024;

/// Steps (loop turns, calls, work that natives declare) between two questions to the host.
pub const STEPS_PER_TICK: u32 = 2_000;

/// Steps of a compilation (tokens, instructions, visits of the tree) between two questions to the
/// host.
pub const COMPILE_STEPS_PER_TICK: u32 = 10_000;

/// Bytes of one token, or of one comment, between two steps.
pub const TOKEN_BYTES_PER_STEP: usize = 1 << 10;

/// The part of a chunk's name that messages of a run show, brackets and all.
pub const CHUNK_NAME_BYTES_MAX: usize = 60;

/// The part of a chunk's name that messages about its syntax show.
pub const CHUNK_NAME_BYTES_MAX_SYNTAX: usize = 80;
