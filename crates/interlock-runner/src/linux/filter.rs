//! Which system calls a contained command may make: a filter that the kernel runs before each of them.
//!
//! What is not named passes: files are held by mounts and Landlock, networks by their namespace. Named is what goes round
//! those (io_uring, other kinds of sockets, new namespaces and mounts), what reaches into the kernel, and what the
//! supervisor answers itself (`connect`, because a read-only mount does not stop it) or looks at (what changes files).
//! Without namespaces more is named: see `narrow`.

use std::collections::BTreeMap;

use super::calls;
use super::sys::Instruction;

/// What is different between machines.
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xC000_00B7;

/// Calls of the x32 interface have this bit; their numbers mean other things.
const X32_BIT: u32 = 0x4000_0000;

/// Flags of `clone` and `unshare` that make namespaces: mounts, cgroups, names, ipc, users, processes, networks, time.
const NAMESPACES: u32 = 0x0002_0000 | 0x0200_0000 | 0x0400_0000 | 0x0800_0000 | 0x1000_0000 | 0x2000_0000 | 0x4000_0000;
const NEW_TIME: u32 = 0x0000_0080;

const EPERM: u32 = libc::EPERM.unsigned_abs();
const EACCES: u32 = libc::EACCES.unsigned_abs();
const ENOSYS: u32 = libc::ENOSYS.unsigned_abs();
const EAFNOSUPPORT: u32 = libc::EAFNOSUPPORT.unsigned_abs();

// What each instruction does, in the words of the kernel's filter machine.
const LOAD: u16 = 0x20;
const AND: u16 = 0x54;
const JUMP: u16 = 0x05;
const IS_EQUAL: u16 = 0x15;
const IS_AT_LEAST: u16 = 0x35;
const HAS_BITS: u16 = 0x45;
const RETURN: u16 = 0x06;

// Where things are in what the filter is given.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
const ARGUMENTS: u32 = 16;

const ALLOW: u32 = 0x7FFF_0000;
const KILL: u32 = 0x8000_0000;
const HAND_OVER: u32 = 0x7FC0_0000;
const fn error(number: u32) -> u32 {
    0x0005_0000 | number
}

