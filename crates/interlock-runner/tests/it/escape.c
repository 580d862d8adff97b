/* One attempt to change what lies outside, by name: escape NAME OUTSIDE [TURNS]. What it reports does not matter. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <linux/io_uring.h>
#include <pthread.h>

static char path[4096], file[4096], new[4096];

static int put(int fd) { return fd < 0 ? 1 : write(fd, "changed", 7) != 7; }

static int ring_open(void) {
    struct io_uring_params p;
    memset(&p, 0, sizeof p);
    int ring = syscall(SYS_io_uring_setup, 4, &p);
    if (ring < 0) return 1;
    char *sq = mmap(0, p.sq_off.array + p.sq_entries * 4, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
    struct io_uring_sqe *e =
        mmap(0, p.sq_entries * sizeof *e, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
    memset(e, 0, sizeof *e);
    e->opcode = IORING_OP_OPENAT;
    e->fd = AT_FDCWD;
    e->addr = (uintptr_t)new;
    e->len = 0644;
    e->open_flags = O_CREAT | O_WRONLY;
    *(unsigned *)(sq + p.sq_off.array) = 0;
    *(unsigned *)(sq + p.sq_off.tail) += 1;
    return syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, 0, 0) < 0;
}

static int run_from_memory(const char *self) {
    char block[65536];
    ssize_t n;
    int from = open(self, O_RDONLY), to = memfd_create("x", 0);
    while ((n = read(from, block, sizeof block)) > 0)
        if (write(to, block, n) != n) return 1;
    char *argv[] = {"x", "open", path, 0}, *env[] = {0};
    fexecve(to, argv, env);
    return 1;
}

static int remount(void) {
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS)) return 1;
    mount(path, path, 0, MS_BIND, 0);
    mount(0, path, 0, MS_REMOUNT | MS_BIND, 0);
    return put(open(new, O_CREAT | O_WRONLY, 0644));
}

static int by_proc(const char *prefix) {
    char at[8192];
    snprintf(at, sizeof at, "%s%s", prefix, new);
    return put(open(at, O_CREAT | O_WRONLY, 0644));
}

static int join(int pid) {
    const char *kinds[] = {"user", "mnt", "pid", "net", "ipc"};
    char at[64];
    for (int i = 0; i < 5; i++) {
        snprintf(at, sizeof at, "/proc/%d/ns/%s", pid, kinds[i]);
        int fd = open(at, O_RDONLY);
        if (fd >= 0) setns(fd, 0);
    }
    return put(open(new, O_CREAT | O_WRONLY, 0644));
}

static int by_handle(void) {
    struct { struct file_handle h; char bytes[128]; } f = {{.handle_bytes = 128}};
    int mount_id;
    if (name_to_handle_at(AT_FDCWD, file, &f.h, &mount_id, 0)) return 1;
    return put(open_by_handle_at(open("/", O_RDONLY), &f.h, O_WRONLY));
}

static int through_link(void) {
    unlink("link");
    return symlink(file, "link") || put(open("link", O_WRONLY | O_TRUNC));
}

static int through_hard_link(void) {
    unlink("hard");
    return link(file, "hard") || put(open("hard", O_WRONLY | O_TRUNC));
}

static int unnamed(void) {
    int fd = open(path, O_TMPFILE | O_WRONLY, 0644);
    char at[64];
    if (put(fd)) return 1;
    snprintf(at, sizeof at, "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, at, AT_FDCWD, new, AT_SYMLINK_FOLLOW);
}

static int flags_of_file(void) {
    int fd = open(file, O_RDONLY), flags = 0;
    if (ioctl(fd, FS_IOC_GETFLAGS, &flags)) return 1;
    flags ^= FS_NODUMP_FL;
    return ioctl(fd, FS_IOC_SETFLAGS, &flags);
}

static int trace_first(void) {
    if (ptrace(PTRACE_SEIZE, 1, 0, 0)) return 1;
    return by_proc("/proc/1/root");
}

/* Another thread changes what a call names between the look that somebody takes at it and the deed. */
static char swapped[4096];
static volatile int done, turns;

static void *swap_text(void *mine) {
    for (unsigned i = 0; !done; i++) {
        char *text = i % 2 ? file : mine;
        memcpy(swapped, text, strlen(text) + 1);
    }
    return 0;
}

static void *swap_link(void *mine) {
    for (unsigned i = 0; !done; i++) {
        unlink("other");
        if (symlink(i % 2 ? path : mine, "other")) {}
        rename("other", "swapped");
    }
    return 0;
}

