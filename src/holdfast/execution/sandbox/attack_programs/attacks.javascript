// Attacks in JavaScript. Each prints its name, "done" or "blocked", and what it got. Perl makes calls that Node cannot.
const fs = require("fs"), net = require("net"), dgram = require("dgram"), os = require("os");
const { spawnSync, spawn } = require("child_process");
const { TARGET, PID, TCP, UDP, SOCKET, DATAGRAMS, ABSTRACT, MARK, NUMBERS } = process.env;
const SECRET = `${TARGET}/secret`;
const numbers = JSON.parse(NUMBERS);

const read = (path) => fs.readFileSync(path).subarray(0, 200).toString();
const write = (path, flags = "w") => fs.writeSync(fs.openSync(path, flags), "planted");
const linked = (make, name) => { make(SECRET, name); return read(name); };
const processes = () => fs.readdirSync("/proc").filter((each) => /^\d+$/.test(each) && +each !== process.pid);
const run = (command, ...words) => {
  const ended = spawnSync(command, words, { encoding: "utf8" });
  if (ended.error) throw ended.error;
  if (ended.status !== 0) throw new Error(`exit code ${ended.status}: ${ended.stderr}`);
  return ended.stdout;
};
const call = (name, ...words) =>
  run("perl", "-e",
    `my $text = "planted"; my $buffer = "x" x 200; syscall(${[numbers[name], ...words].join(", ")}) == -1 and die $!`);
const connection = (options) => new Promise((resolve, reject) => {
  const socket = net.connect(options, () => socket.write("planted", () => resolve("connected")));
  socket.on("error", reject);
  setTimeout(() => reject(new Error("no answer")), 2000);
});
const datagram = () => new Promise((resolve, reject) => {
  const socket = dgram.createSocket("udp4");
  socket.on("error", reject);
  socket.send("planted", +UDP, "127.0.0.1", (error) => (error ? reject(error) : resolve("sent")));
});
const listening = () => new Promise((resolve, reject) => {
  const server = net.createServer();
  server.on("error", reject);
  server.listen(0, "127.0.0.1", () => { server.close(); resolve("listening"); });
});
const inherited = () => {
  const found = [];
  for (let descriptor = 3; descriptor < 256; descriptor++) {
    try {
      if (fs.fstatSync(descriptor).isFile()) {
        const buffer = Buffer.alloc(100);
        fs.readSync(descriptor, buffer, 0, 100, 0);
        found.push(`${descriptor}: ${buffer}`);
      }
    } catch { continue; }
  }
  const own = found.filter((each) => !each.includes("Attacks in JavaScript"));
  if (!own.length) throw new Error("no file is open");
  return own.join();
};

const environment = () => {
  const expected = process.env.EXPECTED.split(" ");
  const unexpected = Object.keys(process.env).filter((each) => !expected.includes(each));
  if (!unexpected.length) throw new Error("only what was given is there");
  return unexpected;
};

const BY_PIPE = `use Fcntl; pipe(R, W); fcntl(R, F_SETOWN, $ARGV[0] + 0) && fcntl(R, 10, 10) && fcntl(R, F_SETFL, O_ASYNC)
  && syswrite(W, "planted") or die $!`; // 10: F_SETSIG and SIGUSR1

const MISSING = /ENOENT|exit code 127|command not found|No such file/;

