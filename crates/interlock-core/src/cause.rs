//! Why something went wrong, in words for people, together with the error beneath it.

use core::error::Error;
use core::fmt;
use std::borrow::Cow;
use std::sync::Arc;

/// Why something went wrong. It reads as one line, with the error beneath it at the end; that error stays reachable.
#[derive(Debug, Clone)]
pub struct Cause {
    words: Cow<'static, str>,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

impl Cause {
    /// An error that needs no more words.
    pub fn of(source: impl Error + Send + Sync + 'static) -> Cause {
        Cause { words: Cow::Borrowed(""), source: Some(Arc::new(source)) }
    }

    /// What was being done when an error came.
    pub fn while_doing(words: impl Into<Cow<'static, str>>, source: impl Error + Send + Sync + 'static) -> Cause {
        Cause { words: words.into(), source: Some(Arc::new(source)) }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)?;
        match &self.source {
            Some(source) if self.words.is_empty() => source.fmt(f),
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl Error for Cause {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}

/// Two causes are the same if they read the same.
impl PartialEq for Cause {
    fn eq(&self, other: &Cause) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Eq for Cause {}

impl From<String> for Cause {
    fn from(words: String) -> Cause {
        Cause { words: Cow::Owned(words), source: None }
    }
}

impl From<&'static str> for Cause {
    fn from(words: &'static str) -> Cause {
        Cause { words: Cow::Borrowed(words), source: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_beneath_is_read_and_kept() {
        let beneath = "x".parse::<u8>().expect_err("no number");
        let cause = Cause::while_doing("the port", beneath.clone());
        assert_eq!(cause.to_string(), format!("the port: {beneath}"));
        assert_eq!(cause.source().expect("kept").to_string(), beneath.to_string());
        assert_eq!(Cause::of(beneath.clone()).to_string(), beneath.to_string());
        assert!(Cause::from("alone").source().is_none());
    }
}
