//! Which names may reach a program, and which ones the shell itself heeds.

/// Whether a variable of this name may be set for a program that is run.
pub(super) fn is_allowed(name: &str) -> bool {
    name.starts_with("LC_")
        || name.starts_with("CLICOLOR")
        || matches!(name, "LANG" | "TZ" | "TERM" | "COLUMNS" | "NO_COLOR")
}

/// Whether a variable of this name is likely exported already, so that giving it a value reaches programs.
pub(super) fn is_exported(name: &str) -> bool {
    NAMES.contains(&name)
        || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || name.ends_with("_proxy")
        || name.ends_with("_PROXY")
}

/// Whether a value of this variable is evaluated as an expression.
pub(super) fn is_integer(name: &str) -> bool {
    matches!(name, "RANDOM" | "SRANDOM" | "OPTIND" | "HISTCMD" | "SECONDS" | "LINENO" | "EPOCHSECONDS" | "BASHPID")
}

/// Whether the shell evaluates the value of this variable, or changes what runs by it.
pub(super) fn is_evaluated(name: &str) -> bool {
    matches!(
        name,
        "PS4"
            | "PROMPT_COMMAND"
            | "PS0"
            | "PS1"
            | "PS2"
            | "BASH_ENV"
            | "ENV"
            | "SHELLOPTS"
            | "BASHOPTS"
            | "BASH_ALIASES"
            | "BASH_CMDS"
            | "BASH_LOADABLES_PATH"
            | "EXECIGNORE"
            | "FCEDIT"
            | "CDPATH"
            | "HISTFILE"
    )
}

#[rustfmt::skip]
const PREFIXES: &[&str] = &[
    "LD_", "DYLD_", "GIT_", "SSH_", "PYTHON", "PERL5", "RUBY", "NODE_", "NPM_", "npm_", "JAVA_", "JDK_", "CARGO_",
    "RUSTC_", "MALLOC_", "GLIBC_", "XDG_", "DBUS_", "AWS_", "GOOGLE_", "AZURE_", "DOCKER_", "KUBECONFIG", "CURL_",
    "BAT_", "FZF_", "ZSTD_", "XZ_", "LESS", "BASH_", "VIRTUAL_ENV", "CONDA_",
];

#[rustfmt::skip]
const NAMES: &[&str] = &[
    "PATH", "HOME", "SHELL", "USER", "LOGNAME", "PWD", "OLDPWD", "TMPDIR", "TMP", "TEMP", "EDITOR", "VISUAL", "PAGER",
    "MANPAGER", "MANPATH", "MANOPT", "BROWSER", "GREP_OPTIONS", "GREP_COLORS", "GREP_COLOR", "TAR_OPTIONS", "TAPE",
    "RSYNC_RSH", "GZIP", "BZIP2", "BZIP", "ZIPOPT", "UNZIP", "RIPGREP_CONFIG_PATH", "CLASSPATH", "MAKEFLAGS",
    "MAKEFILES", "CC", "CXX", "WGETRC", "INPUTRC", "POSIXLY_CORRECT", "LS_COLORS", "LSCOLORS", "EXINIT", "VIMINIT",
    "AWKPATH", "AWKLIBPATH", "DISPLAY", "TERMINFO", "TERMCAP", "LOCPATH", "NLSPATH", "LANGUAGE", "MAIL", "MAILPATH",
    "KRB5_CONFIG", "OPENSSL_CONF", "PKG_CONFIG_PATH", "GCONV_PATH", "HOSTALIASES", "GOPATH", "GOROOT", "GOFLAGS",
    "GOBIN", "GOPROXY", "GOENV", "GOTOOLCHAIN", "RUSTFLAGS", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "CDPATH", "GLOBIGNORE",
];

/// Whether zsh keeps a variable of the environment under this name too, as an array, or another one of its own.
pub(super) fn is_tied(name: &str) -> bool {
    let tied = ["path", "cdpath", "fpath", "manpath", "mailpath", "module_path", "psvar", "watch", "argv", "fignore"];
    let own = ["aliases", "galiases", "saliases", "functions", "commands", "options", "nameddirs", "NULLCMD"];
    tied.contains(&name) || own.contains(&name) || matches!(name, "READNULLCMD" | "ZDOTDIR" | "FPATH" | "prompt")
}
