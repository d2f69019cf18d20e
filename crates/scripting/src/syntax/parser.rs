//! Statements.

use super::error::SyntaxError;
use super::lexer::{Lexer, shown_name};
use super::scope::Scopes;
use super::token::Token;
use super::tree::{Expr, Function, Index, LocalId, NumericFor, Stat, StatKind, Tree};
use crate::limits::{CHUNK_NAME_BYTES_MAX, SYNTAX_LEVELS_MAX};
use crate::meter::Meter;
use std::sync::Arc;

pub(crate) struct Parser<'s> {
    pub(super) lexer: Lexer<'s>,
    pub(super) token: Token,
    ahead: Option<Token>,
    /// The line of the token before the current one.
    pub(super) last_line: u32,
    /// Blocks and expressions that the parser is inside of.
    pub(super) levels: usize,
    pub(super) scopes: Scopes,
}

/// Parses a chunk; the name is as Lua takes it. `levels` are taken already.
pub(crate) fn parse(
    source: &[u8],
    name: &[u8],
    levels: usize,
    meter: &Meter<'_>,
) -> Result<Tree, SyntaxError> {
    let mut parser = Parser {
        lexer: Lexer::new(source, name, meter),
        token: Token::Eof,
        ahead: None,
        last_line: 1,
        levels,
        scopes: Scopes::default(),
    };
    parser.token = parser.lexer.next()?;
    parser.scopes.enter_function(0);
    parser.scopes.current().is_vararg = true;
    let body = parser.block()?;
    parser.expect(&Token::Eof)?;
    let number = parser.scopes.leave_function().number();
    let main = Function {
        number,
        params: Vec::new(),
        is_vararg: true,
        arg: None,
        body,
        line: 0,
        end_line: parser.last_line,
    };
    let chunk_name = name.into();
    let name = shown_name(name, CHUNK_NAME_BYTES_MAX).into();
    let (functions, locals) = (parser.scopes.functions as usize, parser.scopes.locals);
    Ok(Tree { main, functions, locals, name, chunk_name })
}

