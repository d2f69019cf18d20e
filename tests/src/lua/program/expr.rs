//! Expressions, each with a kind of value in mind.

use super::{Kind, Maker};

impl Maker<'_> {
    pub(super) fn number(&mut self, depth: usize) -> String {
        const PLAIN: &[&str] =
            &["0", "1", "2", "3", "-1", "0.5", "10", "1e15", "-7", "'4'", "0x10", "2^53"];
        if depth == 0 {
            return match self.random.index(3) {
                0 => self.variable(Kind::Number),
                _ => self.pick(PLAIN).to_owned(),
            };
        }
        let depth = depth - 1;
        match self.random.index(17) {
            0..=2 => {
                let operator = self.pick(&["+", "-", "*", "/", "%", "+", "-"]);
                format!("({} {operator} {})", self.number(depth), self.number(depth))
            }
            3 => format!("(- {})", self.number(depth)),
            4 => format!("#{}", self.variable(Kind::Text)),
            5 => format!("#{}", self.variable(Kind::List)),
            6 => format!("tonumber({})", self.text(depth)),
            7 => {
                let field = self.pick(&["x", "n", "z", "y"]);
                format!("{}.{field}", self.variable(Kind::Object))
            }
            8 => format!("select('#', {})", self.list_of(2)),
            9 => {
                let name = self.pick(&["floor", "abs", "ceil"]);
                format!("math.{name}({})", self.number(depth))
            }
            10 => {
                let operator = self.pick(&["+", "-", "*", "/", "%", "^"]);
                let (object, other) = (self.variable(Kind::Object), self.number(depth));
                match self.is(50) {
                    true => format!("({object} {operator} {other})"),
                    false => format!("({other} {operator} {object})"),
                }
            }
            11 => format!("({})", self.call(depth)),
            12 => format!("({} and {} or 5)", self.condition(depth), self.number(depth)),
            13 => format!("math.max({}, {})", self.number(depth), self.number(depth)),
            14 => format!("({} or 1)", self.element()),
            15 => format!("(- {})", self.variable(Kind::Object)),
            _ => self.variable(Kind::Number),
        }
    }

    fn element(&mut self) -> String {
        let list = self.variable(Kind::List);
        match self.random.index(3) {
            0 => format!("{list}[#{list}]"),
            1 => format!("{list}[{}]", self.random.index(4)),
            _ => format!("{list}[{}]", self.variable(Kind::Number)),
        }
    }

    pub(super) fn text(&mut self, depth: usize) -> String {
        const PLAIN: &[&str] = &["'a'", "'b,c'", "''", "'10'", "' 7 '", "'0x1f'", "'Hello'"];
        if depth == 0 {
            return match self.random.index(2) {
                0 => self.variable(Kind::Text),
                _ => self.pick(PLAIN).to_owned(),
            };
        }
        let depth = depth - 1;
        match self.random.index(16) {
            0 | 1 => format!("cut({} .. {})", self.text(depth), self.text(depth)),
            2 => format!("cut({} .. {})", self.text(depth), self.number(depth)),
            3 => {
                let name = self.pick(&["upper", "lower", "reverse"]);
                format!("{}:{name}()", self.variable(Kind::Text))
            }
            4 => {
                let (text, from) = (self.text(depth), self.number(0));
                format!("string.sub({text}, {from}, {})", self.number(0))
            }
            5 => format!("cut(string.rep({}, {}))", self.text(depth), self.random.index(4)),
            6 => {
                let format = self.pick(&["'%s|%5.1f'", "'%q%g'", "'%s%d'", "'%-4s%x'", "'%s%i'"]);
                format!("cut(string.format({format}, {}, {}))", self.text(0), self.number(depth))
            }
            7 => format!("tostring({})", self.number(depth)),
            8 => format!("type({})", self.any(depth)),
            9 => format!("cut(table.concat({}, ';'))", self.variable(Kind::List)),
            10 => {
                let pattern = self.pick(&["'%w'", "'(.)(.)'", "'l+'", "'%d*'", "'^.'", "'[a-c]'"]);
                let by = self.replacement(depth);
                format!("cut((string.gsub({}, {pattern}, {by})))", self.text(depth))
            }
            11 => {
                let pattern = self.pick(&["'%a+'", "'(%d)'", "'().'", "'[^,]+'", "'%s*(.-)%s*$'"]);
                format!("({}):match({pattern})", self.text(depth))
            }
            12 => format!("cut({} .. 'z')", self.variable(Kind::Object)),
            13 => format!("tostring({} < {})", self.text(depth), self.text(depth)),
            14 => format!("cut(keys({}))", self.variable(Kind::Object)),
            _ => self.variable(Kind::Text),
        }
    }

    fn replacement(&mut self, depth: usize) -> String {
        match self.random.index(4) {
            0 => "'<%0>'".to_owned(),
            1 => "{a = 1, l = 'L', H = false}".to_owned(),
            2 => self.variable(Kind::Function),
            _ => {
                let value = self.inside(|maker| {
                    maker.variables.push((Kind::Text, "m".to_owned()));
                    maker.any(depth)
                });
                // A function in a function has no `...` of its own.
                format!("function(m) burn() return {} end", value.replace("...", "m"))
            }
        }
    }

    /// Elements that are never nil.
    pub(super) fn list(&mut self, depth: usize) -> String {
        let count = self.random.index(5);
        let elements: Vec<String> = (0..count)
            .map(|_| match self.random.index(3) {
                0 => format!("({} or 0)", self.text(depth)),
                _ => format!("({} or 0)", self.number(depth)),
            })
            .collect();
        format!("{{{}}}", elements.join(", "))
    }

    /// A value of any kind.
    pub(super) fn any(&mut self, depth: usize) -> String {
        if depth == 0 {
            return match self.random.index(6) {
                0 => self.pick(&["nil", "true", "false"]).to_owned(),
                1 => self.variable(Kind::Any),
                2 => self.variable(Kind::Object),
                3 => self.text(0),
                4 if self.is_vararg => "...".to_owned(),
                _ => self.number(0),
            };
        }
        match self.random.index(10) {
            0 | 1 => self.number(depth),
            2 | 3 => self.text(depth),
            4 => self.call(depth - 1),
            5 => self.variable(Kind::Function),
            6 => self.condition(depth - 1),
            7 => format!("{{x = {}, {}}}", self.any(0), self.number(0)),
            8 => {
                let name = self.pick(&["x", "y", "z", "n"]);
                format!("rawget({}, '{name}')", self.variable(Kind::Object))
            }
            _ => self.any(0),
        }
    }

    /// Values with commas between them.
    pub(super) fn list_of(&mut self, count_max: usize) -> String {
        let count = 1 + self.random.index(count_max);
        let values: Vec<String> = (0..count).map(|_| self.any(1)).collect();
        values.join(", ")
    }

    pub(super) fn condition(&mut self, depth: usize) -> String {
        let depth = depth.saturating_sub(1);
        match self.random.index(9) {
            0 | 1 => {
                let operator = self.pick(&["<", "<=", ">", ">=", "==", "~="]);
                format!("({} {operator} {})", self.number(depth), self.number(depth))
            }
            2 => {
                let operator = self.pick(&["<", "<=", "==", "~="]);
                format!("({} {operator} {})", self.text(depth), self.text(depth))
            }
            3 | 4 => {
                let operator = self.pick(&["<", "<=", ">", "==", "~="]);
                let (a, b) = (self.variable(Kind::Object), self.variable(Kind::Object));
                format!("({a} {operator} {b})")
            }
            5 => format!("(not {})", self.any(depth)),
            6 => {
                let operator = self.pick(&["and", "or"]);
                format!("({} {operator} {})", self.any(0), self.condition(depth))
            }
            7 => format!("({} == {})", self.any(depth), self.any(depth)),
            _ => format!("rawequal({}, {})", self.any(0), self.any(0)),
        }
    }

    /// A call, which gives any number of values.
    pub(super) fn call(&mut self, depth: usize) -> String {
        let function = self.variable(Kind::Function);
        let args = self.list_of(3);
        match self.random.index(12) {
            0..=2 => format!("{function}({args})"),
            3 | 4 => format!("pcall({function}, {args})"),
            5 => format!("xpcall({function}, {})", self.variable(Kind::Function)),
            6 => format!("coroutine.resume({}, {args})", self.variable(Kind::Coroutine)),
            7 => format!("{}({args})", self.variable(Kind::Object)),
            8 => format!("unpack({})", self.variable(Kind::List)),
            9 if self.is_vararg => format!("select({}, ...)", self.number(depth.min(1))),
            10 => {
                let name = self.pick(&["x", "y", "z"]);
                format!("{}:{name}({args})", self.variable(Kind::Object))
            }
            _ => format!("coroutine.yield({args})"),
        }
    }
}