/// What becomes of a call that is named.
enum Rule {
    /// It fails with this number.
    Fails(u32),
    /// It waits for the supervisor.
    Asks,
    /// It waits for the supervisor if the argument has one of these bits.
    AsksIfBits(u32, u32),
    /// It starts a process, unless it starts a thread, and makes no namespaces.
    Forks,
    /// It is refused unless these arguments, as 32 bits, are these.
    OnlyValues(&'static [(u32, u32)]),
    /// It is refused unless the first argument is zero, or it changes nothing: the third is no address.
    OnlyOwnLimits,
    /// The second argument is what a descriptor is asked to do.
    Controls,
    /// The first argument is a family of sockets that are connected to each other already, the second a kind.
    Pair,
    /// It is refused if the argument has one of these bits.
    NoBits(u32, u32),
    /// It is refused if the argument, as 32 bits, is one of these.
    NoValue(u32, &'static [u32]),
    /// The first argument is a family of sockets, the second a kind.
    Socket,
}

/// What a filter is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A command in namespaces. Landlock keeps signals inside.
    Scoped,
    /// A command in namespaces that Landlock does not keep from signalling: signals to the own process group, which reaches
    /// outside, are refused.
    NoGroup,
    /// A command without namespaces. `reads` if files are opened for reading by the runner as well.
    Narrow { reads: bool },
}

/// The filter, in the order of the kernel's machine.
pub(crate) fn filter(kind: Kind) -> Vec<Instruction> {
    let mut out = vec![
        load(ARCH),
        jump(IS_EQUAL, ARCHITECTURE, 1, 0),
        give(KILL),
        load(NUMBER),
        jump(IS_AT_LEAST, X32_BIT, 0, 1),
        give(error(ENOSYS)),
    ];
    let of_kind = match kind {
        Kind::Scoped => in_namespaces(),
        Kind::NoGroup => in_namespaces().into_iter().chain([(libc::SYS_kill, Rule::NoValue(0, &[0]))]).collect(),
        Kind::Narrow { reads } => narrow(reads),
    };
    let mut blocks = BTreeMap::new();
    for (number, rule) in rules().into_iter().chain(of_kind) {
        if let Ok(number) = u32::try_from(number) {
            blocks.entry(number).or_insert_with(|| block(&rule));
        }
    }
    let blocks: Vec<_> = blocks.into_iter().collect();
    out.extend(search(&blocks));
    out
}

/// Finds the block of a call by halves: the kernel tries every number when it takes the filter, and a call that is not always
/// allowed pays for each step on its way.
fn search(blocks: &[(u32, Vec<Instruction>)]) -> Vec<Instruction> {
    const FEW: usize = 3;
    let (lower, upper) = blocks.split_at(blocks.len() / 2);
    let mut out = Vec::new();
    match upper.first() {
        Some((first, _)) if blocks.len() > FEW => {
            let lower = search(lower);
            let over = Instruction { code: JUMP, jt: 0, jf: 0, k: u32::try_from(lower.len()).unwrap_or(u32::MAX) };
            out.extend([jump(IS_AT_LEAST, *first, 0, 1), over]);
            out.extend(lower);
            out.extend(search(upper));
        }
        _ => {
            let refused = [give(error(EPERM))];
            for (number, block) in blocks {
                // No block is longer than a jump can be; if one were, its call would be refused.
                let (length, block) = u8::try_from(block.len()).map_or((1, &refused[..]), |length| (length, block));
                out.push(jump(IS_EQUAL, *number, 0, length));
                out.extend(block);
            }
            out.push(give(ALLOW));
        }
    }
    out
}

/// Calls that are named in every filter.
fn rules() -> Vec<(libc::c_long, Rule)> {
    use Rule::{Asks, Fails, NoBits};
    #[rustfmt::skip]
    let refused = [
        // Goes round this filter.
        libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register,
        // Its flags lie in memory, which a filter cannot read; libraries then use `clone`.
        libc::SYS_clone3,
    ];
    #[rustfmt::skip]
    let forbidden = [
        // Keys belong to the user, not to a namespace.
        libc::SYS_keyctl, libc::SYS_add_key, libc::SYS_request_key,
        // New views of the file system.
        libc::SYS_mount, libc::SYS_umount2, libc::SYS_pivot_root, libc::SYS_chroot, libc::SYS_open_tree,
        libc::SYS_move_mount, libc::SYS_fsopen, libc::SYS_fsconfig, libc::SYS_fsmount, libc::SYS_fspick,
        libc::SYS_mount_setattr, libc::SYS_setns, libc::SYS_open_by_handle_at, libc::SYS_quotactl,
        libc::SYS_quotactl_fd, libc::SYS_fanotify_init,
        // Into the kernel.
        libc::SYS_bpf, libc::SYS_perf_event_open, libc::SYS_userfaultfd, libc::SYS_kexec_load, libc::SYS_init_module,
        libc::SYS_finit_module, libc::SYS_delete_module, libc::SYS_reboot, libc::SYS_swapon, libc::SYS_swapoff,
        libc::SYS_acct, libc::SYS_syslog, libc::SYS_vhangup, libc::SYS_settimeofday, libc::SYS_clock_settime,
        libc::SYS_clock_adjtime, libc::SYS_adjtimex, libc::SYS_sethostname, libc::SYS_setdomainname,
        libc::SYS_lookup_dcookie, libc::SYS_nfsservctl,
        OPEN_TREE_ATTR,
    ];
    let mut rules: Vec<_> = refused.into_iter().map(|number| (number, Fails(ENOSYS))).collect();
    rules.extend(forbidden.into_iter().chain(OF_MACHINE.iter().copied()).map(|number| (number, Fails(EPERM))));
    let changing = [calls::NAMES, calls::OLD_NAMES, calls::CHANGES, calls::OLD_CHANGES];
    rules.extend(changing.into_iter().flatten().map(|number| (*number, Asks)));
    rules.push((libc::SYS_unshare, NoBits(0, NAMESPACES | NEW_TIME)));
    rules
}

/// Files are opened for writing with one of these.
const WRITES: u32 = (libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC).unsigned_abs();

/// Calls that open files, and where their flags are.
#[cfg(target_arch = "x86_64")]
const OPENS: &[(libc::c_long, u32)] = &[(libc::SYS_openat, 2), (libc::SYS_open, 1)];
#[cfg(not(target_arch = "x86_64"))]
const OPENS: &[(libc::c_long, u32)] = &[(libc::SYS_openat, 2)];

/// TIOCSTI types into a terminal, TIOCLINUX pastes into it, TIOCSETD changes who reads it.
const INTO_TERMINALS: &[u32] = &[0x5412, 0x541C, 0x5423];

/// What a command in namespaces of its own may do because they hold it.
fn in_namespaces() -> Vec<(libc::c_long, Rule)> {
    let mut rules: Vec<_> = OPENS.iter().map(|(number, flags)| (*number, Rule::AsksIfBits(*flags, WRITES))).collect();
    rules.extend([
        (libc::SYS_connect, Rule::Asks),
        (libc::SYS_clone, Rule::NoBits(0, NAMESPACES)),
        (libc::SYS_ioctl, Rule::NoValue(1, INTO_TERMINALS)),
        (libc::SYS_socket, Rule::Socket),
        (libc::SYS_socketpair, Rule::Socket),
    ]);
    rules
}

/// What namespaces and mounts would hold: networks, messages between processes, priorities of others, attributes of files.
/// Processes are started only as long as the supervisor lets them, so that they can all be ended.
fn narrow(reads: bool) -> Vec<(libc::c_long, Rule)> {
    #[rustfmt::skip]
    let absent = [
        // Messages, memory and locks that belong to the machine and outlive a call.
        libc::SYS_shmget, libc::SYS_shmat, libc::SYS_shmctl, libc::SYS_semget, libc::SYS_semop, libc::SYS_semctl,
        libc::SYS_semtimedop, libc::SYS_msgget, libc::SYS_msgsnd, libc::SYS_msgrcv, libc::SYS_msgctl, libc::SYS_mq_open,
        libc::SYS_mq_unlink,
        // Attributes by newer calls; programs then use the older ones.
        SETXATTRAT, REMOVEXATTRAT, FILE_SETATTR,
    ];
    let mut rules: Vec<_> = absent.into_iter().map(|number| (number, Rule::Fails(ENOSYS))).collect();
    let opens = OPENS.iter().map(|(number, flags)| match reads {
        true => (*number, Rule::Asks),
        false => (*number, Rule::AsksIfBits(*flags, WRITES)),
    });
    rules.extend(opens);
    rules.extend(FORKS.iter().map(|number| (*number, Rule::Asks)));
    rules.extend([libc::SYS_socket, libc::SYS_connect, libc::SYS_bind].map(|number| (number, Rule::Fails(EACCES))));
    rules.extend([
        (libc::SYS_clone, Rule::Forks),
        (libc::SYS_socketpair, Rule::Pair),
        (libc::SYS_ioctl, Rule::Controls),
        (libc::SYS_prlimit64, Rule::OnlyOwnLimits),
        (libc::SYS_setpriority, Rule::OnlyValues(&[(0, 0), (1, 0)])),
        (libc::SYS_ioprio_set, Rule::OnlyValues(&[(0, 1), (1, 0)])),
        (libc::SYS_sched_setaffinity, Rule::OnlyValues(&[(0, 0)])),
        (libc::SYS_sched_setscheduler, Rule::OnlyValues(&[(0, 0)])),
        (libc::SYS_sched_setparam, Rule::OnlyValues(&[(0, 0)])),
        (libc::SYS_sched_setattr, Rule::OnlyValues(&[(0, 0)])),
    ]);
    rules
}

/// Whether a call starts a process.
pub(crate) fn is_fork(number: libc::c_long) -> bool {
    number == libc::SYS_clone || FORKS.contains(&number)
}

#[cfg(target_arch = "x86_64")]
const FORKS: &[libc::c_long] = &[libc::SYS_fork, libc::SYS_vfork];
#[cfg(not(target_arch = "x86_64"))]
const FORKS: &[libc::c_long] = &[];

// Calls that came with Linux 6.13 and 6.17.
const SETXATTRAT: libc::c_long = 463;
const REMOVEXATTRAT: libc::c_long = 466;
const FILE_SETATTR: libc::c_long = 469;

/// Mounts with attributes in one call, which came with Linux 6.15.
const OPEN_TREE_ATTR: libc::c_long = 467;

#[cfg(target_arch = "x86_64")]
const OF_MACHINE: &[libc::c_long] =
    &[libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_modify_ldt, libc::SYS_kexec_file_load, libc::SYS_uselib];
#[cfg(target_arch = "aarch64")]
const OF_MACHINE: &[libc::c_long] = &[libc::SYS_kexec_file_load];

/// The block of one call. Each way through it ends in a return, so no jump is longer than its block.
fn block(rule: &Rule) -> Vec<Instruction> {
    let mut block = Vec::new();
    match rule {
        Rule::Fails(errno) => block.push(give(error(*errno))),
        Rule::Asks => block.push(give(HAND_OVER)),
        Rule::NoBits(argument, bits) => {
            block.extend([argument_of(*argument), jump(HAS_BITS, *bits, 0, 1), give(error(EPERM)), give(ALLOW)]);
        }
        Rule::NoValue(argument, values) => {
            block.push(argument_of(*argument));
            for value in *values {
                block.extend([jump(IS_EQUAL, *value, 0, 1), give(error(EPERM))]);
            }
            block.push(give(ALLOW));
        }
        Rule::AsksIfBits(argument, bits) => {
            block.extend([argument_of(*argument), jump(HAS_BITS, *bits, 0, 1), give(HAND_OVER), give(ALLOW)]);
        }
        Rule::Forks => {
            let thread = libc::CLONE_THREAD.unsigned_abs();
            block.extend([argument_of(0), jump(HAS_BITS, NAMESPACES, 0, 1), give(error(EPERM))]);
            block.extend([jump(HAS_BITS, thread, 1, 0), give(HAND_OVER), give(ALLOW)]);
        }
        Rule::OnlyValues(values) => {
            for (argument, value) in *values {
                block.extend([argument_of(*argument), jump(IS_EQUAL, *value, 1, 0), give(error(EPERM))]);
            }
            block.push(give(ALLOW));
        }
        Rule::OnlyOwnLimits => {
            block.extend([argument_of(0), jump(IS_EQUAL, 0, 4, 0), argument_of(2), jump(IS_EQUAL, 0, 0, 3)]);
            block.extend([upper_of(2), jump(IS_EQUAL, 0, 0, 1), give(ALLOW), give(error(EPERM))]);
        }
        Rule::Controls => block.extend(controls()),
        Rule::Socket => block.extend(sockets()),
        Rule::Pair => {
            block.extend([argument_of(0), jump(IS_EQUAL, libc::AF_UNIX.unsigned_abs(), 1, 0), give(error(EACCES))]);
            block.extend([argument_of(1), Instruction { code: AND, jt: 0, jf: 0, k: SOCKET_KIND }]);
            block.extend([
                jump(IS_EQUAL, libc::SOCK_STREAM.unsigned_abs(), 2, 0),
                jump(IS_EQUAL, libc::SOCK_SEQPACKET.unsigned_abs(), 1, 0),
                give(error(EACCES)),
                give(ALLOW),
            ]);
        }
    }
    block
}

/// Which sockets there are: addresses of the internet, because the network namespace holds them; streams by path, because
/// the supervisor connects them; and routes, which programs ask for addresses. A datagram by path needs no `connect`.
fn sockets() -> Vec<Instruction> {
    #[rustfmt::skip]
    let block = vec![
        argument_of(0),
        jump(IS_EQUAL, libc::AF_INET.unsigned_abs(), 11, 0),
        jump(IS_EQUAL, libc::AF_INET6.unsigned_abs(), 10, 0),
        jump(IS_EQUAL, libc::AF_UNIX.unsigned_abs(), 4, 0),
        jump(IS_EQUAL, libc::AF_NETLINK.unsigned_abs(), 0, 2),
        argument_of(2),
        jump(IS_EQUAL, libc::NETLINK_ROUTE.unsigned_abs(), 6, 0),
        give(error(EAFNOSUPPORT)),
        argument_of(1),
        Instruction { code: AND, jt: 0, jf: 0, k: SOCKET_KIND },
        jump(IS_EQUAL, libc::SOCK_STREAM.unsigned_abs(), 2, 0),
        jump(IS_EQUAL, libc::SOCK_SEQPACKET.unsigned_abs(), 1, 0),
        give(error(EPERM)),
        give(ALLOW),
    ];
    block
}

/// What of the second argument is the kind of a socket.
const SOCKET_KIND: u32 = 0xF;

/// What descriptors may be asked without namespaces: nothing that types into terminals, and of what file systems know only
/// what reads, or copies to a file that is open for writing. Other things change files that are open for reading.
fn controls() -> Vec<Instruction> {
    // FS_IOC_GETFLAGS, FS_IOC_GETVERSION, FS_IOC_FSGETXATTR, FS_IOC_FIEMAP, FICLONE, FICLONERANGE
    const HARMLESS: [u32; 6] = [0x8008_6601, 0x8008_7601, 0x801C_581F, 0xC020_660B, 0x4004_9409, 0x4020_940D];
    // The letters of the file systems in general, ext4, xfs, fat, btrfs, f2fs and cifs.
    const OF_FILES: [u32; 7] = [0x6600, 0x7600, 0x5800, 0x7200, 0x9400, 0xF500, 0xCF00];
    let mut block = vec![argument_of(1)];
    for value in INTO_TERMINALS {
        block.extend([jump(IS_EQUAL, *value, 0, 1), give(error(EPERM))]);
    }
    for value in HARMLESS {
        block.extend([jump(IS_EQUAL, value, 0, 1), give(ALLOW)]);
    }
    block.push(Instruction { code: AND, jt: 0, jf: 0, k: 0xFF00 });
    for letter in OF_FILES {
        block.extend([jump(IS_EQUAL, letter, 0, 1), give(error(EPERM))]);
    }
    block.push(give(ALLOW));
    block
}

fn load(offset: u32) -> Instruction {
    Instruction { code: LOAD, jt: 0, jf: 0, k: offset }
}

/// The lower half of an argument. The kernel reads these arguments as 32 bits and ignores the rest.
fn argument_of(at: u32) -> Instruction {
    load(ARGUMENTS.saturating_add(at.saturating_mul(8)))
}

/// The upper half of an argument that is an address.
fn upper_of(at: u32) -> Instruction {
    load(ARGUMENTS.saturating_add(at.saturating_mul(8)).saturating_add(4))
}

fn jump(test: u16, value: u32, if_true: u8, if_false: u8) -> Instruction {
    Instruction { code: test, jt: if_true, jf: if_false, k: value }
}

fn give(value: u32) -> Instruction {
    Instruction { code: RETURN, jt: 0, jf: 0, k: value }
}

#[cfg(test)]
#[expect(clippy::arithmetic_side_effects, reason = "a test that overflows fails")]
mod tests {
    use super::*;

