/** TCP servers of no HTTP: its arguments are `address port kind` in turns. Says "ready" once all listen. */
const [, , ...words] = process.argv;

/** The bytes that a server says of itself; a tarpit says and answers nothing, and a closer ends what has begun. */
const BANNERS: Readonly<Record<string, string>> = {
  tarpit: "",
  closer: "",
  ssh: "SSH-2.0-OpenSSH_9.2p1\r\n",
};

while (words.length > 0) {
  const [hostname = "", port, kind = ""] = words.splice(0, 3);
  Bun.listen({
    hostname,
    port: Number(port),
    socket: {
      open: (socket) => void socket.write(BANNERS[kind] ?? ""),
      data: (socket) => void (kind === "closer" && socket.end()),
      error() {},
    },
  });
}
console.log("ready");
