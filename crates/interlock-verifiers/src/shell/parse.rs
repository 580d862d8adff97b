//! The grammar of bash: lists, pipelines, compound commands, redirects, here-documents.
//!
//! One pass, no going back but for a reserved word, so the time is linear in the text. Whatever is not certain to be
//! read as bash reads it stops the parser, and the line is unknown.

use core::ops::Range;

use super::cursor::{Cursor, Stop};
use super::syntax::{
    AndOr, Assignment, Binding, Command, CommandKind, ConditionToken, Pipeline, Redirect, RedirectKind, Script, Word,
};

/// How deep commands, expansions and quotes may nest.
const DEPTH_MAX: u32 = 40;
/// The most commands and words of one text.
const NODES_MAX: u32 = 50_000;
/// How often something may be read another way.
const RETRIES_MAX: u32 = 4;
/// The most here-documents that begin on one line.
const DOCUMENTS_MAX: usize = 8;
/// The longest subscript of an assignment, in bytes.
const SUBSCRIPT_BYTES_MAX: usize = 500;

const OPENERS: [&str; 12] =
    ["if", "while", "until", "for", "select", "case", "{", "[[", "function", "time", "!", "coproc"];
const CLOSERS: [&str; 9] = ["then", "else", "elif", "fi", "do", "done", "esac", "}", "]]"];

/// A text being read.
#[derive(Debug)]
pub(super) struct Parser<'t> {
    pub(super) cursor: Cursor<'t>,
    depth: u32,
    nodes: u32,
    retries: u32,
    /// Here-documents whose bodies begin after the next line end.
    pending: Vec<Pending>,
    /// Something that other shells read differently.
    pub(super) only_bash: Option<&'static str>,
}

/// A here-document that is still without body.
#[derive(Debug)]
pub(super) struct Pending {
    delimiter: String,
    quoted: bool,
    strips_tabs: bool,
}

/// A script that was read, and what only bash reads that way.
#[derive(Debug)]
pub(super) struct Parsed {
    pub(super) script: Script,
    pub(super) only_bash: Option<&'static str>,
}

/// Reads a whole text.
pub(super) fn parse(text: &str, origin: Option<Range<usize>>, depth: u32) -> Result<Parsed, Stop> {
    let mut parser = Parser::new(text, origin, depth);
    let script = parser.script()?;
    if parser.cursor.peek().is_some() {
        return parser.cursor.stop("a closing word or parenthesis that nothing opened");
    }
    Ok(Parsed { script, only_bash: parser.only_bash })
}

/// The place of a redirect in its command, to be filled when the body is known.
type Bodies = Vec<(String, Range<usize>, bool)>;

impl<'t> Parser<'t> {
    pub(super) fn new(text: &'t str, origin: Option<Range<usize>>, depth: u32) -> Parser<'t> {
        Parser { cursor: Cursor::new(text, origin), depth, nodes: 0, retries: 0, pending: Vec::new(), only_bash: None }
    }

    /// Goes back to read something another way, a few times at most: each doubles the work.
    pub(super) fn try_again(&mut self, stop: Stop, start: usize) -> Result<(), Stop> {
        if self.retries >= RETRIES_MAX || !self.pending.is_empty() {
            return Err(stop);
        }
        self.retries = self.retries.saturating_add(1);
        self.cursor.back_to(start);
        Ok(())
    }

    /// How deep this is.
    pub(super) fn depth(&self) -> u32 {
        self.depth
    }

    /// Goes one level deeper for as long as a part is read.
    pub(super) fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Stop>) -> Result<T, Stop> {
        if self.depth >= DEPTH_MAX {
            return self.cursor.stop("nested too deep");
        }
        self.depth = self.depth.saturating_add(1);
        let result = read(self);
        self.depth = self.depth.saturating_sub(1);
        result
    }

    /// Counts a command or a word.
    pub(super) fn count(&mut self) -> Result<(), Stop> {
        self.nodes = self.nodes.saturating_add(1);
        if self.nodes > NODES_MAX { self.cursor.stop("too many commands and words") } else { Ok(()) }
    }

    /// Notes that only bash reads this so.
    pub(super) fn note(&mut self, what: &'static str) {
        self.only_bash.get_or_insert(what);
    }