    /// The kernel's machine, as far as these filters use it.
    fn answer(filter: &[Instruction], arch: u32, number: u32, arguments: [u64; 6]) -> u32 {
        let (mut at, mut accumulator) = (0usize, 0u32);
        loop {
            let one = filter[at];
            at += 1;
            match one.code {
                LOAD => {
                    accumulator = match one.k {
                        NUMBER => number,
                        ARCH => arch,
                        offset if offset % 8 == 0 => arguments[(offset as usize - 16) / 8] as u32,
                        offset => (arguments[(offset as usize - 20) / 8] >> 32) as u32,
                    }
                }
                AND => accumulator &= one.k,
                JUMP => at += one.k as usize,
                RETURN => return one.k,
                test => {
                    let holds = match test {
                        IS_EQUAL => accumulator == one.k,
                        IS_AT_LEAST => accumulator >= one.k,
                        HAS_BITS => accumulator & one.k != 0,
                        other => panic!("instruction {other:#x}"),
                    };
                    at += usize::from(if holds { one.jt } else { one.jf });
                }
            }
        }
    }

    /// However a call is found, it is answered by the first rule that names it.
    #[test]
    fn every_call_is_answered_by_its_rule_and_by_no_other() {
        let no_group = in_namespaces().into_iter().chain([(libc::SYS_kill, Rule::NoValue(0, &[0]))]).collect();
        let kinds = [
            (Kind::Scoped, in_namespaces()),
            (Kind::NoGroup, no_group),
            (Kind::Narrow { reads: false }, narrow(false)),
            (Kind::Narrow { reads: true }, narrow(true)),
        ];
        for (kind, of_kind) in kinds {
            let (filter, named) = (filter(kind), rules().into_iter().chain(of_kind).collect::<Vec<_>>());
            for number in (0..1_000).chain([X32_BIT - 1]) {
                let rule = named.iter().find(|(named, _)| *named == libc::c_long::from(number));
                for arguments in [[0; 6], [1; 6], [u64::MAX; 6], [2, 0x5412, 1, 0, 0, 0]] {
                    let expected =
                        rule.map_or(ALLOW, |(_, rule)| answer(&block(rule), ARCHITECTURE, number, arguments));
                    assert_eq!(answer(&filter, ARCHITECTURE, number, arguments), expected, "{number} {arguments:?}");
                }
            }
        }
    }