const quick = {
  "read a system file": () => read("/etc/passwd"),
  "read a secret file": () => read(SECRET),
  "list a folder": () => fs.readdirSync(TARGET),
  "watch a folder": () => fs.watch(TARGET).close(),
  "create a file": () => write(`${TARGET}/planted`),
  "overwrite a file": () => write(SECRET, "r+"),
  "truncate a file": () => fs.truncateSync(SECRET, 0),
  "truncate a file by reading": () => fs.openSync(SECRET, fs.constants.O_RDONLY | fs.constants.O_TRUNC),
  "open a file without a mode": () => fs.closeSync(fs.openSync(SECRET, 3)),
  "truncate a file without a mode": () => fs.openSync(SECRET, 3 | fs.constants.O_TRUNC),
  "delete a file": () => fs.unlinkSync(SECRET),
  "move a file": () => fs.renameSync(SECRET, "stolen"),
  "create a folder": () => fs.mkdirSync(`${TARGET}/folder`),
  "change permissions": () => fs.chmodSync(SECRET, 0),
  "escape by a symbolic link": () => linked(fs.symlinkSync, "symbolic"),
  "escape by a hard link": () => linked(fs.linkSync, "hard"),
  "escape by a relative path": () => read("../".repeat(40) + SECRET),
  "write to shared memory": () => write(`/dev/shm/holdfast-planted-${MARK}`),
  "write to the temporary folder": () => write(`/tmp/holdfast-planted-${MARK}`),
  "read devices": () => fs.readdirSync("/dev"),
  "read its own environment": environment,
  "read the environment of the engine": () => read(`/proc/${PID}/environ`),
  "read the environment of all processes": () => processes().map((each) => read(`/proc/${each}/environ`)),
  "read the commands of all processes": () => processes().map((each) => read(`/proc/${each}/cmdline`)),
  "read the memory of the engine": () => read(`/proc/${PID}/mem`),
  "reach files through /proc": () => read(`/proc/${PID}/root${SECRET}`),
  "change a kernel setting": () => fs.openSync("/proc/sys/kernel/core_pattern", "r+"),
  "connect by TCP": () => connection({ host: "127.0.0.1", port: +TCP }),
  "send by UDP": datagram,
  "connect to a Unix socket": () => connection({ path: SOCKET }),
  "send to a Unix socket by a pair": () =>
    run("perl", "-MSocket", "-e",
      `socketpair(A, B, 1, 2, 0) && send(A, "planted", 0, pack_sockaddr_un("${DATAGRAMS}")) or die $!`),
  "connect to an abstract socket": () =>
    run("perl", "-MSocket", "-e",
      `socket(S, 1, 1, 0) && connect(S, pack_sockaddr_un("\\0${ABSTRACT}")) && syswrite(S, "planted") or die $!`),
  "listen on a port": listening,
  "signal the engine": () => process.kill(+PID, "SIGUSR1"),
  "signal the engine by a pipe": () => run("perl", "-e", BY_PIPE, PID),
  "slow the engine down": () => os.setPriority(+PID, 19),
  "limit the engine": () => run("prlimit", "--pid", PID, "--nofile=3:3"),
  "trace the engine": () => call("ptrace", 16, PID, 0, 0),
  "copy the memory of the engine": () => run("dd", `if=/proc/${PID}/mem`, "bs=1", "count=8", `skip=${BigInt(process.env.ADDRESS)}`),
  "use inherited descriptors": inherited,
  "become root": () => { process.getuid() ? process.setuid(0) : process.setgroups([0]); return read("/etc/shadow"); },
  "make a namespace": () => call("unshare", 0x10000000),
  "mount a file system": () => run("sh", "-c", "mount -t tmpfs none . && umount -l ."),
  "keep memory without a file": () => call("memfd_create", "$text", 0),
  "share memory by a device": () =>
    run("perl", "-e",
      `open(F, "+<", "/dev/zero") or die $!; syscall(${numbers.mmap}, 0, 4096, 3, 1, fileno(F), 0) == -1 and die $!`),
  "submit calls to io_uring": () => call("io_uring_setup", 8, "$buffer"),
};

const pause = (seconds) => new Promise((resolve) => setTimeout(resolve, 1000 * seconds));
const allocate = (megabytes) => Array.from({ length: megabytes }, () => Buffer.alloc(1 << 20, "x"));