    /// A script up to a closing word, a closing parenthesis, `;;` or the end.
    pub(super) fn script(&mut self) -> Result<Script, Stop> {
        let mut lists = Vec::new();
        loop {
            self.blank_lines()?;
            if self.at_close() {
                break;
            }
            let mut list = self.and_or()?;
            self.blanks();
            match self.cursor.peek() {
                Some(b'&') if self.cursor.peek_at(1) != Some(b'&') => {
                    self.cursor.skip(1);
                    list.background = true;
                    lists.push(list);
                    self.blanks();
                    if self.cursor.peek() == Some(b';') && !self.at_case_end() {
                        return self.cursor.stop("a separator after `&`");
                    }
                    continue;
                }
                Some(b';') if !self.at_case_end() => self.cursor.skip(1),
                Some(b'\n') | None => {}
                Some(_) if self.at_close() => {}
                Some(_) => return self.cursor.stop("an operator where none can be"),
            }
            lists.push(list);
        }
        if self.cursor.peek().is_none() && !self.pending.is_empty() {
            return self.cursor.stop("a here-document without body");
        }
        Ok(Script { lists })
    }

    /// A script that must hold a command.
    fn body(&mut self) -> Result<Script, Stop> {
        let script = self.deeper(Parser::script)?;
        if script.lists.is_empty() {
            return self.cursor.stop("a command is missing");
        }
        Ok(script)
    }

    fn and_or(&mut self) -> Result<AndOr, Stop> {
        let mut pipelines = vec![self.pipeline()?];
        loop {
            self.blanks();
            if !self.cursor.take("&&") && !self.cursor.take("||") {
                return Ok(AndOr { pipelines, background: false });
            }
            self.blank_lines()?;
            pipelines.push(self.pipeline()?);
        }
    }

    fn pipeline(&mut self) -> Result<Pipeline, Stop> {
        let mut prefixed = false;
        loop {
            self.blanks();
            match self.reserved() {
                Some("!") => {
                    self.take_reserved("!");
                }
                Some("time") => {
                    self.take_reserved("time");
                    self.blanks();
                    let start = self.cursor.at();
                    if !(self.cursor.take("-p") && self.at_word_end()) {
                        self.cursor.back_to(start);
                    }
                    self.blanks();
                    let start = self.cursor.at();
                    if !(self.cursor.take("--") && self.at_word_end()) {
                        self.cursor.back_to(start);
                    }
                }
                Some(_) | None => break,
            }
            prefixed = true;
        }
        self.blanks();
        if prefixed && matches!(self.cursor.peek(), None | Some(b'\n' | b';')) {
            return Ok(Pipeline { commands: Vec::new() });
        }
        let mut commands = vec![self.command()?];
        loop {
            self.blanks();
            if self.cursor.looking_at("||") {
                break;
            }
            if self.cursor.looking_at("|&") {
                self.note("|&");
                self.cursor.skip(2);
            } else if !self.cursor.take("|") {
                break;
            }
            self.blank_lines()?;
            commands.push(self.command()?);
        }
        Ok(Pipeline { commands })
    }

    fn command(&mut self) -> Result<Command, Stop> {
        self.count()?;
        self.blanks();
        let start = self.cursor.at();
        let kind = match (self.cursor.peek(), self.reserved()) {
            (Some(b'('), _) => Some(self.parenthesis()?),
            // Reserved at the beginning of a pipeline only; elsewhere it is the program.
            (_, Some("time")) => None,
            (_, Some(word)) => Some(self.deeper(|parser| parser.compound(word))?),
            (_, None) => None,
        };
        match kind {
            Some(kind) => {
                let mut redirects = Vec::new();
                loop {
                    self.blanks();
                    if !self.redirect(&mut redirects)? {
                        break;
                    }
                }
                Ok(Command { kind, redirects, span: self.cursor.span_from(start) })
            }
            None => self.simple(start),
        }
    }