    fn decide(number: libc::c_long, arguments: [u64; 6]) -> u32 {
        answer(&filter(Kind::NoGroup), ARCHITECTURE, number as u32, arguments)
    }

    #[test]
    fn sockets_that_reach_outside_are_refused_and_others_are_not() {
        let (stream, datagram, raw, sequence) = (1, 2, 3, 5);
        let flags = 0o2_000_000 | 0o4_000;
        #[rustfmt::skip]
        let cases = [
            // family, kind, protocol, expected
            (2, stream, 0, ALLOW), (2, datagram, 17, ALLOW), (10, stream, 0, ALLOW), (10, datagram, 0, ALLOW),
            (1, stream, 0, ALLOW), (1, stream | flags, 0, ALLOW), (1, sequence, 0, ALLOW),
            (1, datagram, 0, error(EPERM)), (1, datagram | flags, 0, error(EPERM)), (1, raw, 0, error(EPERM)),
            (16, raw, 0, ALLOW), (16, datagram, 0, ALLOW), (16, raw, 15, error(EAFNOSUPPORT)),
            (40, stream, 0, error(EAFNOSUPPORT)), (38, sequence, 0, error(EAFNOSUPPORT)), (17, raw, 0, error(EAFNOSUPPORT)),
            // The kernel ignores the upper half.
            (1 | 7 << 32, datagram | 9 << 32, 0, error(EPERM)), (40 | 2 << 40, stream, 0, error(EAFNOSUPPORT)),
        ];
        for (family, kind, protocol, expected) in cases {
            for call in [libc::SYS_socket, libc::SYS_socketpair] {
                assert_eq!(decide(call, [family, kind, protocol, 0, 0, 0]), expected, "{family} {kind} {protocol}");
            }
        }
    }

