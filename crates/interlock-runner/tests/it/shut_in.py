"""Starts a command behind a filter of system calls like the one of Codex' sandbox: no sockets but local ones, no connection,
no options of sockets, nothing sent to an address. `shut_in.py [--no-filters] COMMAND [ARGUMENT…]`, where the option refuses
further filters too.
"""

import ctypes
import os
import platform
import sys

# connect, sendto, sendmmsg, recvmmsg, getsockopt, setsockopt, bind, listen, ptrace, process_vm_readv, process_vm_writev; socket.
REFUSED, SOCKET, SECCOMP_CALL = {
    "x86_64": ([42, 44, 307, 299, 55, 54, 49, 50, 101, 310, 311], 41, 317),
    "aarch64": ([203, 206, 269, 243, 209, 208, 200, 201, 117, 270, 271], 198, 277),
}[platform.machine()]
command = sys.argv[1:]
if command[0] == "--no-filters":
    REFUSED.append(SECCOMP_CALL)
    command = command[1:]
LOAD, JUMP_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050001
NUMBER, FIRST_ARGUMENT, AF_UNIX = 0, 16, 1


class Instruction(ctypes.Structure):
    _fields_ = [("code", ctypes.c_ushort), ("yes", ctypes.c_ubyte), ("no", ctypes.c_ubyte), ("value", ctypes.c_uint)]


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.POINTER(Instruction))]


lines = [(LOAD, 0, 0, NUMBER)]
for number in REFUSED:
    lines += [(JUMP_EQUAL, 0, 1, number), (RETURN, 0, 0, REFUSE)]
lines += [(JUMP_EQUAL, 0, 3, SOCKET), (LOAD, 0, 0, FIRST_ARGUMENT), (JUMP_EQUAL, 1, 0, AF_UNIX), (RETURN, 0, 0, REFUSE)]
lines.append((RETURN, 0, 0, ALLOW))
instructions = (Instruction * len(lines))(*(Instruction(*line) for line in lines))
program = Program(len(lines), instructions)
libc = ctypes.CDLL(None, use_errno=True)
NO_NEW_PRIVILEGES, SECCOMP, FILTER = 38, 22, 2
if libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0) or libc.prctl(SECCOMP, FILTER, ctypes.byref(program), 0, 0):
    sys.exit("the filter could not be put on")
os.execv(command[0], command)