    /// `( … )` or `(( … ))`.
    fn parenthesis(&mut self) -> Result<CommandKind, Stop> {
        if self.cursor.looking_at("((") {
            self.note("(( ))");
            let start = self.cursor.at();
            self.cursor.skip(2);
            match self.deeper(|parser| parser.arithmetic("))")) {
                Ok(arithmetic) => return Ok(CommandKind::Arithmetic(arithmetic)),
                // What does not close with both parentheses at once is a subshell in a subshell.
                Err(stop) => self.try_again(stop, start)?,
            }
        }
        self.cursor.skip(1);
        let script = self.body()?;
        self.expect(")")?;
        Ok(CommandKind::Subshell(script))
    }

    fn compound(&mut self, word: &'static str) -> Result<CommandKind, Stop> {
        self.take_reserved(word);
        match word {
            "{" => {
                let script = self.body()?;
                self.expect_reserved("}")?;
                Ok(CommandKind::Group(script))
            }
            "if" => self.conditional(),
            "while" | "until" => {
                let test = self.body()?;
                self.expect_reserved("do")?;
                let body = self.body()?;
                self.expect_reserved("done")?;
                Ok(branches(vec![test, body]))
            }
            "for" | "select" => self.loop_over(),
            "case" => self.case(),
            "[[" => {
                self.note("[[ ]]");
                self.condition()
            }
            "function" => {
                self.note("function");
                self.blanks();
                let name = self.name_of_function()?;
                self.blanks();
                if self.cursor.take("(") {
                    self.blanks();
                    self.expect(")")?;
                }
                self.function(name)
            }
            "coproc" => {
                self.note("coproc");
                self.coprocess()
            }
            _ => self.cursor.stop("a reserved word where a command should be"),
        }
    }

    fn conditional(&mut self) -> Result<CommandKind, Stop> {
        let mut scripts = vec![self.body()?];
        self.expect_reserved("then")?;
        scripts.push(self.body()?);
        loop {
            if self.take_reserved("elif") {
                scripts.push(self.body()?);
                self.expect_reserved("then")?;
                scripts.push(self.body()?);
            } else if self.take_reserved("else") {
                scripts.push(self.body()?);
                self.expect_reserved("fi")?;
                return Ok(branches(scripts));
            } else {
                self.expect_reserved("fi")?;
                return Ok(branches(scripts));
            }
        }
    }

    fn loop_over(&mut self) -> Result<CommandKind, Stop> {
        self.blanks();
        if self.cursor.take("((") {
            self.note("for (( ))");
            let header = self.arithmetic("))")?;
            if header.separators != 2 {
                return self.cursor.stop("a loop without three expressions");
            }
            self.blanks();
            let _ = self.cursor.take(";");
            self.blank_lines()?;
            let body = self.do_body()?;
            let (words, binds) = (Vec::new(), None);
            return Ok(CommandKind::Branches { scripts: vec![body], words, binds, arithmetic: vec![header] });
        }
        let name = self.word()?.and_then(|word| word.bare().map(str::to_owned));
        let Some(name) = name.filter(|name| is_name(name)) else {
            return self.cursor.stop("a loop without a variable");
        };
        self.blanks();
        let _ = self.cursor.take(";");
        self.blank_lines()?;
        let mut values = None;
        if self.take_reserved("in") {
            let mut words = Vec::new();
            self.blanks();
            while let Some(word) = self.word()? {
                words.push(word);
                self.blanks();
            }
            values = Some(words);
            self.blanks();
            if !self.cursor.take(";") && self.cursor.peek() != Some(b'\n') {
                return self.cursor.stop("a loop without `do`");
            }
            self.blank_lines()?;
        }
        let body = self.do_body()?;
        let binds = Some(Binding { name, values });
        Ok(CommandKind::Branches { scripts: vec![body], words: Vec::new(), binds, arithmetic: Vec::new() })
    }

    fn do_body(&mut self) -> Result<Script, Stop> {
        if self.take_reserved("{") {
            let body = self.body()?;
            self.expect_reserved("}")?;
            return Ok(body);
        }
        self.expect_reserved("do")?;
        let body = self.body()?;
        self.expect_reserved("done")?;
        Ok(body)
    }

