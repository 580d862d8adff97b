//! Expressions. The walk of one answers whether it is made of literals only.

use sqlparser::ast::{
    AccessExpr, ArrayElemTypeDef, BinaryOperator, CaseWhen, CastKind, CeilFloorKind, DataType, Expr, Ident, JsonPath,
    JsonPathElem, ObjectName, Subscript, UnaryOperator, Value,
};

use super::likeness::folded_text;
use super::{RefusedFunction, Walker, last, position};
use crate::sql::dialect::Dialect;
use crate::sql::functions::{Effect, effect_of};
use crate::sql::keywords;

impl<'a> Walker<'a> {
    pub(super) fn exprs(&mut self, exprs: &'a [Expr]) {
        for expr in exprs {
            self.expr(expr);
        }
    }

    /// Walks expressions of which all must be constant for the whole to be.
    pub(super) fn all(&mut self, exprs: impl IntoIterator<Item = &'a Expr>) -> bool {
        let mut constant = true;
        for expr in exprs {
            constant &= self.expr(expr);
        }
        constant
    }

    /// Walks an expression; true if it is made of literals only.
    pub(super) fn expr(&mut self, expr: &'a Expr) -> bool {
        if !self.deeper() {
            return false;
        }
        let constant = self.node(expr);
        self.back_up();
        constant
    }

