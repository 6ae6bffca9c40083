"""Which system calls a locked worker may make. Numbers are those of x86_64 Linux."""

from __future__ import annotations

from typing import Final

# Everything that neither reaches another process or the network nor changes what the lock is about. Which
# files may be opened is Landlock's part.
_ALLOWED: Final = """
read 0 write 1 close 3 stat 4 fstat 5 lstat 6 poll 7 lseek 8 mprotect 10 munmap 11 brk 12 rt_sigaction 13
rt_sigprocmask 14 rt_sigreturn 15 pread64 17 pwrite64 18 readv 19 writev 20 access 21 pipe 22 select 23
sched_yield 24 mremap 25 msync 26 mincore 27 madvise 28 dup 32 dup2 33 pause 34 nanosleep 35 getitimer 36
alarm 37 setitimer 38 getpid 39 sendfile 40 recvfrom 45 shutdown 48 getsockname 51 getpeername 52
setsockopt 54 getsockopt 55 exit 60 wait4 61 uname 63 flock 73 fsync 74 fdatasync 75 ftruncate 77 getdents 78
getcwd 79 chdir 80 fchdir 81 rename 82 mkdir 83 rmdir 84 creat 85 unlink 87 readlink 89 umask 95
gettimeofday 96 getrlimit 97 getrusage 98 sysinfo 99 times 100 getuid 102 getgid 104 geteuid 107 getegid 108
getppid 110 getpgrp 111 getgroups 115 getresuid 118 getresgid 120 getpgid 121 getsid 124 capget 125
rt_sigpending 127 rt_sigtimedwait 128 rt_sigsuspend 130 sigaltstack 131 statfs 137 fstatfs 138 getpriority 140
sched_getparam 143 sched_getscheduler 145 sched_get_priority_max 146 sched_get_priority_min 147
arch_prctl 158 gettid 186 readahead 187 time 201 futex 202 sched_getaffinity 204 epoll_create 213
getdents64 217 set_tid_address 218 restart_syscall 219 fadvise64 221 clock_gettime 228 clock_getres 229
clock_nanosleep 230 exit_group 231 epoll_wait 232 epoll_ctl 233 waitid 247 mkdirat 258 newfstatat 262
unlinkat 263 renameat 264 readlinkat 267 faccessat 269 pselect6 270 ppoll 271 set_robust_list 273
get_robust_list 274 epoll_pwait 281 eventfd 284 fallocate 285 eventfd2 290 epoll_create1 291 dup3 292
pipe2 293 preadv 295 pwritev 296 getcpu 309 renameat2 316 getrandom 318 membarrier 324 copy_file_range 326
preadv2 327 pwritev2 328 statx 332 rseq 334 faccessat2 439
"""
# Owners, modes and times of files: Landlock has no right for them, and a refusal would break `shutil.copy`.
# So they report success and do nothing.
_PRETENDED: Final = """
chmod 90 fchmod 91 chown 92 fchown 93 lchown 94 utime 132 utimes 235 fchownat 260 futimesat 261 fchmodat 268
utimensat 280
"""
# Extended attributes: the same gap, but libraries know systems that have none.
_NO_ATTRIBUTES: Final = """
setxattr 188 lsetxattr 189 fsetxattr 190 getxattr 191 lgetxattr 192 fgetxattr 193 listxattr 194
llistxattr 195 flistxattr 196 removexattr 197 lremovexattr 198 fremovexattr 199
"""
# Allowed with certain arguments only, or answered specially; see `rlm_core.worker.seccomp`.
_WITH_RULES: Final = """
open 2 mmap 9 ioctl 16 sendto 44 socketpair 53 clone 56 kill 62 fcntl 72 prctl 157 tgkill 234 openat 257
prlimit64 302
"""


def _table(text: str) -> dict[str, int]:
    words = text.split()
    return {name: int(number) for name, number in zip(words[::2], words[1::2], strict=True)}


ALLOWED: Final = _table(_ALLOWED)
PRETENDED: Final = _table(_PRETENDED)
NO_ATTRIBUTES: Final = _table(_NO_ATTRIBUTES)
WITH_RULES: Final = _table(_WITH_RULES)
