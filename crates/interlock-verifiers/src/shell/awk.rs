//! `awk`: the program decides.

use super::reduce::Argument;
use super::walk::{Run, Walk};
use super::{Effect, programs};

/// Runs `awk`.
pub(super) fn run(walk: &mut Walk<'_, '_>, run: &Run<'_>) {
    let Some(call) = programs::own_call(walk, run) else { return };
    let own = call.first_operand.map_or(run.arguments, |at| run.arguments.get(..at).unwrap_or_default());
    if own.iter().any(|argument| argument.splits) {
        walk.add(Effect::Unknown, run.name, &run.span, "an argument that can become the program");
    }
    let mut programs: Vec<Argument> = Vec::new();
    let mut in_place = false;
    for given in &call.given {
        let value = || given.value.clone().unwrap_or_else(|| Argument::unknown(run.span.clone()));
        match given.name {
            "-e" | "--source" => programs.push(value()),
            "-i" | "--include" => included(walk, run, &value(), &mut in_place),
            _ => {}
        }
    }
    let mut files = call.operands.as_slice();
    if programs.is_empty() {
        match files.split_first() {
            Some((program, rest)) => {
                programs.push((*program).clone());
                files = rest;
            }
            None => return walk.add(Effect::Unknown, run.name, &run.span, "a program is missing"),
        }
    }
    for program in &programs {
        match program.known_text() {
            Some(text) => judge(walk, run, text, &program.span),
            None => walk.add(Effect::Unknown, run.name, &program.span, "a program that is not known"),
        }
    }
    if in_place {
        walk.add(Effect::Write, run.name, &run.span, "edits files in place");
        for file in files {
            super::programs::arms(walk, file, run.name);
        }
        // The old file is kept, under a name with this behind it.
        let has_suffix = |argument: &Argument| argument.prefix().to_ascii_lowercase().contains("suffix");
        let is_kept = run.arguments.iter().any(has_suffix);
        if let Some(words) = walk.findings.words.as_mut().filter(|_| is_kept) {
            words.written(&Argument::unknown(run.span.clone()));
        }
    }
    walk.add(Effect::ReadOnly, run.name, &run.span, "prints what it computes");
}

fn included(walk: &mut Walk<'_, '_>, run: &Run<'_>, value: &Argument, in_place: &mut bool) {
    match value.known_text() {
        Some("inplace" | "inplace.awk") => *in_place = true,
        Some(_) | None => walk.add(Effect::Unknown, run.name, &value.span, "a program in a file"),
    }
}

/// What a program can do beyond printing.
fn judge(walk: &mut Walk<'_, '_>, run: &Run<'_>, program: &str, span: &core::ops::Range<usize>) {
    let Some(tokens) = tokens(program) else {
        return walk.add(Effect::Unknown, run.name, span, "a program that is not understood");
    };
    if tokens.iter().any(|token| matches!(token, Token::Text(text) if text.contains("/inet"))) {
        walk.add(Effect::Network, run.name, span, "the program can open a connection");
    }
    let mut depth = 0i32;
    // The depth of parentheses at which a statement that prints began.
    let mut printing: Option<i32> = None;
    let mut getting = false;
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::Name(name) if name == "print" || name == "printf" => printing = Some(depth),
            Token::Name(name) if name == "getline" => getting = true,
            // The files that are read next are listed there.
            Token::Name(name) if matches!(name.as_str(), "ARGV" | "ARGC" | "SYMTAB") => {
                reads(walk, &Argument::unknown(span.clone()));
            }
            Token::Name(name) if name == "system" => {
                return walk.add(Effect::Unknown, run.name, span, "the program runs commands");
            }
            Token::Name(_) | Token::Text(_) | Token::Joins | Token::Other => {}
            Token::Sign('(' | '[') => depth = depth.saturating_add(1),
            Token::Sign(')' | ']') => depth = depth.saturating_sub(1),
            Token::Sign(';' | '\n' | '{' | '}') => {
                printing = None;
                getting = false;
            }
            Token::Sign('<') if getting => {
                getting = false;
                let after = tokens.get(at.saturating_add(2));
                // Two values without a sign between them are one text.
                let goes_on =
                    matches!(after, Some(Token::Text(_) | Token::Name(_) | Token::Sign('(' | '[' | '$' | '0')));
                let source = match tokens.get(at.saturating_add(1)) {
                    Some(Token::Text(path)) if !goes_on => file_named(path, span),
                    _ => Argument::unknown(span.clone()),
                };
                reads(walk, &source);
            }
            Token::Sign('|') => return walk.add(Effect::Unknown, run.name, span, "the program pipes into a command"),
            Token::Sign('@') => {
                return walk.add(Effect::Unknown, run.name, span, "the program loads or calls what is not seen here");
            }
            Token::Sign('>') if printing == Some(depth) => {
                let next = tokens.get(at.saturating_add(1));
                let after = tokens.get(at.saturating_add(2));
                let ends = matches!(after, None | Some(Token::Sign(';' | '\n' | '}')));
                let target = match next {
                    Some(Token::Text(path)) if ends => file_named(path, span),
                    _ => Argument::unknown(span.clone()),
                };
                walk.writes(&target, run.name, span);
            }
            Token::Sign(_) => {}
        }
    }
}

/// A file that a text names; what is written with a backslash is not read here.
fn file_named(path: &str, span: &core::ops::Range<usize>) -> Argument {
    if path.contains('\\') { Argument::unknown(span.clone()) } else { Argument::known(path, span.clone()) }
}

