//! Expressions.

use super::error::SyntaxError;
use super::parser::Parser;
use super::token::Token;
use super::tree::{Arith, Binary, Call, Expr, Index, Item, Pair, Relation, Table, Unary};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Infix {
    Arith(Arith),
    Compare(Relation),
    Concat,
    And,
    Or,
}

/// A list of several expressions has room for so many at first.
const LIST_ROOM: usize = 4;

/// Binds tighter than any binary operator but `^`.
const UNARY_PRIORITY: u8 = 8;

/// The operator with its priorities towards left and right.
fn infix(token: &Token) -> Option<(Infix, u8, u8)> {
    Some(match token {
        Token::Char(b'+') => (Infix::Arith(Arith::Add), 6, 6),
        Token::Char(b'-') => (Infix::Arith(Arith::Sub), 6, 6),
        Token::Char(b'*') => (Infix::Arith(Arith::Mul), 7, 7),
        Token::Char(b'/') => (Infix::Arith(Arith::Div), 7, 7),
        Token::Char(b'%') => (Infix::Arith(Arith::Mod), 7, 7),
        Token::Char(b'^') => (Infix::Arith(Arith::Pow), 10, 9),
        Token::Concat => (Infix::Concat, 5, 4),
        Token::Ne => (Infix::Compare(Relation::Ne), 3, 3),
        Token::Eq => (Infix::Compare(Relation::Eq), 3, 3),
        Token::Char(b'<') => (Infix::Compare(Relation::Lt), 3, 3),
        Token::Le => (Infix::Compare(Relation::Le), 3, 3),
        Token::Char(b'>') => (Infix::Compare(Relation::Gt), 3, 3),
        Token::Ge => (Infix::Compare(Relation::Ge), 3, 3),
        Token::And => (Infix::And, 2, 2),
        Token::Or => (Infix::Or, 1, 1),
        _ => return None,
    })
}

