//! Whole programs made at random: closures that share variables, metamethods, coroutines, varargs,
//! errors and their handlers. A program logs what it sees and always ends.
//!
//! It keeps away from what Lua 5.1 leaves open: the order of a table's entries, the length of a
//! table with holes, addresses, and how deep calls may be nested.

mod expr;
mod stat;

use russet_base::Random;

const PRELUDE: &str = include_str!("program.lua");

/// Statements that a program starts with; most have others inside.
const STATEMENTS_MIN: usize = 6;
const STATEMENTS_SPREAD: usize = 10;

/// A statement, or lines around a block of them.
#[derive(Clone, Debug)]
pub enum Node {
    Line(String),
    Block { open: String, body: Vec<Node>, close: String },
}

#[derive(Clone, Debug)]
pub struct Program {
    nodes: Vec<Node>,
}

impl Program {
    pub fn random(random: &mut Random) -> Program {
        let count = STATEMENTS_MIN + random.index(STATEMENTS_SPREAD);
        Program { nodes: Maker::new(random).program(count) }
    }

    /// The text of a script that answers with what the program logged.
    pub fn source(&self) -> String {
        let mut text = PRELUDE.to_owned();
        text.push_str("log(pcall(function(...)\n");
        append(&self.nodes, &mut text);
        text.push_str("end, 1, nil, 'v'))\nreturn table.concat(lines, '\\n')\n");
        text
    }

    /// The program alone, as its author would see it.
    pub fn body(&self) -> String {
        let mut text = String::new();
        append(&self.nodes, &mut text);
        text
    }

    /// Programs with one statement less, or with a block in place of what was around it; the
    /// largest cuts first.
    pub fn smaller(&self) -> Vec<Program> {
        let mut found = Vec::new();
        cuts(&self.nodes, &mut |nodes| found.push(Program { nodes }));
        found.sort_by_key(|program| program.body().len());
        found
    }
}

fn append(nodes: &[Node], text: &mut String) {
    for node in nodes {
        match node {
            Node::Line(line) => text.push_str(&format!("{line}\n")),
            Node::Block { open, body, close } => {
                text.push_str(&format!("{open}\n"));
                append(body, text);
                text.push_str(&format!("{close}\n"));
            }
        }
    }
}

fn cuts(nodes: &[Node], found: &mut dyn FnMut(Vec<Node>)) {
    for (at, node) in nodes.iter().enumerate() {
        let with = |middle: &[Node]| [&nodes[..at], middle, &nodes[at + 1..]].concat();
        found(with(&[]));
        let Node::Block { open, body, close } = node else { continue };
        found(with(body));
        cuts(body, &mut |body| {
            found(with(&[Node::Block { open: open.clone(), body, close: close.clone() }]));
        });
    }
}

/// What a variable is for. It may come to hold something else: an error, then, that both sides
/// word alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Number,
    Text,
    /// Elements 1..n, without holes.
    List,
    /// A table with named fields, and mostly with a metatable.
    Object,
    Function,
    Coroutine,
    Any,
}

const KINDS: [(Kind, char); 7] = [
    (Kind::Number, 'n'),
    (Kind::Text, 's'),
    (Kind::List, 'l'),
    (Kind::Object, 'o'),
    (Kind::Function, 'f'),
    (Kind::Coroutine, 'c'),
    (Kind::Any, 'a'),
];

struct Maker<'r> {
    random: &'r mut Random,
    /// The variables in sight, the innermost last.
    variables: Vec<(Kind, String)>,
    names: usize,
    /// Whether `...` is in sight.
    is_vararg: bool,
    /// Loops around this place, in its function.
    loops: usize,
}

impl<'r> Maker<'r> {
    fn new(random: &'r mut Random) -> Self {
        Maker { random, variables: Vec::new(), names: 0, is_vararg: true, loops: 0 }
    }

    fn program(&mut self, count: usize) -> Vec<Node> {
        let mut nodes = Vec::new();
        // One variable of each kind, so that nothing has to be made up.
        for (kind, _) in KINDS {
            let value = self.initial(kind);
            let name = self.declare(kind);
            nodes.push(Node::Line(format!("local {name} = {value}")));
        }
        nodes.extend(self.object_with_metatable());
        for _ in 0..count {
            nodes.extend(self.statement(3));
        }
        nodes.push(Node::Line(format!("return {}", self.list_of(3))));
        nodes
    }

    fn initial(&mut self, kind: Kind) -> String {
        match kind {
            Kind::Number => self.number(0),
            Kind::Text => self.text(0),
            Kind::List => self.list(0),
            Kind::Object => "{x = 1, y = 'why'}".to_owned(),
            Kind::Function => "function(...) burn() return ... end".to_owned(),
            Kind::Coroutine => {
                "coroutine.create(function(...) burn() coroutine.yield(...) end)".to_owned()
            }
            Kind::Any => "nil".to_owned(),
        }
    }

    fn pick<'w>(&mut self, of: &[&'w str]) -> &'w str {
        super::pick(self.random, of)
    }

    fn is(&mut self, percent: usize) -> bool {
        self.random.index(100) < percent
    }

    /// A new variable, in sight from now on.
    fn declare(&mut self, kind: Kind) -> String {
        self.names += 1;
        let letter = KINDS.iter().find(|(of, _)| *of == kind).map_or('v', |(_, letter)| *letter);
        let name = format!("{letter}{}", self.names);
        self.variables.push((kind, name.clone()));
        name
    }

    /// A variable of a kind, now and then of another one.
    fn variable(&mut self, kind: Kind) -> String {
        let is_other = self.is(4);
        let fits: Vec<usize> = (0..self.variables.len())
            .filter(|at| is_other || self.variables[*at].0 == kind)
            .collect();
        match fits.len() {
            0 => "nil".to_owned(),
            count => self.variables[fits[self.random.index(count)]].1.clone(),
        }
    }

    /// What is declared inside is out of sight afterwards.
    fn inside<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> T {
        let count = self.variables.len();
        let made = make(self);
        self.variables.truncate(count);
        made
    }
}