    fn case(&mut self) -> Result<CommandKind, Stop> {
        self.blanks();
        let Some(subject) = self.word()? else { return self.cursor.stop("a case without a subject") };
        let (mut words, mut scripts) = (vec![subject], Vec::new());
        self.blank_lines()?;
        self.expect_reserved("in")?;
        loop {
            self.blank_lines()?;
            if self.take_reserved("esac") {
                return Ok(CommandKind::Branches { scripts, words, binds: None, arithmetic: Vec::new() });
            }
            let _ = self.cursor.take("(");
            loop {
                self.blanks();
                let Some(pattern) = self.pattern_word()? else { return self.cursor.stop("a pattern is missing") };
                words.push(pattern);
                self.blanks();
                if !self.cursor.take("|") {
                    break;
                }
            }
            // A line end cannot stand here.
            if !self.cursor.take(")") {
                return self.cursor.stop("a pattern without its parenthesis");
            }
            scripts.push(self.deeper(Parser::script)?);
            if self.cursor.take(";;&") || self.cursor.take(";;") || self.cursor.take(";&") {
                continue;
            }
            self.blank_lines()?;
            if self.reserved_close() != Some("esac") {
                return self.cursor.stop("a case without end");
            }
        }
    }

    fn coprocess(&mut self) -> Result<CommandKind, Stop> {
        self.blanks();
        let start = self.cursor.at();
        let mut kept_in = "COPROC".to_owned();
        if self.reserved().is_none() && self.cursor.peek() != Some(b'(') {
            // A name counts as one only in front of a compound command.
            let name = self.cursor.take_while(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            self.blanks();
            let named = is_name(name) && (self.reserved().is_some() || self.cursor.peek() == Some(b'('));
            if named {
                kept_in = name.to_owned();
            } else {
                self.cursor.back_to(start);
            }
        }
        let body = Box::new(self.command()?);
        Ok(CommandKind::Coprocess { kept_in, body })
    }

    fn name_of_function(&mut self) -> Result<String, Stop> {
        let name = self.word()?.and_then(|word| word.bare().map(str::to_owned));
        match name {
            Some(name) if !name.contains(['$', '`', '*', '?', '[', '{', '~', '=']) => Ok(name),
            Some(_) | None => self.cursor.stop("a function without a plain name"),
        }
    }

    /// The rest of a function after its name and parentheses.
    fn function(&mut self, name: String) -> Result<CommandKind, Stop> {
        self.blank_lines()?;
        let start = self.cursor.at();
        let body = self.deeper(Parser::command)?;
        match body.kind {
            CommandKind::Simple { .. } | CommandKind::Function { .. } | CommandKind::Coprocess { .. } => {
                self.cursor.back_to(start);
                self.cursor.stop("a function without a body")
            }
            CommandKind::Group(_)
            | CommandKind::Subshell(_)
            | CommandKind::Branches { .. }
            | CommandKind::Arithmetic(_)
            | CommandKind::Condition(_) => Ok(CommandKind::Function { name, body: Box::new(body) }),
        }
    }

    /// `[[ … ]]` after its opening.
    fn condition(&mut self) -> Result<CommandKind, Stop> {
        let mut tokens = Vec::new();
        let mut open = 0u32;
        let mut pattern_next = false;
        loop {
            self.blank_lines()?;
            if self.take_reserved("]]") {
                if open != 0 || !is_condition(&tokens) {
                    return self.cursor.stop("a condition that is not whole");
                }
                return Ok(CommandKind::Condition(tokens));
            }
            if !pattern_next {
                let operator = ["&&", "||", "(", ")", "<", ">"].into_iter().find(|sign| self.cursor.looking_at(sign));
                if let Some(sign) = operator.filter(|_| !self.at_process()) {
                    match sign {
                        "(" => open = open.saturating_add(1),
                        ")" if open == 0 => return self.cursor.stop("a parenthesis that nothing opened"),
                        ")" => open = open.saturating_sub(1),
                        _ => {}
                    }
                    self.cursor.skip(sign.len());
                    tokens.push(ConditionToken::Operator(sign));
                    continue;
                }
            }
            let word = if pattern_next { self.regex_word()? } else { self.word()? };
            let Some(word) = word else { return self.cursor.stop("a condition that does not close") };
            pattern_next = matches!(word.bare(), Some("=~" | "==" | "=" | "!="));
            tokens.push(ConditionToken::Word(word));
        }
    }

    fn simple(&mut self, start: usize) -> Result<Command, Stop> {
        let (mut assignments, mut words, mut redirects) = (Vec::new(), Vec::new(), Vec::new());
        loop {
            self.blanks();
            if self.redirect(&mut redirects)? {
                continue;
            }
            let may_assign = words.is_empty() || words.first().is_some_and(declares);
            if may_assign && let Some(assignment) = self.assignment()? {
                if words.is_empty() {
                    assignments.push(assignment);
                } else {
                    words.push(as_argument(&assignment));
                    assignments.push(assignment);
                }
                continue;
            }
            let Some(word) = self.word()? else { break };
            self.count()?;
            words.push(word);
            // `name ()` begins a function.
            if words.len() == 1 && assignments.is_empty() && redirects.is_empty() {
                self.blanks();
                if self.cursor.peek() == Some(b'(') {
                    self.cursor.skip(1);
                    self.blanks();
                    self.expect(")")?;
                    let name = words.first().and_then(|word| word.bare().map(str::to_owned));
                    let Some(name) = name.filter(|name| !name.contains(['$', '*', '?', '[', '{', '~'])) else {
                        return self.cursor.stop("a function without a plain name");
                    };
                    let kind = self.function(name)?;
                    return Ok(Command { kind, redirects, span: self.cursor.span_from(start) });
                }
            }
        }
        if words.is_empty() && assignments.is_empty() && redirects.is_empty() {
            return self.cursor.stop("a command is missing");
        }
        let kind = CommandKind::Simple { assignments, words };
        Ok(Command { kind, redirects, span: self.cursor.span_from(start) })
    }

    /// `name=value` and its relatives.
    fn assignment(&mut self) -> Result<Option<Assignment>, Stop> {
        let start = self.cursor.at();
        let name = self.cursor.take_while(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !is_name(name) {
            self.cursor.back_to(start);
            return Ok(None);
        }
        let mut subscript = None;
        if self.cursor.peek() == Some(b'[') {
            // A subscript ends at its bracket, and only what follows that says whether it was one.
            let line = self.cursor.rest();
            let end = subscript_end(line).filter(|end| {
                let after = line.get(*end..).unwrap_or("");
                after.starts_with('=') || after.starts_with("+=")
            });
            if end.is_none() {
                self.cursor.back_to(start);
                return Ok(None);
            }
            self.note("an array");
            self.cursor.skip(1);
            subscript = Some(self.deeper(|parser| parser.arithmetic("]"))?);
        }
        let appends = self.cursor.take("+=");
        if !appends && !self.cursor.take("=") {
            self.cursor.back_to(start);
            return Ok(None);
        }
        let mut is_array = false;
        let mut values = Vec::new();
        if self.cursor.peek() == Some(b'(') && subscript.is_none() {
            self.note("an array");
            is_array = true;
            self.cursor.skip(1);
            values = self.deeper(Parser::array)?;
        } else if let Some(word) = self.word()? {
            values.push(word);
        }
        let span = self.cursor.span_from(start);
        Ok(Some(Assignment { name: name.to_owned(), subscript, values, is_array, appends, span }))
    }

    /// The elements of an array up to its parenthesis.
    fn array(&mut self) -> Result<Vec<Word>, Stop> {
        let mut values = Vec::new();
        loop {
            self.blank_lines()?;
            if self.cursor.take(")") {
                return Ok(values);
            }
            self.count()?;
            match self.word()? {
                Some(word) => values.push(word),
                None => return self.cursor.stop("an array that does not close"),
            }
        }
    }

    /// Takes a redirect if one comes next.
    fn redirect(&mut self, redirects: &mut Vec<Redirect>) -> Result<bool, Stop> {
        let start = self.cursor.at();
        let mut descriptor = None;
        let mut kept_in = None;
        if self.cursor.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            let digits = self.cursor.take_while(|byte| byte.is_ascii_digit());
            descriptor = digits.parse().ok();
        } else if self.cursor.peek() == Some(b'{') {
            self.cursor.skip(1);
            let name = self.cursor.take_while(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            if !is_name(name) || !self.cursor.take("}") {
                // `{a[i]}<f` evaluates the subscript; few have ever written it.
                let rest = self.cursor.rest();
                let word = rest.split(|letter: char| letter.is_whitespace()).next().unwrap_or("");
                if word.contains("]}<") || word.contains("]}>") {
                    return self.cursor.stop("a descriptor kept in an array");
                }
                self.cursor.back_to(start);
                return Ok(false);
            }
            if matches!(self.cursor.peek(), Some(b'<' | b'>')) {
                kept_in = Some(name.to_owned());
            }
            self.note("{name}>");
        }
        let at_process = self.at_process() && start == self.cursor.at();
        let sign = ["&>>", "&>", "<<<", "<<-", "<<", "<&", "<>", "<", ">>", ">&", ">|", ">"]
            .into_iter()
            .find(|sign| self.cursor.looking_at(sign))
            .filter(|sign| !at_process && (start == self.cursor.at() || !sign.starts_with('&')));
        let Some(sign) = sign else {
            self.cursor.back_to(start);
            return Ok(false);
        };
        self.cursor.skip(sign.len());
        self.blanks();
        let kind = match sign {
            "<<" | "<<-" => {
                let document = self.here_document(sign == "<<-", start)?;
                redirects.push(document);
                return Ok(true);
            }
            "<<<" => RedirectKind::HereString,
            "<&" => RedirectKind::DuplicateInput,
            "<>" => RedirectKind::Both,
            "<" => RedirectKind::Input,
            ">&" => RedirectKind::DuplicateOutput,
            _ => RedirectKind::Output,
        };
        if matches!(sign, "&>" | "&>>" | "<<<") {
            self.note("a redirect of bash");
        }
        let Some(target) = self.word()? else { return self.cursor.stop("a redirect without a target") };
        redirects.push(Redirect { kind, target, descriptor, kept_in, span: self.cursor.span_from(start) });
        Ok(true)
    }

    /// A here-document after its sign. The body stands after the end of the line; since everything before it on the
    /// line has to be read first, the body is looked up ahead and skipped when the line ends.
    fn here_document(&mut self, strips_tabs: bool, start: usize) -> Result<Redirect, Stop> {
        let raw_start = self.cursor.at();
        let Some(word) = self.word()? else { return self.cursor.stop("a here-document without a delimiter") };
        let quoted = self.cursor.since(raw_start).contains(['\'', '"', '\\']);
        let Some(delimiter) = word.text() else { return self.cursor.stop("a delimiter that is no plain word") };
        if delimiter.contains('\n') {
            return self.cursor.stop("a delimiter of several lines");
        }
        if self.pending.len() >= DOCUMENTS_MAX {
            return self.cursor.stop("too many here-documents on a line");
        }
        self.pending.push(Pending { delimiter, quoted, strips_tabs });
        let mut bodies = Bodies::new();
        self.look_up_bodies(&mut bodies)?;
        let Some((body, span, quoted)) = bodies.pop() else { return self.cursor.stop("a here-document without body") };
        let span = self.cursor.origin().unwrap_or(span);
        let target = if quoted {
            Word::of_text(body, span)
        } else {
            let mut inner = Parser::new(&body, Some(span.clone()), self.depth.saturating_add(1));
            inner.nodes = self.nodes;
            let parts = inner.document_parts()?;
            self.nodes = inner.nodes;
            if let Some(what) = inner.only_bash {
                self.note(what);
            }
            Word { parts, span, is_compound: false }
        };
        let kind = RedirectKind::HereDocument { quoted };
        Ok(Redirect { kind, target, descriptor: None, kept_in: None, span: self.cursor.span_from(start) })
    }

    /// Finds the bodies of all pending here-documents without moving on.
    fn look_up_bodies(&mut self, bodies: &mut Bodies) -> Result<(), Stop> {
        let here = self.cursor.at();
        let Some(line_end) = self.line_end_ahead() else { return self.cursor.stop("a here-document without body") };
        let mut next = here.saturating_add(line_end).saturating_add(1);
        let rest = self.cursor.rest();
        for pending in &self.pending {
            let from = next.saturating_sub(here);
            let Some(found) = find_body(rest.get(from..).unwrap_or(""), pending) else {
                return self.cursor.stop("a here-document that does not end");
            };
            let body_start = next;
            next = next.saturating_add(found.length);
            bodies.push((found.body, body_start..next, pending.quoted));
        }
        Ok(())
    }

    /// Where the line ends on which here-documents begin. Quotes that run over several lines are not looked into: their
    /// line ends count, which bash does not do, so such a line is not understood.
    fn line_end_ahead(&self) -> Option<usize> {
        let rest = self.cursor.rest();
        let end = rest.find('\n')?;
        let line = rest.get(..end)?;
        let odd = |quote: char| line.matches(quote).count() % 2 == 1;
        (!odd('\'') && !odd('"') && !odd('`') && !line.ends_with('\\')).then_some(end)
    }

    /// Takes the end of a line, and the bodies of here-documents that begin there.
    fn line_end(&mut self) -> Result<(), Stop> {
        self.cursor.skip(1);
        for pending in core::mem::take(&mut self.pending) {
            let Some(found) = find_body(self.cursor.rest(), &pending) else {
                return self.cursor.stop("a here-document that does not end");
            };
            self.cursor.skip(found.length);
        }
        Ok(())
    }

    /// Puts bodies that are due aside, for a part that has none of them.
    pub(super) fn take_due(&mut self) -> Vec<Pending> {
        core::mem::take(&mut self.pending)
    }

    /// Puts them back.
    pub(super) fn put_due(&mut self, due: Vec<Pending>) {
        self.pending = due;
    }

    /// Stops where a line end would mean something else than the start of a body that is due.
    pub(super) fn no_body_due(&self) -> Result<(), Stop> {
        if self.pending.is_empty() { Ok(()) } else { self.cursor.stop("a here-document inside of something else") }
    }

    /// Skips blanks, comments and continued lines.
    pub(super) fn blanks(&mut self) {
        loop {
            self.cursor.take_while(|byte| matches!(byte, b' ' | b'\t'));
            if self.cursor.looking_at("\\\n") {
                self.cursor.skip(2);
            } else if self.cursor.peek() == Some(b'#') {
                self.cursor.take_while(|byte| byte != b'\n');
            } else {
                return;
            }
        }
    }

    /// Skips blanks, comments and ends of lines.
    pub(super) fn blank_lines(&mut self) -> Result<(), Stop> {
        loop {
            self.blanks();
            if self.cursor.peek() != Some(b'\n') {
                return Ok(());
            }
            self.line_end()?;
        }
    }

    /// Whether something comes next that ends a script.
    fn at_close(&self) -> bool {
        match self.cursor.peek() {
            None | Some(b')') => true,
            Some(b';') => self.at_case_end(),
            Some(_) => self.reserved_close().is_some(),
        }
    }

    fn at_case_end(&self) -> bool {
        self.cursor.looking_at(";;") || self.cursor.looking_at(";&")
    }

    /// Whether `<(` or `>(` comes next.
    pub(super) fn at_process(&self) -> bool {
        matches!(self.cursor.peek(), Some(b'<' | b'>')) && self.cursor.peek_at(1) == Some(b'(')
    }

    fn at_word_end(&self) -> bool {
        self.cursor.peek().is_none_or(ends_word)
    }

    /// The reserved word that comes next and opens something.
    fn reserved(&self) -> Option<&'static str> {
        let begins = matches!(self.cursor.peek()?, b'i' | b'w' | b'u' | b'f' | b's' | b'c' | b'{' | b'[' | b't' | b'!');
        if begins { OPENERS.into_iter().find(|word| self.is_next(word)) } else { None }
    }

    fn reserved_close(&self) -> Option<&'static str> {
        let begins = matches!(self.cursor.peek()?, b't' | b'e' | b'f' | b'd' | b'}' | b']');
        if begins { CLOSERS.into_iter().find(|word| self.is_next(word)) } else { None }
    }

