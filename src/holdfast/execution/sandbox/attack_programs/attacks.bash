# Attacks in Bash. Each prints its name, "done" or "blocked", and what it got. Perl makes calls that Bash cannot.
SECRET=$TARGET/secret

BY_PIPE='use Fcntl; pipe(R, W); fcntl(R, F_SETOWN, $ARGV[0] + 0) && fcntl(R, 10, 10) && fcntl(R, F_SETFL, O_ASYNC)
  && syswrite(W, "planted") or die $!' # 10: F_SETSIG and SIGUSR1
number() { [[ $NUMBERS =~ \"$1\":\ ?([0-9]+) ]] && echo "${BASH_REMATCH[1]}"; }
WATCH="my \$watch = syscall($(number inotify_init1), 0); my \$folder = \$ENV{TARGET};
  syscall($(number inotify_add_watch), \$watch, \$folder, 0xFFF) == -1 and die \$!"

attack() { # NAME COMMAND...
  local name=$1 got verdict
  shift
  got=$("$@" 2>&1)
  case $?:$got in
  0:*) verdict=done ;;
  127:* | *"command not found"* | *"No such file"*) verdict=missing ;;
  *) verdict=blocked ;;
  esac
  printf '%s\t%s\t%s\n' "$name" "$verdict" "$(printf '%s' "$got" | tr -d '\0' | tr '\n\t' '  ' | head -c 300)"
}
call() { # NAME ARGUMENTS
  perl -e "my \$text = 'planted'; my \$buffer = 'x' x 200; syscall($(number "$1"), $2) == -1 and die \$!"
}
write() { echo planted >"$1"; }
opened() { : >>"$1"; }
mounted() { mount -t tmpfs none . && umount -l .; }
environment() { env | cut -d= -f1 | grep -vxF "$(tr ' ' '\n' <<<"$EXPECTED PWD SHLVL OLDPWD _")"; }
create() { [[ ! -e $1 ]] && echo planted >"$1"; }
linked() { ln "${@:3}" "$SECRET" "$1" && cat "$1"; }
each() { local one; ls /proc >/dev/null || return 1; for one in /proc/[0-9]*; do [[ $one == /proc/$$ ]] || cat "$one/$1" || return 1; done; }
inherited() {
  local one found=
  for one in {3..9} {11..254}; do
    if { : <&"$one"; } 2>/dev/null; then
      found+=$(head -c 100 <&"$one" 2>/dev/null)
    fi
  done
  [[ $found == *planted-secret* ]] && echo "$found"
}
unix() { perl -MSocket -e 'socket(S, 1, 1, 0) && connect(S, pack_sockaddr_un($ARGV[0])) && syswrite(S, "planted") or die $!' "$1"; }
pair() { perl -MSocket -e 'socketpair(A, B, 1, 2, 0) && send(A, "planted", 0, pack_sockaddr_un($ARGV[0])) or die $!' "$1"; }
abstract() { perl -MSocket -e 'socket(S, 1, 1, 0) && connect(S, pack_sockaddr_un("\0$ARGV[0]")) && syswrite(S, "planted") or die $!' "$1"; }
listening() { perl -MSocket -e 'socket(S, 2, 1, 0) && bind(S, sockaddr_in(0, INADDR_LOOPBACK)) && listen(S, 1) or die $!'; }
root() { su -c "cat /etc/shadow" </dev/null || perl -e '$> = 0; exit($> == 0 ? 0 : 1)'; }