    fn node(&mut self, expr: &'a Expr) -> bool {
        match expr {
            Expr::Value(value) => {
                let is_parameter = matches!(value.value, Value::Placeholder(_));
                if is_parameter {
                    self.meets_data();
                }
                !is_parameter
            }
            Expr::Identifier(ident) => self.identifier(ident),
            Expr::CompoundIdentifier(parts) => {
                match parts.first() {
                    Some(first) if is_variable(first) => self.variable(first),
                    _ => self.qualified_column(parts),
                }
                false
            }
            Expr::BinaryOp { .. } => self.binary(expr),
            Expr::Nested(inner) => self.expr(inner),
            Expr::Function(function) => self.function(function),
            Expr::UnaryOp { op, expr } => {
                self.unary_operator(*op);
                self.expr(expr)
            }
            Expr::IsFalse(expr)
            | Expr::IsNotFalse(expr)
            | Expr::IsTrue(expr)
            | Expr::IsNotTrue(expr)
            | Expr::IsNull(expr)
            | Expr::IsNotNull(expr)
            | Expr::IsUnknown(expr)
            | Expr::IsNotUnknown(expr)
            | Expr::IsJson { expr, kind: _, unique_keys: _, negated: _ }
            | Expr::IsNormalized { expr, form: _, negated: _ } => self.expr(expr),
            Expr::IsDistinctFrom(left, right) | Expr::IsNotDistinctFrom(left, right) => self.all([&**left, &**right]),
            Expr::InList { expr, list, negated: _ } => self.all([&**expr].into_iter().chain(list)),
            Expr::InSubquery { expr, subquery, negated: _ } => {
                let constant = self.expr(expr);
                self.query(subquery).constant && constant
            }
            Expr::InUnnest { expr, array_expr, negated: _ } => self.all([&**expr, &**array_expr]),
            Expr::Between { expr, negated: _, low, high } => self.all([&**expr, &**low, &**high]),
            Expr::Like { negated: _, any: _, expr, pattern, escape_char }
            | Expr::ILike { negated: _, any: _, expr, pattern, escape_char }
            | Expr::SimilarTo { negated: _, expr, pattern, escape_char } => {
                self.all([&**expr, &**pattern].into_iter().chain(escape_char.as_deref()))
            }
            Expr::RLike { negated: _, expr, pattern, regexp: _ } => self.all([&**expr, &**pattern]),
            Expr::AnyOp { left, compare_op, right, is_some: _ } | Expr::AllOp { left, compare_op, right } => {
                self.operator(compare_op);
                self.all([&**left, &**right])
            }
            Expr::Case { case_token: _, end_token: _, operand, conditions, else_result } => {
                self.case(operand.as_deref(), conditions, else_result.as_deref())
            }
            Expr::Exists { subquery, negated: _ } | Expr::Subquery(subquery) => self.query(subquery).constant,
            Expr::Cast { kind, expr, data_type, format: _ } => {
                if *kind == CastKind::DoubleColon {
                    self.only_in(&[Dialect::Postgres, Dialect::Snowflake]);
                }
                self.data_type(data_type);
                self.expr(expr)
            }
            Expr::Convert { is_try: _, expr, data_type, charset, target_before_value: _, styles } => {
                if let Some(data_type) = data_type {
                    self.data_type(data_type);
                }
                if let Some(charset) = charset {
                    self.name(charset);
                }
                self.all([&**expr].into_iter().chain(styles))
            }
            Expr::TypedString(typed) => {
                self.absent(!typed.uses_odbc_syntax, "an escape of ODBC");
                self.data_type(&typed.data_type);
                true
            }
            Expr::Interval(interval) => self.expr(&interval.value),
            Expr::AtTimeZone { timestamp, time_zone } => self.all([&**timestamp, &**time_zone]),
            Expr::Extract { field: _, syntax: _, expr } => self.expr(expr),
            Expr::Ceil { expr, field } | Expr::Floor { expr, field } => match field {
                CeilFloorKind::DateTimeField(_) | CeilFloorKind::Scale(_) => self.expr(expr),
            },
            Expr::Position { expr, r#in } => self.all([&**expr, &**r#in]),
            Expr::Substring { expr, substring_from, substring_for, special: _, shorthand: _ } => {
                self.all([Some(&**expr), substring_from.as_deref(), substring_for.as_deref()].into_iter().flatten())
            }
            Expr::Trim { trim_where: _, trim_what, expr, trim_characters } => {
                let characters = trim_characters.iter().flatten();
                self.all([Some(&**expr), trim_what.as_deref()].into_iter().flatten().chain(characters))
            }
            Expr::Overlay { expr, overlay_what, overlay_from, overlay_for } => {
                let parts = [Some(&**expr), Some(&**overlay_what), Some(&**overlay_from), overlay_for.as_deref()];
                self.all(parts.into_iter().flatten())
            }
            Expr::Collate { expr, collation } => {
                self.name(collation);
                self.expr(expr)
            }
            Expr::Tuple(exprs) => self.all(exprs),
            Expr::Array(array) => {
                self.only_in(&[Dialect::Postgres, Dialect::Snowflake, Dialect::Bigquery]);
                self.all(&array.elem)
            }
            Expr::GroupingSets(sets) | Expr::Cube(sets) | Expr::Rollup(sets) => self.all(sets.iter().flatten()),
            Expr::Struct { values, fields } => {
                for field in fields {
                    self.absent(field.options.is_none(), "an option of a field");
                    self.data_type(&field.field_type);
                }
                self.all(values)
            }
            Expr::Named { expr, name } => {
                self.ident(name);
                self.expr(expr)
            }
            Expr::MemberOf(member) => self.all([&*member.value, &*member.array]),
            Expr::MatchAgainst { columns, match_value: _, opt_search_modifier: _ } => {
                for column in columns.iter().filter_map(last) {
                    self.bare_column(column);
                }
                false
            }
            Expr::CompoundFieldAccess { root, access_chain } => self.access(root, access_chain),
            Expr::JsonAccess { value, path } => {
                self.only_in(&[Dialect::Snowflake]);
                self.path(path);
                self.expr(value)
            }
            Expr::QualifiedWildcard(name, _) => {
                self.qualified_star(name, &[]);
                false
            }
            _ => {
                self.unknown("a kind of expression");
                false
            }
        }
    }

    fn identifier(&mut self, ident: &'a Ident) -> bool {
        let is_default = ident.quote_style.is_none() && ident.value.eq_ignore_ascii_case("default");
        if is_variable(ident) {
            self.variable(ident);
        } else if !is_default {
            self.bare_column(ident);
        }
        false
    }

    /// `@p` is a parameter; `@@name` belongs to the server.
    fn variable(&mut self, ident: &'a Ident) {
        if !ident.value.starts_with("@@") {
            self.meets_data();
        }
    }

    /// A chain of operators leans to the left and can be long.
    fn binary(&mut self, expr: &'a Expr) -> bool {
        let mut expr = expr;
        let mut constant = true;
        while let Expr::BinaryOp { left, op, right } = expr {
            self.operator(op);
            if is_json_access(op) {
                self.json_key(right);
            }
            constant &= self.expr(right);
            expr = left;
        }
        self.expr(expr) && constant
    }

    fn case(&mut self, operand: Option<&'a Expr>, conditions: &'a [CaseWhen], otherwise: Option<&'a Expr>) -> bool {
        let mut constant = true;
        match operand {
            None => {
                for CaseWhen { condition, result: _ } in conditions {
                    self.predicate(condition);
                    constant = false;
                }
            }
            Some(operand) => {
                let fixed = self.expr(operand);
                for CaseWhen { condition, result: _ } in conditions {
                    if (self.expr(condition) && fixed) || self.are_same(operand, condition, 0) {
                        self.tautology(operand);
                    }
                    constant &= fixed;
                }
            }
        }
        for CaseWhen { condition: _, result } in conditions {
            constant &= self.expr(result);
        }
        otherwise.is_none_or(|otherwise| self.expr(otherwise)) && constant
    }

    fn access(&mut self, root: &'a Expr, chain: &'a [AccessExpr]) -> bool {
        let mut constant = self.expr(root);
        for access in chain {
            match access {
                AccessExpr::Dot(Expr::Identifier(field)) => self.field(field),
                AccessExpr::Dot(_) => self.unknown("a kind of field"),
                AccessExpr::Subscript(Subscript::Index { index }) => {
                    if let Expr::Value(key) = index {
                        self.json_path(&key.value);
                    }
                    constant &= self.expr(index);
                }
                AccessExpr::Subscript(Subscript::Slice { lower_bound, upper_bound, stride }) => {
                    constant &= self.all([lower_bound, upper_bound, stride].into_iter().flatten());
                }
            }
        }
        constant
    }

    /// `(x).field`. PostgreSQL calls a function of that name if there is no such field: `(60.0).pg_sleep`.
    fn field(&mut self, field: &'a Ident) {
        self.column(field);
        if self.dialect == Dialect::Postgres {
            self.unknown("a field that may be a function");
            if effect_of(&field.value, self.dialect) == Some(Effect::Harmful) {
                self.found.function = Some(RefusedFunction { at: position(field), harmful: true });
            }
        }
    }

    fn path(&mut self, path: &'a JsonPath) {
        for element in &path.path {
            match element {
                JsonPathElem::Dot { key, quoted: _ } => self.json_keys(key),
                JsonPathElem::Bracket { key } | JsonPathElem::ColonBracket { key } => {
                    if let Expr::Value(key) = key {
                        self.json_path(&key.value);
                    }
                    self.expr(key);
                }
            }
        }
    }

    /// What stands behind an operator on JSON: a text, or an array of texts.
    fn json_key(&mut self, key: &'a Expr) {
        let mut key = key;
        loop {
            match key {
                Expr::Nested(inner) | Expr::Cast { expr: inner, .. } => key = inner,
                Expr::Value(value) => return self.json_path(&value.value),
                Expr::Array(array) => {
                    for element in &array.elem {
                        match element {
                            Expr::Value(value) => self.json_path(&value.value),
                            other => self.folded_key(other),
                        }
                    }
                    return;
                }
                other => return self.folded_key(other),
            }
        }
    }

    /// A key that is put together from literals.
    fn folded_key(&mut self, key: &Expr) {
        if let Some(text) = folded_text(key, 0) {
            self.json_keys(&text);
        }
    }

    /// The key or path by which something is taken out of JSON.
    pub(super) fn json_path(&mut self, value: &'a Value) {
        match value {
            // What its escapes stand for is not looked at.
            Value::EscapedStringLiteral(text) | Value::UnicodeStringLiteral(text) if text.contains('\\') => {
                self.unknown("an escape in a key");
            }
            Value::SingleQuotedString(text)
            | Value::NationalStringLiteral(text)
            | Value::UnicodeStringLiteral(text)
            | Value::EscapedStringLiteral(text) => self.json_keys(text),
            Value::DollarQuotedString(text) => self.json_keys(&text.value),
            _ => {}
        }
    }

    pub(super) fn json_keys(&mut self, path: &str) {
        if path.contains('\\') {
            self.unknown("an escape in a key");
        }
        let keys = path.split(|letter: char| !(letter.is_alphanumeric() || letter == '_' || letter == '-'));
        if keys.into_iter().any(|key| self.rules.is_sensitive(key)) {
            self.found.sensitive.get_or_insert(0);
        }
    }

    fn unary_operator(&mut self, operator: UnaryOperator) {
        match operator {
            UnaryOperator::BangNot
            | UnaryOperator::BitwiseNot
            | UnaryOperator::Plus
            | UnaryOperator::Minus
            | UnaryOperator::Not
            | UnaryOperator::PGAbs
            | UnaryOperator::PGCubeRoot
            | UnaryOperator::PGSquareRoot => {}
            UnaryOperator::AtDashAt
            | UnaryOperator::DoubleAt
            | UnaryOperator::Hash
            | UnaryOperator::PGPostfixFactorial
            | UnaryOperator::PGPrefixFactorial
            | UnaryOperator::QuestionDash
            | UnaryOperator::QuestionPipe => self.unknown("an operator"),
        }
    }

    fn operator(&mut self, operator: &BinaryOperator) {
        match operator {
            // The parser lets it bind tighter than a comparison, which the server does not.
            BinaryOperator::Xor => self.unknown("XOR"),
            // There it separates statements that run one after another.
            BinaryOperator::LongArrow if self.dialect == Dialect::Snowflake => self.unknown("`->>` between statements"),
            BinaryOperator::Plus
            | BinaryOperator::Minus
            | BinaryOperator::Multiply
            | BinaryOperator::Divide
            | BinaryOperator::Modulo
            | BinaryOperator::StringConcat
            | BinaryOperator::Gt
            | BinaryOperator::Lt
            | BinaryOperator::GtEq
            | BinaryOperator::LtEq
            | BinaryOperator::Spaceship
            | BinaryOperator::Eq
            | BinaryOperator::NotEq
            | BinaryOperator::And
            | BinaryOperator::Or
            | BinaryOperator::BitwiseOr
            | BinaryOperator::BitwiseAnd
            | BinaryOperator::BitwiseXor
            | BinaryOperator::MyIntegerDivide
            | BinaryOperator::Match
            | BinaryOperator::Regexp
            | BinaryOperator::Glob
            | BinaryOperator::PGBitwiseXor
            | BinaryOperator::PGBitwiseShiftLeft
            | BinaryOperator::PGBitwiseShiftRight
            | BinaryOperator::PGExp
            | BinaryOperator::PGOverlap
            | BinaryOperator::PGRegexMatch
            | BinaryOperator::PGRegexIMatch
            | BinaryOperator::PGRegexNotMatch
            | BinaryOperator::PGRegexNotIMatch
            | BinaryOperator::PGLikeMatch
            | BinaryOperator::PGILikeMatch
            | BinaryOperator::PGNotLikeMatch
            | BinaryOperator::PGNotILikeMatch
            | BinaryOperator::PGStartsWith
            | BinaryOperator::Arrow
            | BinaryOperator::LongArrow
            | BinaryOperator::HashArrow
            | BinaryOperator::HashLongArrow
            | BinaryOperator::AtAt
            | BinaryOperator::AtArrow
            | BinaryOperator::ArrowAt
            | BinaryOperator::HashMinus
            | BinaryOperator::AtQuestion
            | BinaryOperator::Question
            | BinaryOperator::QuestionAnd
            | BinaryOperator::QuestionPipe
            | BinaryOperator::Overlaps => {}
            _ => self.unknown("an operator"),
        }
    }

    /// The type of a cast. A type of one's own may run a function of one's own.
    pub(super) fn data_type(&mut self, data_type: &'a DataType) {
        match data_type {
            DataType::Custom(name, _) => self.custom_type(name),
            DataType::Array(
                ArrayElemTypeDef::AngleBracket(inner)
                | ArrayElemTypeDef::SquareBracket(inner, _)
                | ArrayElemTypeDef::Parenthesis(inner),
            ) => {
                if self.deeper() {
                    self.data_type(inner);
                    self.back_up();
                }
            }
            DataType::Array(ArrayElemTypeDef::None | ArrayElemTypeDef::Qualified(..)) => {}
            DataType::Struct(fields, _) => {
                if self.deeper() {
                    for field in fields {
                        self.absent(field.options.is_none(), "an option of a field");
                        self.data_type(&field.field_type);
                    }
                    self.back_up();
                }
            }
            DataType::Character(_)
            | DataType::Char(_)
            | DataType::CharacterVarying(_)
            | DataType::CharVarying(_)
            | DataType::Varchar(_)
            | DataType::Nvarchar(_)
            | DataType::Uuid
            | DataType::CharacterLargeObject(_)
            | DataType::CharLargeObject(_)
            | DataType::Clob(_)
            | DataType::Binary(_)
            | DataType::Varbinary(_)
            | DataType::Blob(_)
            | DataType::TinyBlob
            | DataType::MediumBlob
            | DataType::LongBlob
            | DataType::Bytes(_)
            | DataType::Numeric(_)
            | DataType::Decimal(_)
            | DataType::DecimalUnsigned(_)
            | DataType::BigNumeric(_)
            | DataType::BigDecimal(_)
            | DataType::Dec(_)
            | DataType::DecUnsigned(_)
            | DataType::Float(_)
            | DataType::FloatUnsigned(_)
            | DataType::TinyInt(_)
            | DataType::TinyIntUnsigned(_)
            | DataType::Int2(_)
            | DataType::SmallInt(_)
            | DataType::SmallIntUnsigned(_)
            | DataType::MediumInt(_)
            | DataType::MediumIntUnsigned(_)
            | DataType::Int(_)
            | DataType::Int4(_)
            | DataType::Int8(_)
            | DataType::Int64
            | DataType::Integer(_)
            | DataType::IntUnsigned(_)
            | DataType::IntegerUnsigned(_)
            | DataType::BigInt(_)
            | DataType::BigIntUnsigned(_)
            | DataType::Signed
            | DataType::SignedInteger
            | DataType::Unsigned
            | DataType::UnsignedInteger
            | DataType::Float4
            | DataType::Float64
            | DataType::Real
            | DataType::RealUnsigned
            | DataType::Float8
            | DataType::Double(_)
            | DataType::DoubleUnsigned(_)
            | DataType::DoublePrecision
            | DataType::DoublePrecisionUnsigned
            | DataType::Bool
            | DataType::Boolean
            | DataType::Date
            | DataType::Time(..)
            | DataType::Datetime(_)
            | DataType::Timestamp(..)
            | DataType::TimestampNtz(_)
            | DataType::Interval { .. }
            | DataType::JSON
            | DataType::JSONB
            | DataType::Regclass
            | DataType::Text
            | DataType::TinyText
            | DataType::MediumText
            | DataType::LongText
            | DataType::String(_)
            | DataType::Bytea
            | DataType::Bit(_)
            | DataType::BitVarying(_)
            | DataType::VarBit(_)
            | DataType::Enum(..)
            | DataType::Set(_)
            | DataType::Unspecified
            | DataType::GeometricType(_)
            | DataType::TsVector
            | DataType::TsQuery => {}
            _ => self.unknown("a type"),
        }
    }

    fn custom_type(&mut self, name: &'a ObjectName) {
        let builtin = match (name.0.as_slice(), last(name)) {
            ([_], Some(name)) => name.quote_style.is_none() && keywords::is_builtin_type(&name.value),
            _ => false,
        };
        if !builtin {
            self.unknown("a type");
        }
    }
}

/// A variable or a parameter, not a column.
pub(super) fn is_variable(ident: &Ident) -> bool {
    ident.quote_style.is_none() && ident.value.starts_with('@')
}

fn is_json_access(operator: &BinaryOperator) -> bool {
    matches!(
        operator,
        BinaryOperator::Arrow
            | BinaryOperator::LongArrow
            | BinaryOperator::HashArrow
            | BinaryOperator::HashLongArrow
            | BinaryOperator::Question
            | BinaryOperator::QuestionAnd
            | BinaryOperator::QuestionPipe
            | BinaryOperator::AtQuestion
            | BinaryOperator::AtAt
    )
}

/// Roughly where an expression begins, in bytes.
pub(super) fn place(expr: &Expr) -> usize {
    let mut expr = expr;
    loop {
        expr = match expr {
            Expr::Identifier(ident) => return position(ident),
            Expr::CompoundIdentifier(parts) => return parts.first().map_or(0, position),
            Expr::Value(value) => return usize::try_from(value.span.start.column).unwrap_or(0).saturating_sub(1),
            Expr::Function(function) => {
                return function.name.0.first().and_then(|part| part.as_ident()).map_or(0, position);
            }
            Expr::BinaryOp { left: inner, .. }
            | Expr::Nested(inner)
            | Expr::IsNull(inner)
            | Expr::IsNotNull(inner)
            | Expr::UnaryOp { expr: inner, .. }
            | Expr::InList { expr: inner, .. }
            | Expr::Between { expr: inner, .. }
            | Expr::Like { expr: inner, .. }
            | Expr::ILike { expr: inner, .. }
            | Expr::Cast { expr: inner, .. } => inner,
            _ => return 0,
        };
    }
}