    fn is_next(&self, word: &str) -> bool {
        self.cursor.looking_at(word) && self.cursor.peek_at(word.len()).is_none_or(ends_word)
    }

    fn take_reserved(&mut self, word: &str) -> bool {
        let found = self.is_next(word);
        if found {
            self.cursor.skip(word.len());
        }
        found
    }

    fn expect_reserved(&mut self, word: &str) -> Result<(), Stop> {
        self.blank_lines()?;
        if self.take_reserved(word) { Ok(()) } else { self.cursor.stop("a construct that does not close") }
    }

    pub(super) fn expect(&mut self, sign: &str) -> Result<(), Stop> {
        self.blank_lines()?;
        if sign == ")" && !self.pending.is_empty() {
            return self.cursor.stop("a here-document without body");
        }
        if self.cursor.take(sign) { Ok(()) } else { self.cursor.stop("a construct that does not close") }
    }
}

/// A body that was found: its text as the command reads it, and how many bytes it and its delimiter take.
struct FoundBody {
    body: String,
    length: usize,
}

/// Finds a body in the lines that follow.
fn find_body(text: &str, pending: &Pending) -> Option<FoundBody> {
    let mut body = String::new();
    let mut length = 0usize;
    let mut joins = false;
    for raw in text.split_inclusive('\n') {
        length = length.saturating_add(raw.len());
        let line = raw.strip_suffix('\n').unwrap_or(raw);
        let line = if pending.strips_tabs { line.trim_start_matches('\t') } else { line };
        if line == pending.delimiter && !joins {
            return Some(FoundBody { body, length });
        }
        // A line that ends in a backslash goes on in the next, which is then no delimiter.
        let slashes = line.bytes().rev().take_while(|byte| *byte == b'\\').count();
        joins = !pending.quoted && slashes % 2 == 1;
        body.push_str(line);
        body.push('\n');
    }
    None
}