quick() {
  attack "read a system file" cat /etc/passwd
  attack "read a secret file" cat "$SECRET"
  attack "list a folder" ls "$TARGET"
  attack "watch a folder" perl -e "$WATCH"
  attack "create a file" write "$TARGET/planted"
  attack "overwrite a file" dd if=/bin/sh of="$SECRET" bs=7 count=1 conv=notrunc
  attack "truncate a file" truncate -s 0 "$SECRET"
  attack "truncate a file by reading" perl -MFcntl -e 'sysopen(F, $ARGV[0], O_RDONLY | O_TRUNC) or die $!' "$SECRET"
  attack "open a file without a mode" perl -e 'sysopen(F, $ARGV[0], 3) or die $!' "$SECRET"
  attack "truncate a file without a mode" perl -MFcntl -e 'sysopen(F, $ARGV[0], 3 | O_TRUNC) or die $!' "$SECRET"
  attack "delete a file" rm -f "$SECRET"
  attack "move a file" mv -f "$SECRET" stolen
  attack "create a folder" mkdir "$TARGET/folder"
  attack "change permissions" chmod 000 "$SECRET"
  attack "escape by a symbolic link" linked symbolic "" -s
  attack "escape by a hard link" linked hard ""
  attack "escape by a relative path" cat "../../../../../../../../../../../../../../../../$SECRET"
  attack "write to shared memory" create "/dev/shm/holdfast-planted-$MARK"
  attack "write to the temporary folder" create "/tmp/holdfast-planted-$MARK"
  attack "read devices" ls /dev
  attack "read its own environment" environment
  attack "read the environment of the engine" cat "/proc/$PID/environ"
  attack "read the environment of all processes" each environ
  attack "read the commands of all processes" each cmdline
  attack "read the memory of the engine" head -c 8 "/proc/$PID/mem"
  attack "reach files through /proc" cat "/proc/$PID/root$SECRET"
  attack "change a kernel setting" opened /proc/sys/kernel/core_pattern
  attack "connect by TCP" bash -c "echo planted >/dev/tcp/127.0.0.1/$TCP"
  attack "send by UDP" bash -c "echo planted >/dev/udp/127.0.0.1/$UDP"
  attack "connect to a Unix socket" unix "$SOCKET"
  attack "send to a Unix socket by a pair" pair "$DATAGRAMS"
  attack "connect to an abstract socket" abstract "$ABSTRACT"
  attack "listen on a port" listening
  attack "signal the engine" kill -USR1 "$PID"
  attack "signal the engine by a pipe" perl -e "$BY_PIPE" "$PID"
  attack "slow the engine down" renice -n 19 -p "$PID"
  attack "limit the engine" prlimit --pid "$PID" --nofile=3:3
  attack "trace the engine" call ptrace "16, $PID, 0, 0"
  attack "copy the memory of the engine" dd "if=/proc/$PID/mem" bs=1 count=8 "skip=$((ADDRESS))"
  attack "use inherited descriptors" inherited
  attack "become root" root
  attack "make a namespace" unshare --user true
  attack "mount a file system" mounted
  attack "keep memory without a file" call memfd_create '$text, 0'
  attack "share memory by a device" perl -e "open(F, '+<', '/dev/zero') or die \$!;
    syscall($(number mmap), 0, 4096, 3, 1, fileno(F), 0) == -1 and die \$!"
  attack "submit calls to io_uring" call io_uring_setup '8, $buffer'
}

allocate() { local held=x; while ((${#held} < $1 << 20)); do held+=$held; done && ${2:-true}; }
hold() { echo held; sleep 100; }

heavy() { # NAME AMOUNT
  local number
  case $1 in
  "allocate memory") allocate "$2" || exit 1 ;;
  "allocate memory in many processes")
    coproc ALL { for number in {1..8}; do allocate $(($2 / 8)) hold & done; wait; }
    for number in {1..8}; do read -r _ <&"${ALL[0]}" || exit 1; done
    ;;
  "fork without end") for ((number = 0; number < $2; number++)); do sleep 100 & done; sleep 1 ;;
  "write a large file") head -c "$(($2 << 20))" /dev/zero >large || exit 1 ;;
  "write many files")
    for ((number = 0; number < $2; number++)); do : >"file-$number"; done
    sleep 2
    ;;
  "write deleted files")
    for ((number = 0; number < $2; number++)); do
      exec {held}>"file-$number" || exit 1
      rm "file-$number"
      head -c 1048576 /dev/zero >&"$held" || exit 1
    done
    sleep 2
    ;;
  "write deleted files by memory")
    perl -e "for my \$number (1..$2) {
        open(F, '+>', 'file') && unlink('file') && truncate(F, 1 << 20) && open(ZERO, '<', '/dev/zero') or exit 1;
        my \$held = syscall($(number mmap), 0, 1 << 20, 3, 1, fileno(F), 0);
        syscall($(number read), fileno(ZERO), \$held, 1 << 20) == 1 << 20 or exit 1;
      }
      sleep 2" || exit 1
    ;;
  "write deleted files by children")
    perl -e "\$SIG{CHLD} = 'IGNORE';
      for my \$number (1..$2) {
        open(my \$file, '+>', 'file') && unlink('file') or exit 1;
        push @held, \$file;
        if (!fork) { syswrite(\$file, 'x' x (1 << 20)); exit }
        wait;
      }
      sleep 2" || exit 1
    ;;
  "write into deep folders")
    local name=$(printf '%0250d' 0)
    for number in {1..20}; do mkdir "$name" && cd "$name" || exit 1; done
    for ((number = 0; number < $2; number++)); do : >"file-$number"; done
    sleep 2
    ;;
  "write into a folder that cannot be listed")
    mkdir -m 300 folder
    for ((number = 0; number < $2; number++)); do : >"folder/file-$number"; done
    sleep 2
    ;;
  "compute without end") while :; do :; done ;;
  "wait without end") sleep 1000 ;;
  "print without end") head -c "$(($2 << 20))" /dev/zero || exit 1 ;;
  "leave a process behind")
    (trap '' HUP TERM; setsid sleep "$MARK" || sleep "$MARK") >/dev/null 2>&1 &
    disown
    ;;
  esac
  printf '%s\tdone\t\n' "$1"
}

if [[ $# == 0 ]]; then quick; else heavy "$@"; fi