    #[test]
    fn what_goes_round_the_other_layers_is_refused() {
        let at = |first: u64, second: u64| [first, second, 0, 0, 0, 0];
        assert_eq!(decide(libc::SYS_io_uring_setup, at(1, 0)), error(ENOSYS));
        assert_eq!(decide(libc::SYS_clone3, at(1, 0)), error(ENOSYS));
        assert_eq!(decide(libc::SYS_connect, at(3, 0)), HAND_OVER);
        assert_eq!(decide(libc::SYS_clone, at(0x1000_0011, 0)), error(EPERM));
        assert_eq!(decide(libc::SYS_clone, at(0x0100_0011, 0)), ALLOW);
        assert_eq!(decide(libc::SYS_unshare, at(0x400, 0)), ALLOW);
        assert_eq!(decide(libc::SYS_unshare, at(0x2_0000, 0)), error(EPERM));
        assert_eq!(decide(libc::SYS_ioctl, at(0, 0x5412 | 1 << 33)), error(EPERM));
        assert_eq!(decide(libc::SYS_ioctl, at(0, 0x5401)), ALLOW);
        assert_eq!(decide(libc::SYS_kill, at(0, 9)), error(EPERM));
        assert_eq!(decide(libc::SYS_kill, at(12, 9)), ALLOW);
        assert_eq!(decide(libc::SYS_read, at(0, 0)), ALLOW);
        assert_eq!(decide(libc::SYS_ptrace, at(0, 0)), ALLOW);
        let scoped = filter(Kind::Scoped);
        assert_eq!(answer(&scoped, ARCHITECTURE, libc::SYS_kill as u32, at(0, 9)), ALLOW);
    }

