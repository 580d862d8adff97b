//! Linux: namespaces with read-only mounts, Landlock as the second layer, a filter of system calls last. Without
//! namespaces, Landlock and the filter, and what they cannot tell apart is done by the runner.

mod arms;
mod calls;
mod child;
mod deeds;
mod field;
mod filter;
mod found;
mod hosts;
mod locked;
mod narrow;
mod notify;
mod plan;
mod probe;
mod proxy;
mod rules;
mod session;
mod steps;
mod supervise;
mod sys;

use std::collections::BTreeMap;
use std::ffi::{CString, OsString};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use interlock_core::contain::{Armed, Bound, Reach, Rung, UnreadPattern};
use rustix::process::{Pid, PidfdFlags};

use crate::{ContainFault, Ended, How, Start};
use arms::Began;
use child::Cell;
use hosts::Hosts;
use plan::Plan;
pub use probe::probe;
use proxy::Proxy;
pub use session::end_session;
use supervise::Handed;
use sys::{Image, Signals};

/// Where programs are looked for if no variable says it.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// Where the proxy listens, inside.
const PROXY_PORT_FIRST: u16 = 20_000;
const PROXY_PORTS: u32 = 12_000;
/// Variables by which programs find a proxy.
const PROXY_VARIABLES: [&str; 6] = ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"];