fn branches(scripts: Vec<Script>) -> CommandKind {
    CommandKind::Branches { scripts, words: Vec::new(), binds: None, arithmetic: Vec::new() }
}

/// Whether a word cannot go on here.
pub(super) fn ends_word(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')')
}

/// Whether a text can name a variable.
pub(super) fn is_name(text: &str) -> bool {
    text.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Whether every operator of a condition has its operands.
fn is_condition(tokens: &[ConditionToken]) -> bool {
    let mut rest = tokens.iter().peekable();
    // Whether an expression is expected next.
    let mut expects = true;
    while let Some(token) = rest.next() {
        match token {
            ConditionToken::Operator("&&" | "||") if !expects => expects = true,
            ConditionToken::Operator("(") if expects => {}
            ConditionToken::Operator(")") if !expects => {}
            ConditionToken::Operator(_) => return false,
            ConditionToken::Word(word) if expects => {
                let text = word.bare().unwrap_or("");
                if text == "!" {
                    continue;
                }
                expects = false;
                let next_is_word = matches!(rest.peek(), Some(ConditionToken::Word(_)));
                let unary = text.len() == 2
                    && text.starts_with('-')
                    && text.as_bytes().get(1).is_some_and(u8::is_ascii_alphabetic);
                if unary && next_is_word {
                    rest.next();
                    continue;
                }
                match rest.peek() {
                    Some(ConditionToken::Operator("<" | ">")) | Some(ConditionToken::Word(_)) => {
                        rest.next();
                        if !matches!(rest.next(), Some(ConditionToken::Word(_))) {
                            return false;
                        }
                    }
                    Some(ConditionToken::Operator(_)) | None => {}
                }
            }
            ConditionToken::Word(_) => return false,
        }
    }
    !expects
}

/// Whether the arguments of this command can be assignments.
fn declares(word: &Word) -> bool {
    matches!(word.text().as_deref(), Some("declare" | "typeset" | "local" | "export" | "readonly"))
}

/// An assignment as the word that a declaring builtin sees.
fn as_argument(assignment: &Assignment) -> Word {
    let mut word = Word::of_text(format!("{}=", assignment.name), assignment.span.clone());
    word.is_compound = assignment.is_array;
    for value in &assignment.values {
        word.parts.extend(value.parts.iter().cloned());
    }
    word
}

/// Where the subscript that begins a text ends; past its bracket.
fn subscript_end(text: &str) -> Option<usize> {
    let mut open = 0u32;
    for (at, byte) in text.bytes().take(SUBSCRIPT_BYTES_MAX).enumerate() {
        match byte {
            b'[' => open = open.saturating_add(1),
            b']' => {
                open = open.saturating_sub(1);
                if open == 0 {
                    return Some(at.saturating_add(1));
                }
            }
            b'\n' => return None,
            _ => {}
        }
    }
    None
}