impl Parser<'_> {
    pub(super) fn advance(&mut self) -> Result<(), SyntaxError> {
        self.last_line = self.lexer.line;
        self.token = match self.ahead.take() {
            Some(token) => token,
            None => self.lexer.next()?,
        };
        Ok(())
    }

    /// The current token, in whose place the next one comes.
    pub(super) fn take(&mut self) -> Result<Token, SyntaxError> {
        let token = std::mem::replace(&mut self.token, Token::Eof);
        self.advance()?;
        Ok(token)
    }

    pub(super) fn look_ahead(&mut self) -> Result<&Token, SyntaxError> {
        if self.ahead.is_none() {
            self.ahead = Some(self.lexer.next()?);
        }
        Ok(self.ahead.as_ref().unwrap_or(&Token::Eof))
    }

    /// An error near the current token.
    pub(super) fn error(&self, text: &str) -> SyntaxError {
        let near = match &self.token {
            // COMPAT: the end of a text has the same number there, and no name.
            // (tests/corpus/messages.txt)
            Token::Char(0) => return self.lexer.error(text, None),
            Token::Name(_) | Token::Str(_) | Token::Number(_) => self.lexer.text().to_vec(),
            token => token.shown(),
        };
        self.lexer.error(text, Some(&near))
    }

    pub(super) fn deeper(&mut self) -> Result<(), SyntaxError> {
        self.levels += 1;
        if self.levels > SYNTAX_LEVELS_MAX {
            return Err(self.lexer.error("chunk has too many syntax levels", None));
        }
        Ok(())
    }

    pub(super) fn accept(&mut self, token: &Token) -> Result<bool, SyntaxError> {
        let is_next = self.token == *token;
        if is_next {
            self.advance()?;
        }
        Ok(is_next)
    }

    fn expected(&self, token: &Token) -> SyntaxError {
        let shown = token.shown();
        self.error(&format!("'{}' expected", String::from_utf8_lossy(&shown)))
    }

    pub(super) fn expect(&mut self, token: &Token) -> Result<(), SyntaxError> {
        if self.accept(token)? { Ok(()) } else { Err(self.expected(token)) }
    }

    /// Expects what closes something that was opened at a line.
    pub(super) fn expect_close(
        &mut self,
        close: &Token,
        open: &Token,
        line: u32,
    ) -> Result<(), SyntaxError> {
        if self.accept(close)? {
            return Ok(());
        }
        if line == self.lexer.line {
            return Err(self.expected(close));
        }
        let (close, open) = (close.shown(), open.shown());
        Err(self.error(&format!(
            "'{}' expected (to close '{}' at line {line})",
            String::from_utf8_lossy(&close),
            String::from_utf8_lossy(&open)
        )))
    }

    pub(super) fn expect_name(&mut self) -> Result<Arc<[u8]>, SyntaxError> {
        match self.take_name()? {
            Some(name) => Ok(name),
            None => Err(self.error("'<name>' expected")),
        }
    }

    /// The current token and the next in its place, if it is a name.
    pub(super) fn take_name(&mut self) -> Result<Option<Arc<[u8]>>, SyntaxError> {
        if !matches!(self.token, Token::Name(_)) {
            return Ok(None);
        }
        match self.take()? {
            Token::Name(name) => Ok(Some(name)),
            _ => Ok(None),
        }
    }

    fn is_block_end(&self) -> bool {
        matches!(self.token, Token::Else | Token::Elseif | Token::End | Token::Eof | Token::Until)
    }

    /// Statements up to the end of the block, in a scope of their own.
    fn block(&mut self) -> Result<Vec<Stat>, SyntaxError> {
        let mark = self.scopes.mark();
        let stats = self.statements()?;
        self.scopes.leave_block(mark);
        Ok(stats)
    }

    fn statements(&mut self) -> Result<Vec<Stat>, SyntaxError> {
        self.deeper()?;
        let mut stats = Vec::new();
        let mut is_last = false;
        while !is_last && !self.is_block_end() {
            let function_line = (self.token == Token::Function).then_some(self.lexer.line);
            let kind = self.statement()?;
            is_last = matches!(kind, StatKind::Return(_) | StatKind::Break);
            stats.push(Stat { kind, line: function_line.unwrap_or(self.last_line) });
            self.accept(&Token::Char(b';'))?;
        }
        self.levels -= 1;
        Ok(stats)
    }

    fn statement(&mut self) -> Result<StatKind, SyntaxError> {
        let line = self.lexer.line;
        match self.token {
            Token::If => self.if_statement(line),
            Token::While => {
                self.advance()?;
                let condition = self.expr()?;
                self.expect(&Token::Do)?;
                let body = self.loop_block()?;
                self.expect_close(&Token::End, &Token::While, line)?;
                Ok(StatKind::While { condition, body })
            }
            Token::Do => {
                self.advance()?;
                let body = self.block()?;
                self.expect_close(&Token::End, &Token::Do, line)?;
                Ok(StatKind::Do(body))
            }
            Token::For => self.for_statement(line),
            Token::Repeat => self.repeat_statement(line),
            Token::Function => self.function_statement(line),
            Token::Local => {
                self.advance()?;
                if self.accept(&Token::Function)? { self.local_function() } else { self.local() }
            }
            Token::Return => self.return_statement(),
            Token::Break => {
                self.advance()?;
                if self.scopes.current().loops == 0 {
                    return Err(self.error("no loop to break"));
                }
                Ok(StatKind::Break)
            }
            _ => self.expr_statement(),
        }
    }

    fn loop_block(&mut self) -> Result<Vec<Stat>, SyntaxError> {
        self.scopes.current().loops += 1;
        let body = self.block()?;
        self.scopes.current().loops -= 1;
        Ok(body)
    }

    fn if_statement(&mut self, line: u32) -> Result<StatKind, SyntaxError> {
        let mut arms = Vec::new();
        let mut otherwise = None;
        loop {
            self.advance()?;
            let condition = self.expr()?;
            self.expect(&Token::Then)?;
            arms.push((condition, self.block()?));
            if self.token != Token::Elseif {
                break;
            }
        }
        if self.accept(&Token::Else)? {
            otherwise = Some(self.block()?);
        }
        self.expect_close(&Token::End, &Token::If, line)?;
        Ok(StatKind::If { arms, otherwise })
    }

    fn repeat_statement(&mut self, line: u32) -> Result<StatKind, SyntaxError> {
        self.advance()?;
        let mark = self.scopes.mark();
        self.scopes.current().loops += 1;
        let body = self.statements()?;
        self.scopes.current().loops -= 1;
        self.expect_close(&Token::Until, &Token::Repeat, line)?;
        // The condition sees the variables of the body.
        let condition = self.expr()?;
        self.scopes.leave_block(mark);
        Ok(StatKind::Repeat { body, condition })
    }

    fn for_statement(&mut self, line: u32) -> Result<StatKind, SyntaxError> {
        self.advance()?;
        let first = self.expect_name()?;
        let mark = self.scopes.mark();
        let stat = match self.token {
            Token::Char(b'=') => self.numeric_for(first, line)?,
            Token::Char(b',') | Token::In => self.generic_for(first, line)?,
            _ => return Err(self.error("'=' or 'in' expected")),
        };
        self.scopes.leave_block(mark);
        Ok(stat)
    }

    fn numeric_for(&mut self, name: Arc<[u8]>, line: u32) -> Result<StatKind, SyntaxError> {
        self.check_locals(4)?;
        self.advance()?;
        let start = self.expr()?;
        self.expect(&Token::Char(b','))?;
        let limit = self.expr()?;
        let step = if self.accept(&Token::Char(b','))? { Some(self.expr()?) } else { None };
        self.expect(&Token::Do)?;
        let do_line = self.last_line;
        self.hidden_locals();
        let local = self.scopes.declare(name);
        self.activate(local);
        let body = self.loop_block()?;
        self.expect_close(&Token::End, &Token::For, line)?;
        let stat = NumericFor { local, start, limit, step, body, do_line };
        Ok(StatKind::NumericFor(Box::new(stat)))
    }

    /// The three variables that a loop keeps for itself count as locals.
    fn hidden_locals(&mut self) {
        for name in ["(for a)", "(for b)", "(for c)"] {
            let hidden = self.scopes.declare(name.as_bytes().into());
            self.activate(hidden);
        }
    }

    fn generic_for(&mut self, first: Arc<[u8]>, line: u32) -> Result<StatKind, SyntaxError> {
        let mut names = vec![first];
        while self.accept(&Token::Char(b','))? {
            names.push(self.expect_name()?);
            self.check_locals(3 + names.len())?;
        }
        self.expect(&Token::In)?;
        let do_line = self.lexer.line;
        let values = self.expr_list()?;
        self.expect(&Token::Do)?;
        self.check_locals(3 + names.len())?;
        self.hidden_locals();
        let locals: Vec<LocalId> =
            names.into_iter().map(|name| self.scopes.declare(name)).collect();
        for local in &locals {
            self.activate(*local);
        }
        let body = self.loop_block()?;
        self.expect_close(&Token::End, &Token::For, line)?;
        Ok(StatKind::GenericFor { locals, values, body, do_line })
    }

    /// `function a.b:c() ... end`
    fn function_statement(&mut self, line: u32) -> Result<StatKind, SyntaxError> {
        self.advance()?;
        let name = self.expect_name()?;
        let mut target = self.variable(name)?;
        let mut is_method = false;
        while !is_method && matches!(self.token, Token::Char(b'.' | b':')) {
            is_method = self.token == Token::Char(b':');
            self.advance()?;
            let key = Expr::Str(self.expect_name()?);
            target = Expr::Index(Box::new(Index { object: target, key, line: self.last_line }));
        }
        self.assigned(&target);
        let function = self.function_body(is_method, line)?;
        let values = vec![Expr::Function(Box::new(function))];
        Ok(StatKind::Assign { targets: vec![target], values })
    }

    fn local_function(&mut self) -> Result<StatKind, SyntaxError> {
        let name = self.expect_name()?;
        self.check_locals(1)?;
        let local = self.scopes.declare(name);
        self.scopes.locals[local.index()].is_function = true;
        self.activate(local);
        let line = self.lexer.line;
        let function = Box::new(self.function_body(false, line)?);
        Ok(StatKind::LocalFunction { local, function })
    }

    fn local(&mut self) -> Result<StatKind, SyntaxError> {
        let mut names = vec![self.expect_name()?];
        self.check_locals(1)?;
        while self.accept(&Token::Char(b','))? {
            names.push(self.expect_name()?);
            self.check_locals(names.len())?;
        }
        let values = if self.accept(&Token::Char(b'='))? { self.expr_list()? } else { Vec::new() };
        let locals: Vec<LocalId> =
            names.into_iter().map(|name| self.scopes.declare(name)).collect();
        for local in &locals {
            self.activate(*local);
        }
        Ok(StatKind::Local { locals, values })
    }

    fn return_statement(&mut self) -> Result<StatKind, SyntaxError> {
        self.advance()?;
        if self.is_block_end() || self.token == Token::Char(b';') {
            return Ok(StatKind::Return(Vec::new()));
        }
        Ok(StatKind::Return(self.expr_list()?))
    }

    fn expr_statement(&mut self) -> Result<StatKind, SyntaxError> {
        let first = self.primary_expr()?;
        if matches!(first, Expr::Call(_)) {
            return Ok(StatKind::Call(first));
        }
        let mut targets = vec![first];
        loop {
            let is_target = matches!(
                targets.last(),
                Some(Expr::Local { .. } | Expr::Global { .. } | Expr::Index(_))
            );
            if !is_target {
                return Err(self.error("syntax error"));
            }
            if !self.accept(&Token::Char(b','))? {
                break;
            }
            targets.push(self.primary_expr()?);
            if self.levels + targets.len() > SYNTAX_LEVELS_MAX + 1 {
                let limit = SYNTAX_LEVELS_MAX - self.levels;
                return Err(self.limit_error(limit, "variables in assignment", None));
            }
        }
        self.expect(&Token::Char(b'='))?;
        let values = self.expr_list()?;
        for target in &targets {
            self.assigned(target);
        }
        Ok(StatKind::Assign { targets, values })
    }

    fn assigned(&mut self, target: &Expr) {
        if let Expr::Local { id, .. } = target {
            self.scopes.locals[id.index()].is_assigned = true;
        }
    }

    /// Parameters and body of a function; the word `function` and its name are behind.
    pub(super) fn function_body(
        &mut self,
        is_method: bool,
        line: u32,
    ) -> Result<Function, SyntaxError> {
        self.scopes.enter_function(line);
        let mut params = Vec::new();
        self.expect(&Token::Char(b'('))?;
        if is_method {
            params.push(self.scopes.declare(b"self".as_slice().into()));
        }
        let is_vararg = self.parameters(&mut params)?;
        for param in &params {
            self.activate(*param);
        }
        let arg = is_vararg.then(|| self.scopes.declare(b"arg".as_slice().into()));
        if let Some(arg) = arg {
            self.activate(arg);
        }
        self.scopes.current().is_vararg = is_vararg;
        self.expect(&Token::Char(b')'))?;
        let body = self.block()?;
        let end_line = self.lexer.line;
        self.expect_close(&Token::End, &Token::Function, line)?;
        let open = self.scopes.leave_function();
        let arg = arg.map(|arg| (arg, !open.uses_dots));
        Ok(Function { number: open.number(), params, is_vararg, arg, body, line, end_line })
    }

    fn parameters(&mut self, params: &mut Vec<LocalId>) -> Result<bool, SyntaxError> {
        if self.token == Token::Char(b')') {
            return Ok(false);
        }
        loop {
            if let Some(name) = self.take_name()? {
                params.push(self.scopes.declare(name));
                self.check_locals(params.len())?;
            } else if self.accept(&Token::Dots)? {
                return Ok(true);
            } else {
                return Err(self.error("<name> or '...' expected"));
            }
            if !self.accept(&Token::Char(b','))? {
                return Ok(false);
            }
        }
    }
}
