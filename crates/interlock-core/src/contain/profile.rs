//! Profiles: what contained commands may touch, by name. Three are shipped; a bundle adds to them and adds others.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::display;
use crate::json::Json;

/// The profile of what was judged to read only.
pub const READ: &str = "read";
/// The profile of what may write in the project.
pub const PROJECT: &str = "project";
/// The profile of what fetches packages as well.
pub const BUILD: &str = "build";

/// How many profiles one can inherit from, one after the other.
const INHERIT_MAX: usize = 8;
/// The longest list of one kind in a profile.
const LIST_MAX: usize = 256;

/// `[contain.NAME]` as it is written. Of a shipped name it adds to what is shipped.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProfileSource {
    /// Places in the user's home directory that can be read beside those that always can: `~/PATH`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<String>,
    /// Places that can be written: from the project's root on (`.` is all of it), `~/PATH` or absolute.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<String>,
    /// Hosts that can be reached, by name; `*.NAME` is every name beneath.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub connect: Vec<String>,
    /// The profile that it begins with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inherit: Option<String>,
    /// Variables that are set.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
}

/// A profile, with all that it inherits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// Places in the user's home directory that can be read beside those that always can.
    pub read: Vec<String>,
    /// Places that can be written.
    pub write: Vec<String>,
    /// Hosts that can be reached.
    pub connect: Vec<String>,
    /// Variables that are set.
    pub env: BTreeMap<String, String>,
    digest: Digest,
}

impl Profile {
    /// The SHA-256 of all that it lets a command touch.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Whether a host can be reached.
    pub fn connects(&self, host: &str) -> bool {
        self.connect.iter().any(|listed| match listed.strip_prefix("*.") {
            Some(above) => host.strip_suffix(above).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
            None => listed == host,
        })
    }
}

/// All profiles by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profiles(BTreeMap<String, Profile>);

/// Why a profile cannot be loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileError {
    profile: String,
    problem: ProfileProblem,
}

/// What is wrong with a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ProfileProblem {
    Name,
    Inherits(String),
    Circle,
    Place(&'static str, String),
    Host(String),
    Variable(String),
    TooMany(&'static str),
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "contain.{}: ", display(&self.profile))?;
        match &self.problem {
            ProfileProblem::Name => f.write_str("a profile's name has letters, digits, - and _, at most 32"),
            ProfileProblem::Inherits(name) => write!(f, "there is no profile `{}` to inherit", display(name)),
            ProfileProblem::Circle => f.write_str("it inherits from itself, or from too many"),
            ProfileProblem::Place(list, place) => write!(
                f,
                "{list}: `{}` is no place; write it from the project's root on, as ~/PATH or absolute, without `..`",
                display(place)
            ),
            ProfileProblem::Host(host) => {
                write!(f, "connect: `{}` is no host; write a name, or *.NAME for every name beneath", display(host))
            }
            ProfileProblem::Variable(name) => write!(f, "env: `{}` is no name of a variable", display(name)),
            ProfileProblem::TooMany(list) => write!(f, "{list}: more than {LIST_MAX} entries"),
        }
    }
}

impl std::error::Error for ProfileError {}

impl Profiles {
    /// The shipped profiles with what a bundle adds.
    pub fn load(added: &BTreeMap<String, ProfileSource>) -> Result<Profiles, ProfileError> {
        let mut sources: BTreeMap<String, ProfileSource> = shipped().into_iter().collect();
        for (name, source) in added {
            source.check(name)?;
            match sources.get_mut(name) {
                Some(known) => known.extend(source),
                None => drop(sources.insert(name.clone(), source.clone())),
            }
        }
        let resolved = sources.keys().map(|name| Ok((name.clone(), resolve(name, &sources)?)));
        Ok(Profiles(resolved.collect::<Result<_, ProfileError>>()?))
    }

    /// The profile of a name.
    pub fn get(&self, name: &str) -> Option<&Profile> {
        self.0.get(name)
    }

    /// The names of all of them.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

/// What is there without a bundle. No host is listed: which ones a project's package managers need, its operator says.
fn shipped() -> [(String, ProfileSource); 3] {
    let inherits = |name: &str| ProfileSource { inherit: Some(name.to_owned()), ..ProfileSource::default() };
    [
        (READ.to_owned(), ProfileSource::default()),
        (PROJECT.to_owned(), ProfileSource { write: vec![".".to_owned()], ..inherits(READ) }),
        (BUILD.to_owned(), inherits(PROJECT)),
    ]
}

impl ProfileSource {
    fn extend(&mut self, other: &ProfileSource) {
        self.read.extend(other.read.iter().cloned());
        self.write.extend(other.write.iter().cloned());
        self.connect.extend(other.connect.iter().cloned());
        self.env.extend(other.env.clone());
        if other.inherit.is_some() {
            self.inherit.clone_from(&other.inherit);
        }
    }