static int race(void *(*swap)(void *), char *mine, const char *at, int opens) {
    pthread_t other;
    snprintf(swapped, sizeof swapped, "%s", at);
    pthread_create(&other, 0, swap, mine);
    struct stat before, now;
    stat(file, &before);
    for (int i = 0; i < turns; i++) {
        sched_yield();
        if (!stat(file, &now) && (now.st_mode != before.st_mode || now.st_size != before.st_size)) break;
        if (!opens) chmod(swapped, 0600 + i % 2);
        else {
            int fd = open(swapped, O_WRONLY | O_TRUNC);
            if (fd >= 0) close(fd);
        }
    }
    done = 1;
    return pthread_join(other, 0);
}

static char *here_dir(void) {
    static char at[4096];
    if (!getcwd(at, sizeof at - 8)) return "/";
    strcat(at, "/d");
    mkdir(at, 0755);
    close(open("d/file", O_CREAT | O_WRONLY, 0644));
    return at;
}

int main(int count, char **argument) {
    if (count < 3) return 2;
    turns = count > 3 ? atoi(argument[3]) : 1;
    const char *name = argument[1];
    snprintf(path, sizeof path, "%s", argument[2]);
    snprintf(file, sizeof file, "%.4000s/file", path);
    snprintf(new, sizeof new, "%.4000s/new", path);
#define TRY(n, what) if (!strcmp(name, n)) return (what) ? (perror(n), 1) : 0;
    int here = open("own", O_CREAT | O_WRONLY, 0644);
    put(here);
    struct timeval then[2] = {{1, 0}, {1, 0}};
    TRY("open", put(open(new, O_CREAT | O_WRONLY, 0644)))
    TRY("creat", put(creat(new, 0644)))
    TRY("append", put(open(file, O_WRONLY | O_APPEND)))
    TRY("truncating open", open(file, O_WRONLY | O_TRUNC) < 0)
    TRY("openat2", put(syscall(SYS_openat2, AT_FDCWD, new, (uint64_t[]){O_CREAT | O_WRONLY, 0644, 0}, 24)))
    TRY("unnamed file", unnamed())
    TRY("rename out", rename("own", new))
    TRY("rename in", rename(file, "taken"))
    TRY("rename over", rename("own", file))
    TRY("exchange", renameat2(AT_FDCWD, "own", AT_FDCWD, file, RENAME_EXCHANGE))
    TRY("link out", link("own", new))
    TRY("hard link", through_hard_link())
    TRY("symlink", symlink("/etc/passwd", new))
    TRY("through a link", through_link())
    TRY("fifo", mkfifo(new, 0644))
    TRY("socket file", mknod(new, S_IFSOCK | 0644, 0))
    TRY("mkdir", mkdir(new, 0755))
    TRY("unlink", unlink(file))
    TRY("truncate", truncate(file, 1))
    TRY("chmod", chmod(file, 0777))
    TRY("fchmod", fchmod(open(file, O_RDONLY), 0777))
    TRY("fchmodat2", syscall(452, AT_FDCWD, file, 0777, 0))
    TRY("chmod of the directory", chmod(path, 0777))
    TRY("chown", chown(file, getuid(), getgid()))
    TRY("utimes", utimes(file, then))
    TRY("futimens", futimens(open(file, O_RDONLY), 0))
    TRY("setxattr", setxattr(file, "user.x", "y", 1, 0))
    TRY("fsetxattr", fsetxattr(open(file, O_RDONLY), "user.x", "y", 1, 0))
    TRY("file flags", flags_of_file())
    TRY("io_uring", ring_open())
    TRY("/proc/self/root", by_proc("/proc/self/root"))
    TRY("/proc/1/root", by_proc("/proc/1/root"))
    TRY("/proc/1/cwd", by_proc("/proc/1/cwd/../../../../../../.."))
    TRY("tracing the first process", trace_first())
    TRY("from memory", run_from_memory("/proc/self/exe"))
    TRY("user namespace", remount())
    TRY("bind mount", mount(".", path, 0, MS_BIND, 0) || put(open(new, O_CREAT | O_WRONLY, 0644)))
    TRY("remount", mount(0, "/", 0, MS_REMOUNT | MS_BIND, 0) || put(open(new, O_CREAT | O_WRONLY, 0644)))
    TRY("unmount", umount2(path, MNT_DETACH) || put(open(new, O_CREAT | O_WRONLY, 0644)))
    TRY("joining the first process", join(1))
    TRY("joining the parent", join(getppid()))
    TRY("chroot", chroot("/proc/1/root") || put(open(new, O_CREAT | O_WRONLY, 0644)))
    TRY("by handle", by_handle())
    TRY("copy_file_range", copy_file_range(open("own", O_RDONLY), 0, open(file, O_WRONLY), 0, 4, 0) != 4)
    char own[4096] = "own";
    TRY("swapped text, chmod", race(swap_text, own, "own", 0))
    TRY("swapped text, open", race(swap_text, own, "own", 1))
    TRY("swapped link, chmod", race(swap_link, here_dir(), "swapped/file", 0))
    TRY("swapped link, open", race(swap_link, here_dir(), "swapped/file", 1))
    return 2;
}
