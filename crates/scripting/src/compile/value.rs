//! Small questions about expressions.

use crate::proto::Constant;
use crate::syntax::tree::Expr;

/// The constant that an expression is.
pub(super) fn constant_of(expr: &Expr) -> Option<Constant> {
    match expr {
        Expr::Nil => Some(Constant::Nil),
        Expr::True => Some(Constant::Bool(true)),
        Expr::False => Some(Constant::Bool(false)),
        Expr::Number(number) => Some(Constant::Number(*number)),
        Expr::Str(text) => Some(Constant::Str(text.as_ref().into())),
        Expr::Paren(inner) => constant_of(inner),
        _ => None,
    }
}

/// Whether it may give any number of values.
pub(super) fn is_open(expr: &Expr) -> bool {
    matches!(expr, Expr::Call(_) | Expr::Vararg { .. })
}
