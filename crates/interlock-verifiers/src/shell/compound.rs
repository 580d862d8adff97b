//! Compound commands: loops, branches, functions, conditions, subshells.

use super::cursor::Stop;
use super::parse::{Parser, is_name};
use super::syntax::{Binding, CommandKind, ConditionToken, Script};

impl Parser<'_> {
    /// `( … )` or `(( … ))`.
    pub(super) fn parenthesis(&mut self) -> Result<CommandKind, Stop> {
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

    pub(super) fn compound(&mut self, word: &'static str) -> Result<CommandKind, Stop> {
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

    pub(super) fn conditional(&mut self) -> Result<CommandKind, Stop> {
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

    pub(super) fn loop_over(&mut self) -> Result<CommandKind, Stop> {
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

    pub(super) fn do_body(&mut self) -> Result<Script, Stop> {
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

    pub(super) fn case(&mut self) -> Result<CommandKind, Stop> {
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

    pub(super) fn coprocess(&mut self) -> Result<CommandKind, Stop> {
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

    pub(super) fn name_of_function(&mut self) -> Result<String, Stop> {
        let name = self.word()?.and_then(|word| word.bare().map(str::to_owned));
        match name {
            Some(name) if !name.contains(['$', '`', '*', '?', '[', '{', '~', '=']) => Ok(name),
            Some(_) | None => self.cursor.stop("a function without a plain name"),
        }
    }

    /// The rest of a function after its name and parentheses.
    pub(super) fn function(&mut self, name: String) -> Result<CommandKind, Stop> {
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
    pub(super) fn condition(&mut self) -> Result<CommandKind, Stop> {
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
}

fn branches(scripts: Vec<Script>) -> CommandKind {
    CommandKind::Branches { scripts, words: Vec::new(), binds: None, arithmetic: Vec::new() }
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
