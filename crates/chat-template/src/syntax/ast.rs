//! The tree of a template. The parser bounds its depth, so recursion over the tree ends.

use crate::builtins::filters::FilterFn;
use crate::builtins::tests::TestFn;
use std::sync::Arc;

pub(crate) type Ident = Arc<str>;
pub(crate) type Block = Vec<Stmt>;

#[derive(Debug)]
pub(crate) struct Stmt {
    pub(crate) line: u32,
    pub(crate) kind: StmtKind,
}

#[derive(Debug)]
pub(crate) enum StmtKind {
    Text(Arc<str>),
    Print(Vec<Expr>),
    If {
        branches: Vec<(Expr, Block)>,
        otherwise: Block,
    },
    For(Arc<ForLoop>),
    Set {
        target: Target,
        value: Expr,
    },
    SetBlock {
        target: Target,
        filters: Vec<Postfix>,
        body: Block,
    },
    With {
        assignments: Vec<(Target, Expr)>,
        body: Block,
    },
    FilterBlock {
        filters: Vec<Postfix>,
        body: Block,
    },
    /// A block in its own scope that prints what it holds: `block`, `autoescape`.
    Scope(Block),
    /// Statements inside of `{% generation %}`.
    Generation(Block),
    Macro(Arc<Macro>),
    Call {
        call: Expr,
        caller: Arc<Macro>,
    },
    Break,
    Continue,
    /// An error where evaluation reaches it, with the reason.
    NotHere(&'static str),
}

#[derive(Debug)]
pub(crate) struct ForLoop {
    pub(crate) target: Target,
    pub(crate) items: Expr,
    pub(crate) only_if: Option<Expr>,
    pub(crate) recursive: bool,
    pub(crate) body: Block,
    pub(crate) otherwise: Block,
}

#[derive(Debug)]
pub(crate) struct Macro {
    pub(crate) name: Option<Ident>,
    /// Names with their defaults.
    pub(crate) parameters: Vec<(Ident, Option<Expr>)>,
    pub(crate) body: Block,
    /// Uses of `varargs`, `kwargs` and `caller` in the body: only then does a macro take them.
    pub(crate) takes: ImplicitArguments,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ImplicitArguments {
    pub(crate) varargs: bool,
    pub(crate) kwargs: bool,
    pub(crate) caller: bool,
}

/// Target of an assignment.
#[derive(Debug)]
pub(crate) enum Target {
    Name(Ident),
    Attribute(Ident, Ident),
    Tuple(Vec<Target>),
}

#[derive(Debug)]
pub(crate) struct Expr {
    pub(crate) line: u32,
    pub(crate) kind: ExprKind,
}

#[derive(Debug)]
pub(crate) enum ExprKind {
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Str(Arc<str>),
    Name(Ident),
    List(Vec<Expr>),
    Tuple(Vec<Expr>),
    Dict(Vec<(Expr, Expr)>),
    Not(Box<Expr>),
    Neg(Box<Expr>),
    Pos(Box<Expr>),
    /// Operators of one precedence, from left to right.
    Chain(Box<Expr>, Vec<(Operator, Expr)>),
    Concat(Vec<Expr>),
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Compare(Box<Expr>, Vec<(Comparison, Expr)>),
    /// `first if condition else other if condition …`, from left to right.
    Conditional(Box<Expr>, Vec<(Expr, Option<Expr>)>),
    Postfix(Box<Expr>, Vec<Postfix>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Add,
    Sub,
    Mul,
    Div,
    FloorDiv,
    Mod,
    Pow,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    In,
    NotIn,
}

/// Suffix of an expression.
#[derive(Debug)]
pub(crate) struct Postfix {
    pub(crate) line: u32,
    pub(crate) kind: PostfixKind,
}

#[derive(Debug)]
pub(crate) enum PostfixKind {
    Attribute(Ident),
    Item(Expr),
    Slice(Box<[Option<Expr>; 3]>),
    Call(CallArgs),
    Filter { name: Ident, apply: Option<FilterFn>, args: CallArgs },
    Test { name: Ident, holds: Option<TestFn>, args: CallArgs, negated: bool },
}

#[derive(Debug, Default)]
pub(crate) struct CallArgs {
    pub(crate) positional: Vec<Expr>,
    pub(crate) named: Vec<(Ident, Expr)>,
    pub(crate) more_positional: Option<Box<Expr>>,
    pub(crate) more_named: Option<Box<Expr>>,
}