    fn check(&self, name: &str) -> Result<(), ProfileError> {
        let wrong = |problem| Err(ProfileError { profile: name.to_owned(), problem });
        let word = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        if name.is_empty() || name.len() > 32 || !word(name) {
            return wrong(ProfileProblem::Name);
        }
        let lists = [("read", &self.read), ("write", &self.write), ("connect", &self.connect)];
        if let Some((list, _)) = lists.into_iter().find(|(_, entries)| entries.len() > LIST_MAX) {
            return wrong(ProfileProblem::TooMany(list));
        }
        let is_place = |place: &str| {
            let rest = place.strip_prefix("~/").or_else(|| place.strip_prefix('/')).unwrap_or(place);
            !rest.is_empty()
                && !place.contains(['\0', '\n', '*'])
                && (place == "." || rest.split('/').all(|part| !matches!(part, "" | "." | "..")))
                && !place.starts_with("~") | place.starts_with("~/")
        };
        for (list, places) in [("read", &self.read), ("write", &self.write)] {
            if let Some(place) = places.iter().find(|place| !is_place(place)) {
                return wrong(ProfileProblem::Place(list, place.clone()));
            }
        }
        let is_host = |host: &str| {
            let name = host.strip_prefix("*.").unwrap_or(host);
            let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
            name.contains('.') && name.bytes().all(plain) && !name.split('.').any(str::is_empty) && host.len() <= 253
        };
        if let Some(host) = self.connect.iter().find(|host| !is_host(host)) {
            return wrong(ProfileProblem::Host(host.clone()));
        }
        let is_variable = |name: &str| {
            !name.is_empty()
                && !name.starts_with(|first: char| first.is_ascii_digit())
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        };
        let sound = |(name, value): &(&String, &String)| is_variable(name) && !value.contains('\0');
        if let Some((variable, _)) = self.env.iter().find(|pair| !sound(pair)) {
            return wrong(ProfileProblem::Variable(variable.clone()));
        }
        Ok(())
    }
}

fn resolve(name: &str, sources: &BTreeMap<String, ProfileSource>) -> Result<Profile, ProfileError> {
    let wrong = |problem| ProfileError { profile: name.to_owned(), problem };
    let mut chain: Vec<&ProfileSource> = Vec::new();
    let mut next = Some(name);
    while let Some(current) = next {
        if chain.len() >= INHERIT_MAX {
            return Err(wrong(ProfileProblem::Circle));
        }
        let source = sources.get(current).ok_or_else(|| wrong(ProfileProblem::Inherits(current.to_owned())))?;
        chain.push(source);
        next = source.inherit.as_deref();
    }
    let mut all = ProfileSource::default();
    chain.into_iter().rev().for_each(|source| all.extend(source));
    let ProfileSource { mut read, mut write, mut connect, env, .. } = all;
    for list in [&mut read, &mut write, &mut connect] {
        list.sort();
        list.dedup();
    }
    let texts = |texts: &[String]| Json::Array(texts.iter().map(|text| text.as_str().into()).collect());
    let variables = env.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
    let parts = vec![texts(&read), texts(&write), texts(&connect), Json::Object(variables)];
    let digest = Digest::of(&["profile\n", &Json::Array(parts).canonical()]);
    Ok(Profile { name: name.to_owned(), read, write, connect, env, digest })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(write: &[&str], connect: &[&str], inherit: Option<&str>) -> ProfileSource {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        ProfileSource {
            write: owned(write),
            connect: owned(connect),
            inherit: inherit.map(str::to_owned),
            ..ProfileSource::default()
        }
    }

    fn load(added: &[(&str, ProfileSource)]) -> Result<Profiles, ProfileError> {
        Profiles::load(&added.iter().map(|(name, source)| ((*name).to_owned(), source.clone())).collect())
    }

    #[test]
    fn shipped_profiles_build_on_one_another() {
        let profiles = load(&[]).expect("profiles");
        assert!(profiles.get(READ).expect("one").write.is_empty());
        assert_eq!(profiles.get(PROJECT).expect("one").write, ["."]);
        assert_eq!(profiles.get(BUILD).expect("one").write, ["."]);
        assert!(profiles.get(BUILD).expect("one").connect.is_empty());
        assert_eq!(profiles.names().collect::<Vec<_>>(), [BUILD, PROJECT, READ]);
    }

    #[test]
    fn a_bundle_adds_to_them_and_the_digest_tells() {
        let (before, after) = (load(&[]), load(&[(BUILD, source(&[], &["*.example.org"], None))]));
        let (before, after) = (before.expect("profiles"), after.expect("profiles"));
        let build = after.get(BUILD).expect("one");
        assert_eq!(build.write, ["."], "what is shipped stays");
        assert_ne!(build.digest(), before.get(BUILD).expect("one").digest());
        assert_eq!(after.get(PROJECT), before.get(PROJECT));
        assert!(build.connects("a.example.org") && build.connects("b.a.example.org"));
        for other in ["example.org", ".example.org", "aexample.org", "example.org.evil.net"] {
            assert!(!build.connects(other), "{other}");
        }
    }

    #[test]
    fn what_says_nothing_sound_is_refused() {
        for write in ["", "..", "a/../b", "~", "~root/x", "a//b", "/", "a*", "x\n"] {
            assert!(load(&[("mine", source(&[write], &[], None))]).is_err(), "{write:?}");
        }
        for write in [".", "dist", "~/x/y", "/var/lib/mine", ".cache"] {
            assert!(load(&[("mine", source(&[write], &[], None))]).is_ok(), "{write:?}");
        }
        for host in ["", "*", "*.", "localhost", "a..b", "A.example", "h/x", "h:80.x"] {
            assert!(load(&[("mine", source(&[], &[host], None))]).is_err(), "{host:?}");
        }
        assert!(load(&[("mine", source(&[], &[], Some("absent")))]).is_err());
        assert!(load(&[("mine", source(&[], &[], Some("mine")))]).is_err());
        assert!(load(&[("a b", source(&[], &[], None))]).is_err());
    }
}