/// A program reads a file.
fn reads(walk: &mut Walk<'_, '_>, source: &Argument) {
    if let Some(words) = &mut walk.findings.words {
        words.read(source);
    }
}

enum Token {
    Name(String),
    Text(String),
    /// `>` stands for `>>` too; `|` for `|&`. Signs that are none of ours are [`Token::Other`].
    Sign(char),
    /// An operator after which a line goes on: `&&`, `||`, and of some `?` and `:`.
    Joins,
    /// A number, a pattern, another operator.
    Other,
}

/// Whether a statement goes on after a line that ends with this.
fn goes_on(token: Option<&Token>) -> bool {
    match token {
        Some(Token::Sign(sign)) => matches!(sign, ',' | '{'),
        Some(Token::Name(name)) => matches!(name.as_str(), "do" | "else"),
        Some(Token::Joins) => true,
        Some(Token::Text(_) | Token::Other) | None => false,
    }
}

fn tokens(program: &str) -> Option<Vec<Token>> {
    let mut cursor = super::cursor::Cursor::new(program, None);
    let mut tokens: Vec<Token> = Vec::new();
    while let Some(byte) = cursor.peek() {
        match byte {
            b' ' | b'\t' | b'\r' => cursor.skip(1),
            b'\\' if matches!(cursor.peek_at(1), Some(b'\n')) => cursor.skip(2),
            b'\\' if cursor.looking_at("\\\r\n") => cursor.skip(3),
            b'\n' if goes_on(tokens.last()) => cursor.skip(1),
            b'#' => {
                cursor.take_while(|byte| byte != b'\n');
            }
            b'"' => {
                cursor.skip(1);
                let text = quoted(&mut cursor, '"')?;
                tokens.push(Token::Text(text));
            }
            b'/' if !is_value(tokens.last()) => {
                cursor.skip(1);
                pattern(&mut cursor)?;
                tokens.push(Token::Other);
            }
            b'|' | b'&' if cursor.looking_at("||") || cursor.looking_at("&&") => {
                cursor.skip(2);
                tokens.push(Token::Joins);
            }
            b'?' | b':' => {
                cursor.skip(1);
                tokens.push(Token::Joins);
            }
            b'|' => {
                cursor.skip(1);
                let _ = cursor.take("&");
                tokens.push(Token::Sign('|'));
            }
            b'>' if cursor.looking_at(">=") => {
                cursor.skip(2);
                tokens.push(Token::Other);
            }
            b'>' => {
                cursor.skip(1);
                let _ = cursor.take(">");
                tokens.push(Token::Sign('>'));
            }
            b'<' if cursor.looking_at("<=") => {
                cursor.skip(2);
                tokens.push(Token::Other);
            }
            b'<' => {
                cursor.skip(1);
                tokens.push(Token::Sign('<'));
            }
            b'(' | b')' | b'[' | b']' | b'{' | b'}' | b';' | b'\n' | b'@' | b',' => {
                cursor.skip(1);
                tokens.push(Token::Sign(char::from(byte)));
            }
            _ if byte.is_ascii_alphabetic() || byte == b'_' => {
                let name = cursor.take_while(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
                tokens.push(Token::Name(name.to_owned()));
            }
            _ if byte.is_ascii_digit() => {
                cursor.take_while(|byte| byte.is_ascii_alphanumeric() || byte == b'.');
                tokens.push(Token::Sign('0'));
            }
            b'+' | b'-' if cursor.peek_at(1) == Some(byte) => {
                cursor.skip(2);
                // `x++ /2/ 3`: what follows could be either; a division is the safe reading only after a value.
                tokens.push(if is_value(tokens.last()) { Token::Sign('0') } else { Token::Other });
            }
            _ if byte.is_ascii() => {
                cursor.skip(1);
                tokens.push(if byte == b'$' { Token::Sign('$') } else { Token::Other });
            }
            _ => return None,
        }
    }
    Some(tokens)
}

/// Whether a slash after this divides.
fn is_value(token: Option<&Token>) -> bool {
    match token {
        Some(Token::Name(name)) => !matches!(
            name.as_str(),
            "print"
                | "printf"
                | "return"
                | "in"
                | "if"
                | "while"
                | "else"
                | "do"
                | "case"
                | "getline"
                | "delete"
                | "exit"
        ),
        Some(Token::Text(_) | Token::Sign(')' | ']' | '0')) => true,
        Some(Token::Sign(_) | Token::Joins | Token::Other) | None => false,
    }
}

fn quoted(cursor: &mut super::cursor::Cursor<'_>, end: char) -> Option<String> {
    let mut text = String::new();
    loop {
        match cursor.character()? {
            '\\' => {
                text.push('\\');
                text.push(cursor.character()?);
            }
            '\n' => return None,
            character if character == end => return Some(text),
            character => text.push(character),
        }
    }
}

fn pattern(cursor: &mut super::cursor::Cursor<'_>) -> Option<()> {
    let mut in_brackets = false;
    loop {
        match cursor.character()? {
            '\\' => {
                cursor.character()?;
            }
            '\n' => return None,
            '[' if !in_brackets => {
                in_brackets = true;
                let _ = cursor.take("^");
                let _ = cursor.take("]");
            }
            ']' => in_brackets = false,
            // Whether a slash in brackets ends the pattern, implementations do not agree on.
            '/' if in_brackets => return None,
            '/' => return Some(()),
            _ => {}
        }
    }
}
