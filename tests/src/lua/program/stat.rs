//! Statements, with blocks inside.

use super::{Kind, Maker, Node};

fn line(text: String) -> Vec<Node> {
    vec![Node::Line(text)]
}

fn block(open: String, body: Vec<Node>) -> Vec<Node> {
    vec![Node::Block { open, body, close: "end".to_owned() }]
}

impl Maker<'_> {
    pub(super) fn statement(&mut self, depth: usize) -> Vec<Node> {
        if depth == 0 {
            return self.plain();
        }
        let inner = depth - 1;
        match self.random.index(20) {
            0..=6 => self.plain(),
            7 | 8 => self.function(inner),
            9 => {
                let open = format!("if {} then", self.condition(2));
                let mut body = self.body(inner);
                if self.is(50) {
                    body.push(Node::Line("else".to_owned()));
                    body.extend(self.body(inner));
                }
                block(open, body)
            }
            10..=13 => self.looped(inner),
            14 => block("do".to_owned(), self.body(inner)),
            15 => self.coroutine(inner),
            16 | 17 => self.caught(inner),
            18 => self.object_with_metatable(),
            _ => self.closures(),
        }
    }

    fn body(&mut self, depth: usize) -> Vec<Node> {
        self.inside(|maker| {
            let count = 1 + maker.random.index(3);
            (0..count).flat_map(|_| maker.statement(depth)).collect()
        })
    }

    /// The body of a function, which has no loop around it.
    fn function_body(&mut self, is_vararg: bool, depth: usize) -> Vec<Node> {
        let outer = (self.is_vararg, self.loops);
        (self.is_vararg, self.loops) = (is_vararg, 0);
        let mut body = self.body(depth);
        body.insert(0, Node::Line("burn()".to_owned()));
        if self.is(70) {
            let value = if self.is(40) { self.call(1) } else { self.list_of(2) };
            body.push(Node::Line(format!("do return {value} end")));
        }
        (self.is_vararg, self.loops) = outer;
        body
    }

    fn function(&mut self, depth: usize) -> Vec<Node> {
        let name = self.declare(Kind::Function);
        self.inside(|maker| {
            let (params, is_vararg) = maker.params();
            let body = maker.function_body(is_vararg, depth);
            block(format!("local function {name}({params})"), body)
        })
    }

    fn params(&mut self) -> (String, bool) {
        let kinds = [Kind::Any, Kind::Number, Kind::Text];
        let count = self.random.index(3);
        let mut params: Vec<String> = (0..count).map(|at| self.declare(kinds[at])).collect();
        let is_vararg = self.is(40);
        if is_vararg {
            params.push("...".to_owned());
        }
        (params.join(", "), is_vararg)
    }

    fn looped(&mut self, depth: usize) -> Vec<Node> {
        let (list, text) = (self.variable(Kind::List), self.text(1));
        let (from, limit) = (self.number(0), self.random.index(4));
        let function = self.variable(Kind::Function);
        let condition = self.condition(1);
        self.loops += 1;
        let nodes = self.inside(|maker| {
            let (index, value) = (maker.declare(Kind::Number), maker.declare(Kind::Any));
            let open = match maker.random.index(7) {
                0 => format!("for {index} = {from}, {from} + {limit} do local {value} = {index}"),
                1 => format!("for {index} = 3, {from}, -1 do local {value}"),
                2 => format!("for {index}, {value} in ipairs({list}) do"),
                3 => format!("for {index}, {value} in {function}, {list}, {from} do"),
                4 => format!("for {value} in ({text}):gmatch('%w') do local {index} = {limit}"),
                5 => format!("while {condition} do local {index}, {value} = {from}"),
                _ => format!("for {index}, {value} in coroutine.wrap({function}) do"),
            };
            let mut body = maker.body(depth);
            body.insert(0, Node::Line("burn()".to_owned()));
            block(open, body)
        });
        self.loops -= 1;
        nodes
    }

    fn coroutine(&mut self, depth: usize) -> Vec<Node> {
        let is_wrapped = self.is(40);
        let nodes = self.inside(|maker| {
            let (params, is_vararg) = maker.params();
            (params, maker.function_body(is_vararg, depth))
        });
        let (params, mut body) = nodes;
        let (kind, maker) = match is_wrapped {
            true => (Kind::Function, "wrap"),
            false => (Kind::Coroutine, "create"),
        };
        let at = self.random.index(body.len()) + 1;
        body.insert(at, Node::Line("log('in', coroutine.yield(1, 2))".to_owned()));
        let name = self.declare(kind);
        let open = format!("local {name} = coroutine.{maker}(function({params})");
        vec![Node::Block { open, body, close: "end)".to_owned() }]
    }

    fn caught(&mut self, depth: usize) -> Vec<Node> {
        let (is_handled, handler) = (self.is(30), self.variable(Kind::Function));
        let handler = match self.random.index(3) {
            0 => handler,
            1 => "function(e) log('handler', e) return e, 2 end".to_owned(),
            _ => "function(e) burn() log('handler', e) error(e) end".to_owned(),
        };
        let body = self.inside(|maker| maker.function_body(false, depth));
        let (open, close) = match is_handled {
            true => ("log(xpcall(function()", format!("end, {handler}))")),
            false => ("log(pcall(function()", "end))".to_owned()),
        };
        vec![Node::Block { open: open.to_owned(), body, close }]
    }

    /// Closures that share a variable with each other, or each have their own.
    fn closures(&mut self) -> Vec<Node> {
        let shared = self.variable(Kind::Number);
        let (first, second) = (self.declare(Kind::Function), self.declare(Kind::Function));
        line(format!(
            "local {first}, {second} do local fs, v = {{}}, 0 for i = 1, 3 do local w = i \
             fs[i] = function(d) burn() w = w + 1 v = v + w {shared} = i \
             if d == 'boom' then error(d) end return v, w, i end end \
             {first}, {second} = fs[1], fs[3] log(fs[2]()) end"
        ))
    }

    pub(super) fn object_with_metatable(&mut self) -> Vec<Node> {
        const BINARY: &[&str] = &["add", "sub", "mul", "div", "mod", "pow", "concat"];
        let name = self.declare(Kind::Object);
        let mut fields = Vec::new();
        let outer = std::mem::replace(&mut self.is_vararg, false);
        for event in BINARY.iter().chain(&["eq", "lt", "le", "unm", "call", "index", "newindex"]) {
            if self.is(55) {
                continue;
            }
            let value = self.inside(|maker| {
                maker.variables.push((Kind::Any, "p".to_owned()));
                maker.variables.push((Kind::Any, "q".to_owned()));
                maker.any(1)
            });
            let body = match *event {
                "index" if self.is(30) => self.variable(Kind::Object),
                "newindex" if self.is(30) => self.variable(Kind::Object),
                "newindex" => "function(p, q, r) burn() rawset(p, q, r) end".to_owned(),
                event => format!("function(p, q) burn() log('{event}', p, q) return {value} end"),
            };
            fields.push(format!("__{event} = {body}"));
        }
        self.is_vararg = outer;
        let (number, text) = (self.number(0), self.text(0));
        line(format!(
            "local {name} = setmetatable({{n = {number}, y = {text}}}, {{{}}})",
            fields.join(", ")
        ))
    }

    /// A statement without a block.
    fn plain(&mut self) -> Vec<Node> {
        let text = match self.random.index(20) {
            0 => format!("local {}", self.assigned(Kind::Number, true)),
            1 => format!("local {}", self.assigned(Kind::Text, true)),
            2 => format!("local {}", self.assigned(Kind::Any, true)),
            3 => self.assigned(Kind::Number, false),
            4 => self.assigned(Kind::Text, false),
            5 => self.assigned(Kind::Any, false),
            6 => {
                let (a, b) = (self.variable(Kind::Number), self.variable(Kind::Any));
                format!("{a}, {b} = {}, {a}", self.number(1))
            }
            7 => {
                let name = self.pick(&["x", "y", "z", "n"]);
                format!("{}.{name} = {}", self.variable(Kind::Object), self.any(2))
            }
            8 => {
                let list = self.variable(Kind::List);
                format!("table.insert({list}, ({} or 0))", self.number(1))
            }
            9 => {
                let list = self.variable(Kind::List);
                format!("table.insert({list}, 1, ({} or 0))", self.text(1))
            }
            10 => format!("log(table.remove({}))", self.variable(Kind::List)),
            11 => format!("{0}[#{0} + 1] = ({1} or 0)", self.variable(Kind::List), self.number(1)),
            12 => self.sorted(),
            13 => format!("log({})", self.call(2)),
            14 => format!("log(coroutine.status({}))", self.variable(Kind::Coroutine)),
            15 if self.loops > 0 => format!("if {} then break end", self.condition(1)),
            16 => self.raised(),
            _ => format!("log({})", self.list_of(3)),
        };
        line(text)
    }

    fn assigned(&mut self, kind: Kind, is_new: bool) -> String {
        let value = match kind {
            Kind::Number => self.number(3),
            Kind::Text => self.text(3),
            _ => self.any(3),
        };
        let name = if is_new { self.declare(kind) } else { self.variable(kind) };
        // What is no variable can't be assigned to.
        let name = if name == "nil" { "local nothing".to_owned() } else { name };
        format!("{name} = {value}")
    }

    fn sorted(&mut self) -> String {
        let list = self.variable(Kind::List);
        match self.random.index(3) {
            0 => format!("table.sort({list}) log({list})"),
            1 => format!(
                "table.sort({list}, function(a, b) burn() return tostring(a) < tostring(b) end) \
                 log({list})"
            ),
            _ => {
                let value = self.condition(1).replace("...", "nil");
                format!("table.sort({list}, function(a, b) burn() log(a, b) return {value} end)")
            }
        }
    }

    fn raised(&mut self) -> String {
        let condition = self.condition(1);
        match self.random.index(5) {
            0 => format!("if {condition} then error({}) end", self.any(1)),
            1 => {
                let level = self.random.index(4);
                format!("if {condition} then error({}, {level}) end", self.text(1))
            }
            2 => format!("if {condition} then error({{x = {}}}) end", self.number(0)),
            3 => format!("log(assert({}, {}))", self.any(1), self.text(0)),
            _ => format!("if {condition} then error({{err = {}}}) end", self.any(0)),
        }
    }
}