async function heavy(name, amount) {
  const held = [];
  if (name === "allocate memory") held.push(allocate(amount));
  else if (name === "allocate memory in many processes") {
    const length = Math.floor(amount / 8);
    const code = `globalThis.held = Array.from({ length: ${length} }, () => Buffer.alloc(1 << 20, "x"));
      console.log("held"); setTimeout(() => 0, 100000)`;
    const holding = () => new Promise((resolve) => {
      const failed = (why) => { console.error(why); process.exit(1); };
      const child = spawn(process.execPath, ["-e", code], { stdio: ["ignore", "pipe", "inherit"] });
      child.on("error", failed).on("exit", failed);
      child.stdout.on("data", resolve);
    });
    await Promise.all(Array.from({ length: 8 }, holding));
  } else if (name === "fork without end") {
    for (let number = 0; number < amount; number++) {
      const started = spawn("sleep", ["100"]).on("error", (error) => { console.error(error.code); process.exit(1); });
      if (!started.pid) await pause(1); // the error is about to come
    }
    await pause(1);
  } else if (name === "write a large file") {
    const file = fs.openSync("large", "w");
    for (let number = 0; number < amount; number++) if (fs.writeSync(file, Buffer.alloc(1 << 20)) < 1 << 20) process.exit(1);
  } else if (name === "write many files") {
    for (let number = 0; number < amount; number++) fs.writeFileSync(`file-${number}`, "");
    await pause(2);
  } else if (name === "write deleted files") {
    for (let number = 0; number < amount; number++) {
      const file = fs.openSync(`file-${number}`, "w");
      fs.unlinkSync(`file-${number}`);
      fs.writeSync(file, Buffer.alloc(1 << 20));
      held.push(file);
    }
    await pause(2);
  } else if (name === "write deleted files by memory") {
    run("perl", "-e", `for my $number (1..${amount}) {
        open(F, "+>", "file") && unlink("file") && truncate(F, 1 << 20) && open(ZERO, "<", "/dev/zero") or exit 1;
        my $held = syscall(${numbers.mmap}, 0, 1 << 20, 3, 1, fileno(F), 0);
        syscall(${numbers.read}, fileno(ZERO), $held, 1 << 20) == 1 << 20 or exit 1;
      }
      sleep 2`);
  } else if (name === "write deleted files by children") {
    run("perl", "-e", `$SIG{CHLD} = "IGNORE";
      for my $number (1..${amount}) {
        open(my $file, "+>", "file") && unlink("file") or exit 1;
        push @held, $file;
        if (!fork) { syswrite($file, "x" x (1 << 20)); exit }
        wait;
      }
      sleep 2`);
  } else if (name === "write into deep folders") {
    for (let number = 0; number < 20; number++) {
      fs.mkdirSync("d".repeat(250));
      process.chdir("d".repeat(250));
    }
    for (let number = 0; number < amount; number++) fs.writeFileSync(`file-${number}`, "");
    await pause(2);
  } else if (name === "write into a folder that cannot be listed") {
    fs.mkdirSync("folder", 0o300);
    for (let number = 0; number < amount; number++) fs.writeFileSync(`folder/file-${number}`, "");
    await pause(2);
  } else if (name === "compute without end") for (;;);
  else if (name === "wait without end") await pause(1000);
  else if (name === "print without end") for (let number = 0; number < amount; number++) fs.writeSync(1, "x".repeat(1 << 16));
  else if (name === "leave a process behind")
    spawn("sh", ["-c", `trap "" HUP TERM; (setsid sleep ${MARK} || sleep ${MARK}) & exit`], { stdio: "ignore" }).unref();
  if (name === "leave a process behind") await pause(0.3);
  fs.writeSync(1, `${name}\tdone\t\n`);
  process.exit(0);
}

(async () => {
  if (process.argv.length > 2) return heavy(process.argv[2], +process.argv[3]);
  for (const [name, attack] of Object.entries(quick)) {
    let line;
    try {
      line = [name, "done", JSON.stringify((await attack()) ?? null)];
    } catch (error) {
      line = [name, MISSING.test(String(error)) ? "missing" : "blocked", String(error)];
    }
    fs.writeSync(1, line.join("\t").replaceAll("\n", " ").slice(0, 400) + "\n");
  }
  process.exit(0);
})();