/// Runs a command held to its bound and waits for its end. After a fault nothing has run.
pub fn run(start: &Start) -> Result<Ended, ContainFault> {
    // Beneath the ports that the kernel gives out by itself, and different for calls that share a network.
    let port = u16::try_from(std::process::id() % PROXY_PORTS).unwrap_or(0).saturating_add(PROXY_PORT_FIRST);
    let mut plan = start.bound.as_ref().map(|bound| plan_of(start, bound, port)).transpose()?;
    let is_narrow = start.bound.as_ref().is_some_and(|bound| bound.rung == Rung::Narrow);
    let image = image(start, port, plan.as_ref())?;
    let mut notes = plan.as_mut().map(|plan| std::mem::take(&mut plan.notes)).unwrap_or_default();
    let (hold, outer, mut field, kept) = match plan {
        Some(Plan { hold, outer, field, placeholders, layers, own_temporary, .. }) => {
            (Some(hold), outer, Some(field), Some((placeholders, layers, own_temporary)))
        }
        None => (None, None, None, None),
    };
    let layers = kept.iter().flat_map(|(_, layers, _)| layers);
    let mut layers: Vec<_> = layers.map(|layer| layer.work.as_raw_fd()).collect();
    layers.sort_unstable();
    let armed = start.bound.as_ref().map_or(&[][..], |bound| &bound.armed);
    let unread =
        |unread: UnreadPattern| ContainFault::Bound { path: unread.pattern, why: "the pattern cannot be read" };
    let armed = Armed::load(armed).map_err(unread)?;
    let program = start.program.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let session = start.session.as_ref().filter(|_| hold.is_some());
    let owner = session.filter(|_| is_narrow).map(|session| owner_of(session.owner)).transpose()?;
    let session = session.filter(|_| !is_narrow).map(session::join).transpose()?;
    let cell = Cell {
        session,
        hold,
        image,
        cwd: text(start.cwd.clone().into())?,
        mask: Signals::of(&[]),
        layers,
        is_narrow,
        owner,
    };
    let is_ending = Arc::new(AtomicBool::new(false));
    let refusals = Arc::new(Mutex::new(Vec::new()));
    let began = Began::now();
    let mut proxy = None;
    let result = supervise::supervise(cell, &program, outer, |handed| match handed {
        Handed::Calls(listener) => {
            let field = field.take().unwrap_or_default();
            notify::attend(listener, field, Arc::clone(&refusals), Arc::clone(&is_ending));
        }
        Handed::Proxy(socket) => match Proxy::serve(socket, hosts_of(start)) {
            Ok(serves) => proxy = Some(serves),
            Err(error) => notes.push(format!("no host can be reached: {error}")),
        },
        Handed::Ending => is_ending.store(true, Ordering::Release),
        Handed::NoLayers => notes.push("a cache begins empty: it could not be laid over the user's".to_owned()),
    });
    drop(kept);
    let (how, duration) = result?;
    let search = |bound| arms::search(bound, &armed, &began, start.aside.as_deref());
    let found = start.bound.as_ref().map(search).unwrap_or_default();
    notes.extend(found.notes);
    let refusals = std::mem::take(&mut *refusals.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(Ended {
        how,
        duration,
        refusals,
        set_aside: found.set_aside,
        reached: proxy.map_or_else(Vec::new, |proxy| proxy.reached()),
        notes,
    })
}

/// What a bound means, by what it was decided that the command is held.
fn plan_of(start: &Start, bound: &Bound, port: u16) -> Result<Plan, ContainFault> {
    match bound.rung {
        Rung::Full => plan::plan(start, bound, port),
        Rung::Narrow => narrow::plan(start, bound),
        Rung::None => Err(ContainFault::Unsupported),
    }
}

/// The process whose end is a session's.
fn owner_of(owner: u32) -> Result<OwnedFd, ContainFault> {
    let part = || ContainFault::of("the owner of the session");
    let owner = i32::try_from(owner).ok().and_then(Pid::from_raw);
    let owner = owner.ok_or_else(|| part()(io::Error::from_raw_os_error(libc::ESRCH)))?;
    rustix::process::pidfd_open(owner, PidfdFlags::empty()).map_err(io::Error::from).map_err(part())
}

fn hosts_of(start: &Start) -> Hosts {
    match start.bound.as_ref().map(|bound| &bound.reach) {
        Some(Reach::Hosts(names)) => Hosts::read(names),
        Some(Reach::Nothing) | None => Hosts::default(),
    }
}

impl Ended {
    /// Ends this process as the command ended: with its code, or by its signal.
    pub fn exit_process(&self) -> ! {
        match self.how {
            How::Exit(code) => std::process::exit(code),
            How::Signal(signal) => {
                sys::die_of(signal);
                std::process::exit(signal.saturating_add(128))
            }
        }
    }
}

/// The command in the form that the kernel takes.
fn image(start: &Start, port: u16, plan: Option<&Plan>) -> Result<Image, ContainFault> {
    let variables = environment(start, port, plan);
    let path = variables.get(&OsString::from("PATH")).cloned().unwrap_or_else(|| PATH.into());
    let Some(program) = start.program.first() else {
        return Err(ContainFault::Bound { path: String::new(), why: "there is no program" });
    };
    let candidates = if program.as_bytes().contains(&b'/') {
        vec![text(program.clone())?]
    } else {
        std::env::split_paths(&path).map(|directory| text(directory.join(program).into())).collect::<Result<_, _>>()?
    };
    let arguments = start.program.iter().map(|argument| text(argument.clone())).collect::<Result<_, _>>()?;
    let variables = variables
        .into_iter()
        .map(|(mut name, value)| {
            name.push("=");
            name.push(value);
            text(name)
        })
        .collect::<Result<_, _>>()?;
    Ok(Image::new(candidates, arguments, variables))
}

/// Its variables: those it was handed, less what the bound blocks, with what the bound sets.
fn environment(start: &Start, port: u16, plan: Option<&Plan>) -> BTreeMap<OsString, OsString> {
    let mut variables: BTreeMap<OsString, OsString> = start.env.iter().cloned().collect();
    if let Some((bound, plan)) = start.bound.as_ref().zip(plan) {
        for name in &bound.env_blocked {
            variables.remove(&OsString::from(name));
        }
        variables.insert("TMPDIR".into(), plan.temporary.clone().into());
        variables.extend(plan.variables.iter().cloned());
        if matches!(bound.reach, Reach::Hosts(_)) {
            let address = OsString::from(format!("http://127.0.0.1:{port}"));
            variables.extend(PROXY_VARIABLES.map(|name| (name.into(), address.clone())));
            variables.extend(["no_proxy", "NO_PROXY"].map(|name| (name.into(), "localhost,127.0.0.1,::1".into())));
            variables.insert("NODE_USE_ENV_PROXY".into(), "1".into());
        }
        variables.extend(bound.env_set.iter().map(|(name, value)| (name.into(), value.into())));
    }
    variables
}

fn text(part: OsString) -> Result<CString, ContainFault> {
    CString::new(part.into_vec()).map_err(|error| ContainFault::Bound {
        path: String::from_utf8_lossy(&error.into_vec()).into_owned(),
        why: "it has a NUL in it",
    })
}