    #[test]
    fn what_changes_files_is_looked_at_and_what_reads_them_is_not() {
        let create = u64::from(WRITES);
        for kind in [Kind::Scoped, Kind::NoGroup, Kind::Narrow { reads: false }] {
            let ask = |number: libc::c_long, arguments| answer(&filter(kind), ARCHITECTURE, number as u32, arguments);
            assert_eq!(ask(libc::SYS_openat, [0, 0, 0o2_000_000, 0, 0, 0]), ALLOW);
            for flags in [1, 2, 0o100, 0o1000, create] {
                assert_eq!(ask(libc::SYS_openat, [0, 0, flags, 0, 0, 0]), HAND_OVER, "{flags:o}");
            }
            for number in
                [libc::SYS_renameat2, libc::SYS_unlinkat, libc::SYS_mkdirat, libc::SYS_fchmod, libc::SYS_openat2]
            {
                assert_eq!(ask(number, [0; 6]), HAND_OVER, "{number}");
            }
        }
        let reads = filter(Kind::Narrow { reads: true });
        assert_eq!(answer(&reads, ARCHITECTURE, libc::SYS_openat as u32, [0; 6]), HAND_OVER);
    }

    #[test]
    fn without_namespaces_there_is_no_network_and_nothing_of_others_is_changed() {
        let filter = filter(Kind::Narrow { reads: false });
        let ask = |number: libc::c_long, a, b, c| answer(&filter, ARCHITECTURE, number as u32, [a, b, c, 0, 0, 0]);
        for family in [1, 2, 10, 16, 17, 40] {
            assert_eq!(ask(libc::SYS_socket, family, 1, 0), error(EACCES), "{family}");
        }
        #[rustfmt::skip]
        let cases = [
            (libc::SYS_socketpair, 1, 1, 0, ALLOW), (libc::SYS_socketpair, 1, 5 | 0o2_000_000, 0, ALLOW),
            (libc::SYS_socketpair, 1, 2, 0, error(EACCES)), (libc::SYS_socketpair, 2, 1, 0, error(EACCES)),
            (libc::SYS_prlimit64, 0, 7, 9, ALLOW), (libc::SYS_prlimit64, 5, 7, 0, ALLOW),
            (libc::SYS_prlimit64, 5, 7, 9, error(EPERM)), (libc::SYS_prlimit64, 5, 7, 1 << 40, error(EPERM)),
            (libc::SYS_setpriority, 0, 0, 5, ALLOW), (libc::SYS_setpriority, 0, 9, 5, error(EPERM)),
            (libc::SYS_setpriority, 2, 0, 5, error(EPERM)), (libc::SYS_setpriority, 1, 0, 5, error(EPERM)),
            (libc::SYS_sched_setaffinity, 0, 8, 1, ALLOW), (libc::SYS_sched_setaffinity, 9, 8, 1, error(EPERM)),
            (libc::SYS_ioctl, 3, 0x4008_6602, 0, error(EPERM)), (libc::SYS_ioctl, 3, 0x8008_6601, 0, ALLOW),
            (libc::SYS_ioctl, 3, 0x401C_5820, 0, error(EPERM)), (libc::SYS_ioctl, 3, 0x4080_6685, 0, error(EPERM)),
            (libc::SYS_ioctl, 3, 0x4004_9409, 0, ALLOW), (libc::SYS_ioctl, 3, 0x5401, 0, ALLOW),
            (libc::SYS_ioctl, 3, 0x5412, 0, error(EPERM)), (libc::SYS_clone, 0x11, 0, 0, HAND_OVER),
            (libc::SYS_clone, 0x1_0000, 0, 0, ALLOW), (libc::SYS_clone, 0x1001_0000, 0, 0, error(EPERM)),
            (libc::SYS_shmget, 0, 0, 0, error(ENOSYS)), (libc::SYS_mq_open, 0, 0, 0, error(ENOSYS)),
            (libc::SYS_connect, 3, 0, 0, error(EACCES)), (libc::SYS_bind, 3, 0, 0, error(EACCES)),
            (FILE_SETATTR, 0, 0, 0, error(ENOSYS)), (libc::SYS_io_uring_setup, 1, 0, 0, error(ENOSYS)),
        ];
        for (number, a, b, c, expected) in cases {
            assert_eq!(ask(number, a, b, c), expected, "{number} {a:#x} {b:#x} {c:#x}");
        }
    }

    #[test]
    fn other_interfaces_of_the_kernel_are_closed() {
        let filter = filter(Kind::Scoped);
        assert_eq!(answer(&filter, 0x4000_0003, 11, [0; 6]), KILL);
        assert_eq!(answer(&filter, ARCHITECTURE, X32_BIT | 1, [0; 6]), error(ENOSYS));
        assert_eq!(answer(&filter, ARCHITECTURE, u32::MAX, [0; 6]), error(ENOSYS));
        assert!(filter.len() < 4096, "the kernel takes no longer one");
    }
}