impl Parser<'_> {
    pub(super) fn expr(&mut self) -> Result<Expr, SyntaxError> {
        self.sub_expr(0)
    }

    pub(super) fn expr_list(&mut self) -> Result<Vec<Expr>, SyntaxError> {
        let first = self.expr()?;
        if self.token != Token::Char(b',') {
            return Ok(vec![first]);
        }
        let mut list = Vec::with_capacity(LIST_ROOM);
        list.push(first);
        while self.accept(&Token::Char(b','))? {
            list.push(self.expr()?);
        }
        Ok(list)
    }

    fn sub_expr(&mut self, limit: u8) -> Result<Expr, SyntaxError> {
        self.deeper()?;
        let unary = match self.token {
            Token::Not => Some(Unary::Not),
            Token::Char(b'-') => Some(Unary::Neg),
            Token::Char(b'#') => Some(Unary::Len),
            _ => None,
        };
        let mut left = match unary {
            Some(kind) => {
                self.advance()?;
                let operand = self.sub_expr(UNARY_PRIORITY)?;
                prefixed(kind, operand, self.last_line)
            }
            None => self.simple_expr()?,
        };
        while let Some((operator, left_priority, right_priority)) = infix(&self.token) {
            if left_priority <= limit {
                break;
            }
            self.advance()?;
            let right = self.sub_expr(right_priority)?;
            left = joined(operator, left, right, self.last_line);
        }
        self.levels -= 1;
        Ok(left)
    }

    fn simple_expr(&mut self) -> Result<Expr, SyntaxError> {
        let expr = match &self.token {
            Token::Number(number) => Expr::Number(*number),
            Token::Str(_) => {
                let Token::Str(text) = self.take()? else { return Ok(Expr::Nil) };
                return Ok(Expr::Str(text));
            }
            Token::Nil => Expr::Nil,
            Token::True => Expr::True,
            Token::False => Expr::False,
            Token::Dots => {
                if !self.scopes.current().is_vararg {
                    return Err(self.error("cannot use '...' outside a vararg function"));
                }
                self.scopes.current().uses_dots = true;
                Expr::Vararg { line: self.lexer.line }
            }
            Token::Char(b'{') => return self.table(),
            Token::Function => {
                self.advance()?;
                let line = self.lexer.line;
                return Ok(Expr::Function(Box::new(self.function_body(false, line)?)));
            }
            _ => return self.primary_expr(),
        };
        self.advance()?;
        Ok(expr)
    }

    fn prefix_expr(&mut self) -> Result<Expr, SyntaxError> {
        if let Some(name) = self.take_name()? {
            return self.variable(name);
        }
        match self.token {
            Token::Char(b'(') => {
                let line = self.lexer.line;
                self.advance()?;
                let inner = self.expr()?;
                self.expect_close(&Token::Char(b')'), &Token::Char(b'('), line)?;
                let is_literal = matches!(
                    inner,
                    Expr::Nil | Expr::True | Expr::False | Expr::Number(_) | Expr::Str(_)
                );
                Ok(if is_literal { inner } else { Expr::Paren(Box::new(inner)) })
            }
            _ => Err(self.error("unexpected symbol")),
        }
    }

    /// A variable, call or index, with all that follows it.
    pub(super) fn primary_expr(&mut self) -> Result<Expr, SyntaxError> {
        let mut expr = self.prefix_expr()?;
        loop {
            expr = match self.token {
                Token::Char(b'.') => {
                    self.advance()?;
                    let key = Expr::Str(self.expect_name()?);
                    Expr::Index(Box::new(Index { object: expr, key, line: self.last_line }))
                }
                Token::Char(b'[') => {
                    let key = self.bracketed()?;
                    Expr::Index(Box::new(Index { object: expr, key, line: self.last_line }))
                }
                Token::Char(b':') => {
                    self.advance()?;
                    let name = self.expect_name()?;
                    self.call(expr, Some(name))?
                }
                Token::Char(b'(' | b'{') | Token::Str(_) => self.call(expr, None)?,
                _ => return Ok(expr),
            };
        }
    }

    fn bracketed(&mut self) -> Result<Expr, SyntaxError> {
        self.advance()?;
        let key = self.expr()?;
        self.expect(&Token::Char(b']'))?;
        Ok(key)
    }

    fn call(
        &mut self,
        function: Expr,
        method: Option<std::sync::Arc<[u8]>>,
    ) -> Result<Expr, SyntaxError> {
        let line = self.lexer.line;
        let args = match self.token {
            Token::Char(b'(') => {
                if line != self.last_line {
                    let text = "ambiguous syntax (function call x new statement)";
                    return Err(self.error(text));
                }
                self.advance()?;
                let args = match self.token {
                    Token::Char(b')') => Vec::new(),
                    _ => self.expr_list()?,
                };
                self.expect_close(&Token::Char(b')'), &Token::Char(b'('), line)?;
                args
            }
            Token::Char(b'{') => vec![self.table()?],
            Token::Str(_) => vec![self.simple_expr()?],
            _ => return Err(self.error("function arguments expected")),
        };
        Ok(Expr::Call(Box::new(Call { function, method, args, line })))
    }

    fn table(&mut self) -> Result<Expr, SyntaxError> {
        let line = self.lexer.line;
        self.expect(&Token::Char(b'{'))?;
        let mut items = Vec::new();
        while self.token != Token::Char(b'}') {
            let is_word = matches!(self.token, Token::Name(_));
            let is_named = is_word && *self.look_ahead()? == Token::Char(b'=');
            let item = match self.token {
                Token::Name(_) if is_named => {
                    let name = self.expect_name()?;
                    self.advance()?;
                    Item::Field(Expr::Str(name), self.expr()?, self.last_line)
                }
                Token::Char(b'[') => {
                    let key = self.bracketed()?;
                    self.expect(&Token::Char(b'='))?;
                    Item::Field(key, self.expr()?, self.last_line)
                }
                _ => Item::Element(self.expr()?),
            };
            items.push(item);
            if !self.accept(&Token::Char(b','))? && !self.accept(&Token::Char(b';'))? {
                break;
            }
        }
        self.expect_close(&Token::Char(b'}'), &Token::Char(b'{'), line)?;
        Ok(Expr::Table(Box::new(Table { items, line: self.last_line })))
    }
}

fn prefixed(kind: Unary, operand: Expr, line: u32) -> Expr {
    match (kind, &operand) {
        (Unary::Neg, Expr::Number(number)) if !number.is_nan() => Expr::Number(-number),
        _ => Expr::Unary { kind, operand: Box::new(operand), line },
    }
}

fn joined(operator: Infix, left: Expr, right: Expr, line: u32) -> Expr {
    match operator {
        Infix::Arith(kind) => match (&left, &right) {
            (Expr::Number(a), Expr::Number(b)) => match folded(kind, *a, *b) {
                Some(number) => Expr::Number(number),
                None => Expr::Arith(Box::new(Binary { kind, left, right, line })),
            },
            _ => Expr::Arith(Box::new(Binary { kind, left, right, line })),
        },
        Infix::Compare(kind) => Expr::Compare(Box::new(Binary { kind, left, right, line })),
        Infix::Concat => match right {
            // `a .. (b .. c)` without the parentheses, which would be a `Paren`.
            Expr::Concat { mut parts, .. } => {
                parts.insert(0, left);
                Expr::Concat { parts, line }
            }
            right => Expr::Concat { parts: vec![left, right], line },
        },
        Infix::And => Expr::And(Box::new(Pair(left, right))),
        Infix::Or => Expr::Or(Box::new(Pair(left, right))),
    }
}

/// The value of an operation on constants, unless it is better left to the run.
fn folded(kind: Arith, a: f64, b: f64) -> Option<f64> {
    let value = match kind {
        Arith::Add => a + b,
        Arith::Sub => a - b,
        Arith::Mul => a * b,
        Arith::Div if b != 0.0 => a / b,
        Arith::Mod if b != 0.0 => a - (a / b).floor() * b,
        Arith::Pow => a.powf(b),
        _ => return None,
    };
    (!value.is_nan()).then_some(value)
}
