//! Commands that print credentials, or change the machine, without naming a file. The file that holds it stands for it.

use super::Effect;
use super::reduce::Argument;
use super::unnamed::texts;

/// Names of commands, words of which those of one entry print a credential, and the file that holds it.
type Row = (&'static [&'static str], &'static [&'static [&'static str]], &'static str);

/// Commands with the words, in this order, by which they print a credential, and the file that holds it. A word that
/// begins with a dash is an option, wherever it stands; one that ends in `*` begins so.
#[rustfmt::skip]
const PRINTING: &[Row] = &[
    (&["aws"], &[
        &["configure", "get"], &["configure", "export-credentials"], &["sts", "get-*"], &["sts", "assume-*"],
        &["get-login*"], &["get-secret-value"], &["get-authorization-token"], &["get-role-credentials"],
        &["get-credentials*"], &["--with-decryption"],
    ], "~/.aws/credentials"),
    (&["kubectl", "oc"], &[
        &["config", "view", "--raw*"], &["get", "secret*"], &["create", "token"], &["whoami", "-t"],
        &["whoami", "--show-token"],
    ], "~/.kube/config"),
    (&["gh", "glab"], &[
        &["auth", "token"], &["auth", "status", "-t"], &["auth", "status", "--show-token*"],
        &["auth", "git-credential"],
    ], "~/.config/gh/hosts.yml"),
    (&["gcloud"], &[
        &["print-*-token"], &["print-access-token"], &["print-identity-token"], &["config-helper"],
        &["secrets", "versions", "access"],
    ], "~/.config/gcloud/credentials.db"),
    (&["az"], &[
        &["get-access-token"], &["keyvault", "secret"], &["--expose-token"], &["list-keys"], &["keys", "list"],
    ], "~/.azure/msal_token_cache.json"),
    (&["docker", "podman", "docker-compose", "podman-compose"], &[
        &["compose", "config"], &["compose", "convert"], &["--get-login"], &["context", "export"],
    ], ".env"),
    (&["docker-compose", "podman-compose"], &[&["config"], &["convert"]], ".env"),
    (&["npm", "pnpm", "yarn", "bun"], &[
        &["config", "get", "*auth*"], &["config", "get", "*token*"], &["config", "get", "*password*"],
        &["config", "get", "//*"], &["config", "ls"], &["config", "list"], &["c", "ls"], &["c", "list"],
        &["config", "--json"], &["get", "*auth*"], &["get", "//*"],
    ], "~/.npmrc"),
    (&["pip", "pip2", "pip3", "uv", "poetry", "pdm", "twine"], &[
        &["config", "list"], &["config", "get"], &["config", "debug"], &["config", "--list"], &["auth", "token"],
    ], "~/.pypirc"),
    (&["composer"], &[&["config"]], "~/.netrc"),
    (&["terraform", "tofu"], &[&["output"], &["show"], &["state", "pull"], &["state", "show"]], "terraform.tfstate"),
    (&["systemctl"], &[&["show-environment"]], "/proc/1/environ"),
    (&["launchctl"], &[&["getenv"], &["export"]], "/proc/1/environ"),
    (&["heroku"], &[&["auth:token"], &["config*"], &["authorizations*"]], "~/.netrc"),
    (&["fly", "flyctl", "doctl", "vercel", "netlify", "railway", "wrangler", "supabase", "hcloud"], &[
        &["auth", "token"], &["tokens"], &["env"], &["variables"], &["whoami"],
    ], "~/.netrc"),
    (&["vault", "op", "bw", "pass", "secret-tool", "security", "keyring", "gopass", "lpass", "rclone"], &[
        &["read"], &["get"], &["show"], &["lookup"], &["search"], &["find-*"], &["print"], &["dump"], &["reveal"],
        &["kv"], &["item"], &["export"],
    ], "~/.vault-token"),
    (&["nmcli"], &[&["-s"], &["--show-secrets"]], "~/.netrc"),
    (&["gpg", "gpg2"], &[&["--export-secret*"]], "~/.gnupg/secring.gpg"),
    (&["git"], &[&["credential", "fill"], &["credential-*", "get"]], "~/.git-credentials"),
];

/// Options of `ps` that have a value.
const PS_WITH_VALUE: [&str; 18] = [
    "-C", "-p", "-u", "-U", "-g", "-G", "-t", "-q", "-s", "p", "t", "U", "--pid", "--ppid", "--user", "--sort",
    "--tty", "--group",
];

/// Commands that change the machine where they change anything.
#[rustfmt::skip]
const MACHINE: &[&str] = &[
    "date", "gdate", "ip", "hostname", "hostnamectl", "domainname", "dmesg", "journalctl", "timedatectl", "localectl",
    "sysctl", "ifconfig", "route", "arp", "swapon", "swapoff", "hwclock", "systemctl", "loginctl", "mount", "umount",
    "tc", "bridge", "ethtool", "nmcli", "setterm", "loadkeys", "rfkill", "brightnessctl", "logger", "renice", "chrt",
    "scutil", "networksetup", "pmset", "nvram",
];
/// What stands for the machine.
const THE_MACHINE: &str = "/proc/sys";

/// The file that holds what a command prints, if that is a credential.
pub(super) fn credential(name: &str, arguments: &[Argument]) -> Option<&'static str> {
    if name == "ps" {
        return prints_environments(arguments).then_some("/proc/1/environ");
    }
    let rows = PRINTING.iter().filter(|(names, ..)| names.contains(&name));
    let prints = |words: &&[&str]| has_in_order(arguments, words);
    rows.into_iter().find(|(_, ways, _)| ways.iter().any(prints)).map(|(.., file)| *file)
}

/// What a command changes that is no file.
pub(super) fn changed(name: &str, label: Effect) -> Option<&'static str> {
    (MACHINE.contains(&name) && label > Effect::ReadOnly).then_some(THE_MACHINE)
}

/// Whether words stand among the arguments in this order, with others between them; options in any.
fn has_in_order(arguments: &[Argument], words: &[&str]) -> bool {
    let is = |pattern: &str, text: &str| {
        let text = text.to_ascii_lowercase();
        let pieces: Vec<&str> = pattern.split('*').collect();
        match pieces.as_slice() {
            [whole] => text == *whole,
            [first, last] => text.starts_with(first) && text.ends_with(last),
            [_, middle, _] => text.contains(middle),
            _ => false,
        }
    };
    let mut rest = texts(arguments);
    words.iter().all(|word| match word.starts_with('-') {
        true => texts(arguments).any(|text| is(word, text)),
        false => rest.any(|text| is(word, text)),
    })
}

/// `ps e`, `ps auxe`, `ps -o environ`, and `-E` elsewhere: the environments of processes.
fn prints_environments(arguments: &[Argument]) -> bool {
    let mut words = texts(arguments);
    while let Some(word) = words.next() {
        if word.contains("environ") {
            return true;
        }
        if PS_WITH_VALUE.contains(&word) {
            words.next();
            continue;
        }
        let is_bundle = !word.is_empty() && word.bytes().all(|letter| letter.is_ascii_alphabetic());
        // Behind an `o` in a bundle is the format, mostly the next word.
        let letters = word.split('o').next().unwrap_or("");
        let is_apple = word.starts_with('-') && !word.starts_with("--") && word.contains('E');
        if is_apple || is_bundle && letters.contains('e') {
            return true;
        }
        if is_bundle && word.ends_with('o') || word.starts_with('-') && word.ends_with('o') {
            let format = words.next().unwrap_or("");
            if format.contains("environ") {
                return true;
            }
        }
    }
    false
}
